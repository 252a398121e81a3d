/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a network's events; see events.h. */
#include "events.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int net_events_init(struct net_events *q, uint64_t near, uint32_t events)
{
    memset(q, 0, sizeof(*q));
    q->count = NET_BINS_LEAST;
    while (q->count < events && q->count < NET_BINS_MOST) {
        q->count *= 2;
    }
    while (((uint64_t)q->count << q->shift) < near && q->shift < 46) {
        q->shift++;
    }
    q->bins = calloc(q->count, sizeof(*q->bins));
    q->filled = calloc(q->count / 64, sizeof(*q->filled));
    return q->bins != NULL && q->filled != NULL ? 0 : -1;
}

void net_events_free(struct net_events *q)
{
    free(q->list);
    free(q->entries);
    free(q->bins);
    free(q->filled);
    sim_queue_free(&q->today);
    sim_queue_free(&q->far);
}

static int add_to_bin(struct net_events *q, const struct sim_event *e)
{
    uint32_t i = q->free;
    if (i != 0) {
        q->free = q->entries[i - 1].next;
    } else {
        if (!ARRAY_ROOM(q->entries, q->used, q->capacity, 1024)) {
            return -1;
        }
        i = ++q->used;
    }
    uint32_t bin = (uint32_t)(e->time >> q->shift) & (q->count - 1);
    q->entries[i - 1] = (struct net_bin_entry){.event = *e, .next = q->bins[bin]};
    q->bins[bin] = i;
    q->filled[bin / 64] |= UINT64_C(1) << bin % 64;
    q->some[bin / 64 / 64] |= UINT64_C(1) << bin / 64 % 64;
    q->binned++;
    return 0;
}

int net_events_add(struct net_events *q, uint64_t time, uint64_t key, uint64_t ref)
{
    uint64_t day = time >> q->shift;
    if (day <= q->day) {
        return sim_queue_push(&q->today, time, key, ref);
    }
    if (day - q->day >= q->count) {
        return sim_queue_push(&q->far, time, key, ref);
    }
    return add_to_bin(q, &(struct sim_event){time, key, ref});
}

/* Returns the first bin from `bin` on that has events, by the bitmap of filled bins. */
static uint32_t next_bin(const struct net_events *q, uint32_t bin)
{
    uint64_t here = q->filled[bin / 64] & UINT64_MAX << bin % 64;
    if (here != 0) {
        return bin / 64 * 64 + (uint32_t)__builtin_ctzll(here);
    }
    uint32_t word = bin / 64 + 1;
    for (uint32_t i = word / 64; i < NET_BINS_MOST / 64 / 64; i++) {
        uint64_t some = q->some[i];
        if (i == word / 64) {
            some &= UINT64_MAX << word % 64;
        }
        if (some != 0) {
            uint32_t w = i * 64 + (uint32_t)__builtin_ctzll(some);
            return w * 64 + (uint32_t)__builtin_ctzll(q->filled[w]);
        }
    }
    return q->count;
}

static int by_order(const void *a, const void *b)
{
    return sim_event_before(a, b) ? -1 : 1;
}

static void sort(struct sim_event *list, size_t count)
{
    enum { FEW = 24 };
    if (count > FEW) {
        qsort(list, count, sizeof(*list), by_order);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct sim_event e = list[i];
        size_t k = i;
        for (; k > 0 && sim_event_before(&e, &list[k - 1]); k--) {
            list[k] = list[k - 1];
        }
        list[k] = e;
    }
}

/* Opens a bin when today's list is empty: sorts the bin's events into the list. */
static int open_bin(struct net_events *q, uint32_t bin)
{
    q->begin = q->end = 0;
    uint32_t next;
    for (uint32_t i = q->bins[bin]; i != 0; i = next) {
        struct net_bin_entry *e = &q->entries[i - 1];
        if (!ARRAY_ROOM(q->list, q->end, q->list_capacity, 256)) {
            return -1;
        }
        q->list[q->end++] = e->event;
        next = e->next;
        e->next = q->free;
        q->free = i;
        q->binned--;
    }
    q->bins[bin] = 0;
    q->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    if (q->filled[bin / 64] == 0) {
        q->some[bin / 64 / 64] &= ~(UINT64_C(1) << bin / 64 % 64);
    }
    sort(q->list, q->end);
    return 0;
}

/* Moves events from the heap to the bins if they are near enough now. */
static int come_near(struct net_events *q)
{
    struct sim_event e;
    while (q->far.count > 0 && (q->far.events[0].time >> q->shift) - q->day < q->count) {
        sim_queue_pop(&q->far, &e);
        if (add_to_bin(q, &e) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Goes on to the next day that has events. Returns 1; 0 if there are no events; -1 if memory is
 * short. */
static int next_day(struct net_events *q)
{
    if (q->binned == 0 && q->far.count == 0) {
        return 0;
    }
    if (q->binned == 0) {
        q->day = q->far.events[0].time >> q->shift;
    }
    if (come_near(q) != 0) {
        return -1;
    }
    uint32_t from = (uint32_t)q->day & (q->count - 1), bin = next_bin(q, from);
    if (bin == q->count) {
        bin = next_bin(q, 0);
    }
    q->day += (bin - from) & (q->count - 1);
    return open_bin(q, bin) == 0 ? 1 : -1;
}

int net_events_peek(struct net_events *q, struct sim_event *e)
{
    if (q->begin == q->end && q->today.count == 0) {
        int status = next_day(q);
        if (status <= 0) {
            return status;
        }
    }
    bool listed = q->begin < q->end;
    if (listed &&
        (q->today.count == 0 || sim_event_before(&q->list[q->begin], &q->today.events[0]))) {
        *e = q->list[q->begin];
    } else {
        *e = q->today.events[0];
    }
    return 1;
}

void net_events_pop(struct net_events *q)
{
    struct sim_event e;
    if (q->begin < q->end &&
        (q->today.count == 0 || sim_event_before(&q->list[q->begin], &q->today.events[0]))) {
        q->begin++;
    } else {
        sim_queue_pop(&q->today, &e);
    }
}
