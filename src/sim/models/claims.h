/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of claims: operations of a rank that wait for the same cpu, or for the same cpu and the
 * sending side of the same nic. The claim with the least key comes first.
 *
 * Nearly every claim has a greater key than all claims before it, and is appended to a chain. A
 * claim that has not, because an operation took no time at all, goes into a heap beside the chain.
 *
 * A claim is named by its index + 1 in an array of events; the event's `rank` is the next claim of
 * the chain.
 */
#ifndef SIM_CLAIMS_H
#define SIM_CLAIMS_H

#include "event.h"

enum { CLAIMS_NO_NIC = 256 };

/* A struct whose bytes behind `cpu` and `nic` are 0 is an empty queue. */
struct claims {
    uint16_t cpu;
    uint16_t nic; /* CLAIMS_NO_NIC: the claims need no nic */
    uint32_t head, tail;
    uint32_t early_count, early_capacity;
    uint32_t *early; /* the heap of claims that came with a smaller key than one before them */
    uint64_t armed;  /* time of the last FREE event that was made for this queue */
};

/* claims_add_early() and claims_drop_early() add a claim to the heap, and remove the first one from
 * it. */
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

/* claims_first() returns the claim with the least key, or 0. */
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

/* claims_drop() removes the claim that claims_first() returns. */
static inline void claims_drop(struct claims *q, const struct event *events)
{
    if (claims_first(q, events) == q->head) {
        q->head = events[q->head - 1].rank;
    } else {
        claims_drop_early(q, events);
    }
}

#endif
