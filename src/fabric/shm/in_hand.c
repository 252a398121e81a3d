/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that is not over in one step, as a state machine.
 *
 *   IDLE ──record──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                      │ RX_WAIT, RX_FIRST    │ no cell yet, RX_WAIT    │ RX_WAIT
 *                      └── stays              └── stays                 └── stays
 *
 * The lines of its record stay ours until it is done, since packets and references are used in
 * place. The NIC's lock may be let go of inside the upcalls and during copies by reference; `busy`
 * keeps other threads off the channel meanwhile.
 */
#include "fabric/shm/in_hand.h"

#define TURNS 64 /* runs of packets of one message before others have their turn */

void hand_payload(struct rx_channel *r)
{
    r->moved = 0;
    r->first_cell = r->cells_taken;
    r->rx->held = FABRIC_HELD_NOTHING;
    r->rx->elsewhere = false;
    r->cursor = (struct vector_cursor){0};
    r->cells_seen = 0;
    r->phase = RX_PAYLOAD;
}

void hand_begin(struct rx_channel *r)
{
    hand_payload(r);
    r->fetched = 0;
    r->rx->first = NULL;
    r->rx->first_length = 0;
    r->rx->sink = RX_DISCARD;
    r->rx->vector = NULL;
    r->phase = RX_HEADER;
}

static bool step_header(struct fabric_peer *p, struct rx_channel *r)
{
    enum rx_step step = p->fabric->up->rx_header(p->np, r->rx);
    r->waiting = false; /* what it asks for may be its sender's to give, see hand_cut() */
    if (step == RX_FIRST && r->rx->first == NULL) {
        bool any = r->rx->length != 0; /* a sender that cannot read it sends the header alone */
        struct packets here = any ? payload_here(p, r) : (struct packets){NULL, 0};
        if (any && here.data == NULL && r->status == FABRIC_OK) {
            return false;
        }
        payload_check(r);
        r->rx->first = here.data;
        r->rx->first_length = here.data != NULL ? payload_first(p, here) : 0;
        r->rx->torn = !any || r->status != FABRIC_OK;
        step = p->fabric->up->rx_header(p->np, r->rx);
    }
    r->waiting = step == RX_WAIT;
    if (step != RX_GO) {
        return false;
    }
    r->phase = RX_PAYLOAD;
    return true;
}

static bool step_done(struct fabric_peer *p, struct rx_channel *r)
{
    payload_check(r);
    r->waiting = p->fabric->up->rx_done(p->np, r->rx, r->status) == RX_WAIT;
    if (r->waiting) {
        return false;
    }
    r->rx->held = FABRIC_HELD_NOTHING;
    if (payload_give(p, r)) {
        tell_room(p, r);
    }
    payload_note_use(r);
    if (r->mode == RECORD_REF) {
        atomic_store_explicit(&r->at->status, r->status == FABRIC_OK ? 0 : 1, memory_order_relaxed);
    }
    r->rx->torn = false;
    r->phase = RX_IDLE;
    release_lines(r, r->lines, behind(r, r->at, r->lines));
    return true;
}

/* Moves payload, as much as is here, or TURNS: a long message, or one whose sender adds to it for
 * ever, does not keep the lock from others. True if all has moved; *moved says if any has. */
static bool step_payload(struct fabric_peer *p, struct rx_channel *r, bool *moved)
{
    for (unsigned turn = 0; r->moved < r->rx->length; turn++) {
        if (turn == TURNS || !payload_move(p, r)) {
            return false;
        }
        *moved = true;
    }
    return true;
}

/* Takes the message in hand as far as it goes. */
bool hand_go_on(struct fabric_peer *p, struct rx_channel *r)
{
    bool moved = false;
    fabric_attend(p->fabric);
    if (r->cells_head != r->cells_taken && payload_give(p, r)) {
        tell_room(p, r);
        moved = true;
    }
    if (r->phase == RX_HEADER) {
        if (!step_header(p, r)) {
            return false;
        }
        moved = true;
    }
    if (r->phase == RX_PAYLOAD) {
        if (!step_payload(p, r, &moved)) {
            return moved;
        }
        r->phase = RX_DONE;
    }
    return step_done(p, r) || moved;
}

/* What waits for our own side only has all it needs, and is left to go on. */
void hand_cut(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->index == NULL || r->busy || r->waiting || r->phase == RX_IDLE) {
        return;
    }
    r->busy = true;
    if (r->phase == RX_HEADER) {
        r->rx->torn = true;
        p->fabric->up->rx_header(p->np, r->rx);
    }
    r->status = FABRIC_UNDELIVERABLE;
    r->moved = r->rx->length;
    r->phase = RX_DONE;
    step_done(p, r);
    r->busy = false;
}
