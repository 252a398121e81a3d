/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions by which the files of the receiver's side work together: receive.c takes records,
 * rx_payload.c feeds the receive machine (fabric/rx_machine.h) with those that take more than one
 * step. */
#ifndef FABRIC_SHM_RX_H
#define FABRIC_SHM_RX_H

#include "base/killpoint.h"
#include "fabric/shm/shm.h"

/* ---- receive.c ---- */

/* A line of the ring, and the tag of a record that begins there. */
struct place {
    struct record *at;
    uint32_t tag;
};

/* Behind the record in progress, which begins at `at` and has so many lines: it does not wrap. */
static inline struct place behind(const struct rx_channel *r, struct record *at, uint32_t lines)
{
    struct place next = {(struct record *)((uint8_t *)at + lines * RECORD_LINE), r->tag};
    if (unlikely(next.at == r->end)) {
        next.at = (struct record *)r->ring;
        next.tag ^= RECORD_TAG;
    }
    return next;
}

/* Gives `lines` of the ring back to the sender; `next` is behind them. */
static inline void release_lines(struct rx_channel *r, uint32_t lines, struct place next)
{
    r->at = next.at;
    r->tag = next.tag;
    r->head += lines;
    KILL_POINT("record-done");
    atomic_store_explicit(&r->index->head, r->head, memory_order_release);
    KILL_POINT("head-moved");
}

/* Tells the sender that there is room, if it waits for some. */
static inline void tell_room(struct fabric_peer *p, struct rx_channel *r)
{
    light_barrier(p);
    if (unlikely(atomic_load_explicit(&r->index->want, memory_order_relaxed) != 0) &&
        p->remote != NULL) {
        shm_signal(p);
    }
}

/* ---- rx_payload.c ---- */

extern const struct rx_source_ops payload_source;

/* payload_can_move() tells whether the machine would find something to move. */
bool payload_can_move(struct fabric_peer *p, struct rx_channel *r);
/* payload_cell() is a payload that came in one cell before its record, which vouches for it; but
 * which cell that is must be known. NULL: it is not, or its sender could not read the payload.
 * payload_taken() says that the cell is done with. */
const uint8_t *payload_cell(struct fabric_peer *p, struct rx_channel *r);
void payload_taken(struct fabric_peer *p, struct rx_channel *r);

#endif
