/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of a network, in the order of (time, key). A calendar: the near future
 * lies in bins of equal width, which are sorted when their day comes; what is
 * further away waits in a heap.
 *
 *     today: sorted list + heap of what came later      bins: chains, a bit for each      far: heap
 *
 * An event may not be earlier than the one that was taken last.
 */
#ifndef SIM_NET_EVENTS_H
#define SIM_NET_EVENTS_H

#include "sim/util/queue.h"

enum { NET_BINS_LEAST = 1 << 10, NET_BINS_MOST = 1 << 16 };

struct net_bin_entry {
    struct sim_event event;
    uint32_t next; /* index + 1 */
};

struct net_events {
    uint32_t count;  /* of bins; a power of two */
    unsigned shift;  /* log2 of a bin's width in ps */
    uint64_t day;    /* number of today's bin */
    uint64_t binned; /* events in bins */
    struct sim_event *list;
    size_t begin, end, list_capacity;
    struct sim_queue today, far;
    struct net_bin_entry *entries;
    uint32_t used, free, capacity; /* free: index + 1 */
    uint32_t *bins;                /* index + 1 of the first */
    uint64_t *filled;              /* a bit for each bin */
    uint64_t some[NET_BINS_MOST / 64 / 64];
};

/* net_events_init() makes an empty calendar that sees `near` ps ahead, for about
 * `events` at a time; -1 if memory is short. net_events_free() in any case. */
int net_events_init(struct net_events *q, uint64_t near, uint32_t events);
void net_events_free(struct net_events *q);

/* net_events_add() returns -1 if memory is short. */
int net_events_add(struct net_events *q, uint64_t time, uint64_t key, uint64_t ref);

/* net_events_peek() brings the next event to the front of today: 1, 0 if there is
 * none, -1 if memory is short. net_events_pop() takes it. */
int net_events_peek(struct net_events *q, struct sim_event *e);
void net_events_pop(struct net_events *q);

/* net_events_ahead() returns an event that will probably be taken after `ahead` others, so that the
 * network can prefetch what it needs; NULL if none is known. */
static inline const struct sim_event *net_events_ahead(const struct net_events *q, size_t ahead)
{
    return q->begin + ahead < q->end ? &q->list[q->begin + ahead] : NULL;
}

#endif
