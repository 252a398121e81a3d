/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the consumer's side do for each other: receive.c takes records, in_hand.c
 * goes on with messages that are not over in one step, rx_payload.c moves their payload.
 */
#ifndef FABRIC_SHM_IN_HAND_H
#define FABRIC_SHM_IN_HAND_H

#include "base/killpoint.h"
#include "fabric/shm/shm.h"

/* ---- receive.c ---- */

static inline struct record *line_behind(struct record *at, uint32_t lines)
{
    return (struct record *)((uint8_t *)at + lines * RECORD_LINE);
}

/* A line of the ring, and the tag of a record that begins there. */
struct place {
    struct record *at;
    uint32_t tag;
};

/* Behind the record in hand, which begins at `at` and has so many lines: it does not wrap. */
static inline struct place behind(const struct rx_channel *r, struct record *at, uint32_t lines)
{
    struct place next = {line_behind(at, lines), r->tag};
    if (rare(next.at == r->end)) {
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
    if (rare(atomic_load_explicit(&r->index->want, memory_order_relaxed) != 0) &&
        p->remote != NULL) {
        shm_signal(p);
    }
}

/* ---- in_hand.c ---- */

/* hand_take() notes of a record what is to be known while its message is in hand. */
static inline void hand_take(struct rx_channel *r, enum record_mode mode, size_t lines,
                             enum fabric_status status)
{
    r->mode = mode;
    r->lines = (uint32_t)lines;
    r->status = status;
}

/* hand_begin() begins to go through the phases with it, hand_payload() in the middle: where the
 * sink is known. */
void hand_begin(struct rx_channel *r);
void hand_payload(struct rx_channel *r);
/* hand_go_on() goes on with it; true if it did. If it is over then, the next one has its turn. */
bool hand_go_on(struct fabric_peer *p, struct rx_channel *r);
/* hand_cut() ends the message in hand of a channel whose sender is gone. */
void hand_cut(struct fabric_peer *p, struct rx_channel *r);

/* ---- rx_payload.c ---- */

/* payload_cells() tells how many cells the sender has handed over and we have not taken. */
uint64_t payload_cells(struct fabric_peer *p, struct rx_channel *r);
/* payload_here() is what lies in place from r->moved on, of which there is more to come: packets
 * one behind the other, or none (`data` is NULL) if the next one is not here, or, by reference,
 * cannot be read: r->status says so. payload_first() is the length of the first of them.
 * payload_check() learns whether the sender could read them. */
struct packets {
    uint8_t *data;
    uint64_t bytes; /* not 0 where there are any */
};
struct packets payload_here(struct fabric_peer *p, struct rx_channel *r);
size_t payload_first(const struct fabric_peer *p, struct packets here);
void payload_check(struct rx_channel *r);
/* payload_can_move() tells whether payload_move() would find something to move. */
bool payload_can_move(struct fabric_peer *p, struct rx_channel *r);
/* payload_cell() is a payload that came in one cell before its record, which vouches for it; but
 * which cell that is must be known. NULL: it is not, or its sender could not read the payload. */
const uint8_t *payload_cell(struct fabric_peer *p, struct rx_channel *r);
/* payload_move() moves payload, of which some has not moved; true if any did. */
bool payload_move(struct fabric_peer *p, struct rx_channel *r);
/* payload_pass(): the next n bytes are the NIC's, or done with. payload_give() gives the cells that
 * nobody needs any more back to the sender. True if there were any. */
bool payload_pass(struct fabric_peer *p, struct rx_channel *r, uint64_t n);
bool payload_give(struct fabric_peer *p, struct rx_channel *r);
/* payload_note_use() tells the sender how a payload of several cells was used. */
void payload_note_use(struct rx_channel *r);

#endif
