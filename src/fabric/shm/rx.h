/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer's side of a ring, as receive.c and rx_payload.c share it. */
#ifndef FABRIC_SHM_RX_H
#define FABRIC_SHM_RX_H

#include "base/killpoint.h"
#include "fabric/shm/send.h"

/* A line of the ring, and the tag of a record that begins there. */
struct ring_place {
    struct record *at;
    uint32_t tag;
};

/* Returns the place behind the record in progress, which begins at `at` and has so many lines. A
 * record does not wrap. */
static inline struct ring_place behind(const struct rx_channel *r, struct record *at,
                                       uint32_t lines)
{
    struct ring_place next = {(struct record *)((uint8_t *)at + lines * RECORD_LINE), r->tag};
    if (unlikely(next.at == r->end)) {
        next.at = (struct record *)r->ring;
        next.tag ^= RECORD_TAG;
    }
    return next;
}

/* Gives `lines` of the ring back to the sender; `next` is the place behind them. */
static inline void release_lines(struct rx_channel *r, uint32_t lines, struct ring_place next)
{
    r->at = next.at;
    r->tag = next.tag;
    r->head += lines;
    KILL_POINT("record-done");
    atomic_store_explicit(&r->index->head, r->head, memory_order_release);
    KILL_POINT("head-moved");
}

/* Signals to the sender that there is room, if it waits for that. */
static inline void tell_room(struct shm_peer *p, struct rx_channel *r)
{
    light_barrier(p);
    if (unlikely(atomic_load_explicit(&r->index->want, memory_order_relaxed) != 0) &&
        p->remote != NULL) {
        shm_signal(p);
    }
}

#endif
