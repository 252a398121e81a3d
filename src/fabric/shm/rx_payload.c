/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of the message in hand, on its way from the channel to where the NIC wants it: out of
 * its record, through cells, or from the sender's memory (reference.c).
 *
 *   cells:  cells_head ── kept by the NIC ── cells_taken ── handed over ── cells_tail
 *
 * Packets are used in place. A cell is given back in order, and only when nobody needs it any more:
 * not before its bytes are moved, nor while the NIC keeps them (fabric_rx.held).
 *
 * A packet that the NIC said RX_WAIT to is there when it is asked again, whatever its sender has
 * written since, and though nothing of that is looked at any more: what was handed over stays so.
 *
 * Invariant of progress: where something is in place, it is a byte or more, of one look at the
 * sender's words (payload_here()); payload_move() says true only when it has raised r->moved, which
 * never passes the message's length. A reference that fails is at its end at once, since the sender
 * adds nothing to it; through cells what follows an error still comes, and is discarded.
 */
#include "fabric/shm/in_hand.h"

#include "base/killpoint.h"
#include "base/nic_copy.h"

#define CELL_RUN 8 /* cells emptied before the sender is told, or handed to the NIC at once */

/* The sender uses all cells from now on; none of the first ones was left to take. We
 * back them ourselves as well, since nobody else vouches for it. */
static bool take_more_cells(struct fabric_peer *p, struct rx_channel *r, uint32_t used)
{
    const struct segment_info *g = &p->fabric->segment->info;
    if (used != g->cells ||
        segment_back_cells(p->fabric->segment, p->in_index, (unsigned)(r - p->rx)) != 0) {
        peer_lost(p, "its number of cells is damaged");
        return false;
    }
    r->cells.mask = used - 1;
    segment_touch(cell_at(&r->cells, r->cells.count), more_cells_bytes(g), false);
    return true;
}

uint64_t payload_cells(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t tail = atomic_load_explicit(&r->index->cells_tail, memory_order_acquire);
    uint64_t n = tail - r->cells_taken;
    if (p->broken || n == 0) {
        return 0;
    }
    uint32_t used = atomic_load_explicit(&r->index->cells_used, memory_order_relaxed);
    if (used != 0 && used != r->cells.mask + 1 && !take_more_cells(p, r, used)) {
        return 0;
    }
    if (tail - r->cells_head > r->cells.mask + 1 || n > r->cells.mask + 1) {
        peer_lost(p, "its cell index is damaged");
        return 0;
    }
    return n;
}

/* The packets at r->moved that lie in the peer's buffer. If there are none, the next ones are
 * fetched: not before those in the buffer are out of use, and not after an error. */
static uint8_t *fetched_packets(struct fabric_peer *p, struct rx_channel *r)
{
    size_t most = p->fabric->packet_size * FETCH_PACKETS;
    if (r->fetched == r->moved && r->status == FABRIC_OK && r->rx->held >= r->moved) {
        uint64_t rest = r->rx->length - r->moved;
        uint64_t n = rest < most ? rest : most;
        r->status = p->broken ? FABRIC_UNDELIVERABLE
                              : reference_fetch(p, p->buffer, r->address + r->moved, n);
        r->fetched += r->status == FABRIC_OK ? n : 0;
    }
    return r->fetched != r->moved ? p->buffer + r->moved % most : NULL;
}

struct packets payload_here(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t rest = r->rx->length - r->moved;
    struct packets here = {NULL, rest};
    if (r->mode == RECORD_INLINE) {
        here.data = r->at->data + r->moved;
    } else if (r->mode == RECORD_REF) {
        here.data = fetched_packets(p, r);
        here.bytes = r->fetched - r->moved;
    } else {
        uint64_t cells = payload_cells(p, r), row = cells_in_row(&r->cells, r->cells_taken);
        cells = cells > r->cells_seen ? cells : r->cells_seen;
        cells = cells < row ? cells : row;
        here.data = cells != 0 ? cell_at(&r->cells, r->cells_taken) : NULL;
        here.bytes = (cells < CELL_RUN ? cells : CELL_RUN) * p->fabric->packet_size;
    }
    here.bytes = here.bytes < rest ? here.bytes : rest;
    return here;
}

size_t payload_first(const struct fabric_peer *p, struct packets here)
{
    size_t packet = p->fabric->packet_size;
    return here.bytes < packet ? here.bytes : packet;
}

bool payload_can_move(struct fabric_peer *p, struct rx_channel *r)
{
    switch (r->mode) {
    case RECORD_CELLS:
        return payload_cells(p, r) != 0;
    case RECORD_REF:
        return r->phase == RX_PAYLOAD && (r->fetched != r->moved || r->rx->held >= r->moved);
    default:
        return false;
    }
}

void payload_check(struct rx_channel *r)
{
    if (r->mode == RECORD_CELLS &&
        atomic_load_explicit(&r->at->status, memory_order_relaxed) != 0) {
        r->status = FABRIC_SEGV;
    }
}

bool payload_give(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t head = r->cells_taken;
    if (r->rx->held < r->moved) {
        head = r->first_cell + r->rx->held / p->fabric->packet_size;
    }
    if (head == r->cells_head) {
        return false;
    }
    r->cells_head = head;
    KILL_POINT("cell-taken");
    atomic_store_explicit(&r->index->cells_head, head, memory_order_release);
    return true;
}

/* Puts n bytes of payload, those that begin at r->moved, where they are to stay. */
static int deposit(struct rx_channel *r, const uint8_t *data, size_t n)
{
    const struct fabric_rx *rx = r->rx;
    if (rx->vector != NULL) {
        return vector_scatter(rx->vector, &r->cursor, rx->skip + r->moved, data, n);
    }
    return nic_copy((void *)((uintptr_t)rx->base + r->moved), data, n);
}

/* Brings the bytes of one packet to where the NIC wants them. */
static void place(struct rx_channel *r, const uint8_t *data, size_t n)
{
    const struct fabric_rx *rx = r->rx;
    if (r->status != FABRIC_OK || rx->sink != RX_DEPOSIT || r->moved >= rx->room) {
        return;
    }
    uint64_t fit = rx->room - r->moved < n ? rx->room - r->moved : n;
    if (deposit(r, data, fit) != 0) {
        r->status = FABRIC_SEGV;
    }
}

bool payload_pass(struct fabric_peer *p, struct rx_channel *r, uint64_t n)
{
    size_t packet = p->fabric->packet_size;
    r->moved += n;
    if (r->mode != RECORD_CELLS) {
        return false;
    }
    r->cells_taken += (n + packet - 1) / packet;
    return payload_give(p, r);
}

/* What is left of a reference that failed never comes. */
static bool give_up(struct rx_channel *r)
{
    bool over = r->mode == RECORD_REF && r->status != FABRIC_OK;
    if (over) {
        r->moved = r->rx->length;
    }
    return over;
}

/* Hands the NIC the packets that are here; true if it goes on with what comes next. */
static bool hand_packets(struct fabric_peer *p, struct rx_channel *r)
{
    struct packets here = payload_here(p, r);
    if (here.data == NULL) {
        return give_up(r);
    }
    payload_check(r);
    enum rx_step step = RX_GO;
    if (r->status == FABRIC_OK) {
        step = p->fabric->up->rx_packet(p->np, r->rx, here.data, r->moved, here.bytes);
    }
    r->waiting = step == RX_WAIT;
    uint64_t taken = r->waiting ? r->rx->taken : here.bytes, packet = p->fabric->packet_size;
    if (payload_pass(p, r, taken)) {
        tell_room(p, r);
    }
    r->cells_seen = (here.bytes - taken + packet - 1) / packet;
    return !r->waiting;
}

/* A deposit by reference is made at once; its verdict goes into the record. */
static bool deposit_reference(struct fabric_peer *p, struct rx_channel *r)
{
    struct fabric_rx *rx = r->rx;
    uint64_t n = rx->sink != RX_DEPOSIT ? 0 : rx->room < rx->length ? rx->room : rx->length;
    if (n != 0 && r->status == FABRIC_OK) {
        r->status = p->broken ? FABRIC_UNDELIVERABLE : reference_deposit(p, r, n);
    }
    r->moved = rx->length;
    return true;
}

bool payload_move(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->mode == RECORD_REF && r->rx->sink != RX_PACKETS) {
        return deposit_reference(p, r);
    }
    if (r->rx->sink == RX_PACKETS) {
        return hand_packets(p, r);
    }
    bool moved = false, told = false;
    r->waiting = false;
    r->cells_seen = 0; /* the NIC may have left off taking packets */
    for (unsigned run = 0; r->moved < r->rx->length && run < CELL_RUN; run++) {
        struct packets here = payload_here(p, r);
        if (here.data == NULL) {
            break;
        }
        payload_check(r);
        size_t n = payload_first(p, here);
        place(r, here.data, n);
        told |= payload_pass(p, r, n);
        moved = true;
    }
    if (told) {
        tell_room(p, r);
    }
    return moved;
}

void payload_note_use(struct rx_channel *r)
{
    uint32_t by_packet = r->rx->sink == RX_PACKETS;
    if (r->rx->length > r->cells.size &&
        atomic_load_explicit(&r->index->by_packet, memory_order_relaxed) != by_packet) {
        atomic_store_explicit(&r->index->by_packet, by_packet, memory_order_relaxed);
    }
}

const uint8_t *payload_cell(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->rx->length > p->fabric->packet_size || r->cells_head != r->cells_taken ||
        (r->cells.mask + 1 != p->fabric->segment->info.cells && payload_cells(p, r) == 0)) {
        return NULL;
    }
    payload_check(r);
    return r->status == FABRIC_OK ? cell_at(&r->cells, r->cells_taken) : NULL;
}
