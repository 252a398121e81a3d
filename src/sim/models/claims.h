/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims that wait for the same resources: for a cpu alone, or for a cpu and the
 * sending side of a nic. The one with the least key comes first.
 *
 * Nearly always a claim comes with a greater key than all before it and goes to
 * the end of a chain. Those that do not, because something took no time at all,
 * go to a heap beside it.
 *
 * Claims are named by index + 1 in an array of events, where `rank` is the next of
 * the chain.
 */
#ifndef SIM_CLAIMS_H
#define SIM_CLAIMS_H

#include "event.h"

enum { CLAIMS_NO_NIC = 256 };

/* All bytes 0 after cpu and nic: empty. */
struct claims {
    uint16_t cpu;
    uint16_t nic; /* CLAIMS_NO_NIC: cpu alone */
    uint32_t head, tail;
    uint32_t early_count, early_capacity;
    uint32_t *early; /* the heap */
    uint64_t armed;  /* time of the last FREE for this queue */
};

/* claims_add_early() and claims_drop_early() are the parts that concern the heap. */
int claims_add_early(struct claims *q, const struct event *events, uint32_t i);
void claims_drop_early(struct claims *q, const struct event *events);

/* claims_add() adds claim `i`; -1 if memory is short. */
static inline int claims_add(struct claims *q, struct event *events, uint32_t i)
{
    events[i - 1].rank = 0;
    if (q->head == 0) {
        q->head = q->tail = i;
        return 0;
    }
    if (event_before(&events[i - 1], &events[q->tail - 1])) {
        return claims_add_early(q, events, i);
    }
    events[q->tail - 1].rank = i;
    q->tail = i;
    return 0;
}

/* claims_first() gives the claim with the least key, or 0. */
static inline uint32_t claims_first(const struct claims *q, const struct event *events)
{
    if (q->early_count == 0) {
        return q->head;
    }
    if (q->head == 0 || event_before(&events[q->early[0] - 1], &events[q->head - 1])) {
        return q->early[0];
    }
    return q->head;
}

/* claims_drop() removes the one that claims_first() gave. */
static inline void claims_drop(struct claims *q, const struct event *events)
{
    if (claims_first(q, events) == q->head) {
        q->head = events[q->head - 1].rank;
    } else {
        claims_drop_early(q, events);
    }
}

#endif
