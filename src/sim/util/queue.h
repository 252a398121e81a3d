/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events in the order of (time, key), both unsigned and the pair unique: a heap
 * of four branches. An event may be earlier than one that was taken before it.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    uint64_t time;
    uint64_t key;
    uint64_t ref; /* the caller's */
};

/* All bytes 0: empty. */
struct sim_queue {
    struct sim_event *events;
    size_t count;
    size_t capacity;
};

void sim_queue_free(struct sim_queue *q);

/* sim_queue_grow() makes room for one more event; -1 if memory is short. */
int sim_queue_grow(struct sim_queue *q);

static inline bool sim_event_before(const struct sim_event *a, const struct sim_event *b)
{
    return ((unsigned __int128)a->time << 64 | a->key) <
           ((unsigned __int128)b->time << 64 | b->key);
}

/* sim_queue_push() adds an event; -1 if memory is short. */
static inline int sim_queue_push(struct sim_queue *q, uint64_t time, uint64_t key, uint64_t ref)
{
    if (q->count == q->capacity && sim_queue_grow(q) != 0) {
        return -1;
    }
    struct sim_event new = {time, key, ref};
    size_t i = q->count++;
    while (i > 0 && sim_event_before(&new, &q->events[(i - 1) / 4])) {
        q->events[i] = q->events[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    q->events[i] = new;
    return 0;
}

/* sim_queue_pop() takes the first event; false if there is none. */
static inline bool sim_queue_pop(struct sim_queue *q, struct sim_event *event)
{
    if (q->count == 0) {
        return false;
    }
    struct sim_event *e = q->events;
    *event = e[0];
    struct sim_event last = e[--q->count];
    size_t i = 0;
    for (size_t child = 1; child < q->count; child = 4 * i + 1) {
        size_t end = child + 4 < q->count ? child + 4 : q->count;
        size_t least = child;
        for (size_t c = child + 1; c < end; c++) {
            least = sim_event_before(&e[c], &e[least]) ? c : least;
        }
        if (!sim_event_before(&e[least], &last)) {
            break;
        }
        e[i] = e[least];
        i = least;
    }
    e[i] = last;
    return true;
}

#endif
