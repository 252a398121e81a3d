/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of the message in hand, on its way from the channel to where the NIC wants it: out of
 * its record, through cells, or from the sender's memory (reference.c).
 *
 *   cells:  cells_head ── kept by the NIC ── cells_taken ── handed over ── cells_tail
 *
 * Packets are used in place. A cell is given back in order, and only when nobody needs it any more:
 * not before its bytes are moved, nor while the NIC keeps them (fabric_rx.held).
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

size_t payload_length(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t rest = r->rx->length - r->moved;
    size_t packet = p->fabric->packet_size;
    return rest < packet ? rest : packet;
}

uint8_t *payload_packet(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->mode == RECORD_INLINE) {
        return r->at->data + r->moved;
    }
    if (r->mode == RECORD_CELLS) {
        return payload_cells(p, r) != 0 ? cell_at(&r->cells, r->cells_taken) : NULL;
    }
    size_t packets = p->fabric->packet_size * FETCH_PACKETS;
    if (r->fetched == r->moved && r->status == FABRIC_OK) {
        if (r->rx->held < r->moved) {
            return NULL; /* the buffer has packets that are in use */
        }
        uint64_t rest = r->rx->length - r->moved;
        uint64_t n = rest < packets ? rest : packets;
        r->status = reference_fetch(p, p->buffer, r->address + r->moved, n);
        r->fetched = r->moved + n;
    }
    return p->buffer + r->moved % packets;
}

/* Bytes of payload that lie in place behind the packet at r->moved, which does, and with it. */
static uint64_t bytes_in_place(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t rest = r->rx->length - r->moved;
    uint64_t here = rest;
    if (r->mode == RECORD_CELLS) {
        uint64_t cells = payload_cells(p, r), row = cells_in_row(&r->cells, r->cells_taken);
        cells = cells < row ? cells : row;
        here = (cells < CELL_RUN ? cells : CELL_RUN) * p->fabric->packet_size;
    } else if (r->mode == RECORD_REF) {
        here = r->fetched - r->moved;
    }
    return here < rest ? here : rest;
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

/* Hands the NIC the packets that are here; true if it goes on with what comes next. */
static bool hand_packets(struct fabric_peer *p, struct rx_channel *r)
{
    uint8_t *data = payload_packet(p, r);
    if (data == NULL) {
        return false;
    }
    uint64_t n = bytes_in_place(p, r);
    payload_check(r);
    enum rx_step step = RX_GO;
    if (r->status == FABRIC_OK) {
        step = p->fabric->up->rx_packet(p->np, r->rx, data, r->moved, n);
    }
    r->waiting = step == RX_WAIT;
    if (payload_pass(p, r, r->waiting ? r->rx->taken : n)) {
        tell_room(p, r);
    }
    return !r->waiting;
}

/* A deposit by reference is made at once; its verdict goes into the record. */
static bool deposit_reference(struct fabric_peer *p, struct rx_channel *r)
{
    struct fabric_rx *rx = r->rx;
    uint64_t n = rx->sink != RX_DEPOSIT ? 0 : rx->room < rx->length ? rx->room : rx->length;
    if (n != 0) {
        r->status = reference_deposit(p, r, n);
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
    for (unsigned run = 0; r->moved < r->rx->length && run < CELL_RUN; run++) {
        uint8_t *data = payload_packet(p, r);
        if (data == NULL) {
            break;
        }
        payload_check(r);
        size_t n = payload_length(p, r);
        place(r, data, n);
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
