/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events in the order of (time, key), both unsigned and the pair unique: a heap of four branches
 * (base/heap.h). The caller may push an event that is earlier than one that it has popped already.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "base/array.h"
#include "base/heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    uint64_t time;
    uint64_t key;
    uint64_t ref; /* for the caller's use */
};

/* A zeroed struct is an empty queue. */
struct sim_queue {
    struct sim_event *events;
    size_t count;
    size_t capacity;
};

static inline void sim_queue_free(struct sim_queue *q)
{
    free(q->events);
    *q = (struct sim_queue){0};
}

static inline bool sim_event_before(const struct sim_event *a, const struct sim_event *b)
{
    return ((unsigned __int128)a->time << 64 | a->key) <
           ((unsigned __int128)b->time << 64 | b->key);
}

#define SIM_EVENT_BEFORE(a, b, of) sim_event_before(a, b)
HEAP_OF(sim_queue, struct sim_event, 4, SIM_EVENT_BEFORE)

/* sim_queue_push() adds an event; -1 if memory is short. */
static inline int sim_queue_push(struct sim_queue *q, uint64_t time, uint64_t key, uint64_t ref)
{
    if (!ARRAY_ROOM(q->events, q->count, q->capacity, 64)) {
        return -1;
    }
    sim_queue_rise(q->events, q->count++, &(struct sim_event){time, key, ref}, NULL);
    return 0;
}

/* sim_queue_pop() removes the first event and stores it in *event; false if the queue is empty. */
static inline bool sim_queue_pop(struct sim_queue *q, struct sim_event *event)
{
    if (q->count == 0) {
        return false;
    }
    *event = q->events[0];
    struct sim_event last = q->events[--q->count];
    sim_queue_sink(q->events, q->count, &last, NULL);
    return true;
}

#endif
