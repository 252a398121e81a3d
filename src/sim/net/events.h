/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of a network, in the order of (time, key), in a calendar queue. The near future is
 * divided into days of equal length, with a bin for each; a bin is sorted when its day comes.
 * Events beyond the last bin wait in a heap.
 *
 *     today: sorted list + heap of what came later      bins: chains, a bit for each      far: heap
 *
 * An event that is added must not be earlier than the one that was taken last.
 */
#ifndef SIM_NET_EVENTS_H
#define SIM_NET_EVENTS_H

#include "sim/util/queue.h"

enum { NET_BINS_LEAST = 1 << 10, NET_BINS_MOST = 1 << 16 };

struct net_bin_entry {
    struct sim_event event;
    uint32_t next; /* in the chain of its bin, or of free entries: index + 1 */
};

struct net_events {
    uint32_t count;  /* number of bins; a power of two */
    unsigned shift;  /* log2 of a day's length in ps */
    uint64_t day;    /* number of the current day */
    uint64_t binned; /* events in bins */
    struct sim_event *list;
    size_t begin, end, list_capacity;
    struct sim_queue today, far;
    struct net_bin_entry *entries;
    uint32_t used, free, capacity; /* `free` is the first of a chain of free entries: index + 1 */
    uint32_t *bins;                /* by bin: its first entry, index + 1 */
    uint64_t *filled;              /* a bit for each bin that has events */
    uint64_t some[NET_BINS_MOST / 64 / 64];
};

/* net_events_init() makes an empty calendar whose bins reach `near` ps ahead, for about `events`
 * events at a time; -1 if memory is short. The caller calls net_events_free() in any case. */
int net_events_init(struct net_events *q, uint64_t near, uint32_t events);
void net_events_free(struct net_events *q);

/* net_events_add() adds an event; -1 if memory is short. */
int net_events_add(struct net_events *q, uint64_t time, uint64_t key, uint64_t ref);

/* net_events_peek() stores the next event in *e and leaves it in the queue. It returns 1, 0 if
 * there is none, -1 if memory is short. net_events_pop() removes that event. */
int net_events_peek(struct net_events *q, struct sim_event *e);
void net_events_pop(struct net_events *q);

/* net_events_ahead() returns an event that will probably be taken after `ahead` others, so that the
 * network can prefetch its data; NULL if none is known. */
static inline const struct sim_event *net_events_ahead(const struct net_events *q, size_t ahead)
{
    return q->begin + ahead < q->end ? &q->list[q->begin + ahead] : NULL;
}

#endif
