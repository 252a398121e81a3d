/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payload of the message in progress, as a source of the receive machine: out of its record,
 * through cells, or from the sender's memory (reference.c).
 *
 *   cells:  cells_head ── kept by the NIC ── cells_taken ── handed over ── cells_tail
 *
 * The receiver gives the lines of the record back when the message has ended, since packets and
 * references are used in place. It gives cells back in order, each when its bytes were moved and
 * the NIC no longer keeps them (fabric_rx.held).
 *
 * A packet that the NIC was shown once is shown again when it asks, even if the sender was found
 * broken meanwhile: cells that were handed over stay so.
 *
 * A reference that fails is done at once, as the sender adds nothing to it. Through cells the bytes
 * behind an error still come, and are discarded.
 */
#include "fabric/shm/rx_payload.h"

#include "fabric/shm/reference.h"
#include "fabric/shm/rx.h"
#include "fabric/shm/teardown.h"

#define CELL_RUN 8 /* cells emptied before the sender is told, or given to the NIC at once */

static struct rx_channel *channel_of(struct rx_machine *m)
{
    return container_of(m, struct rx_channel, m);
}

static struct shm_peer *peer_of(const struct rx_machine *m)
{
    return container_of(m->source, struct shm_peer, source);
}

/* Takes all cells into use, as the sender has done; it did so when the first ones were empty. The
 * receiver backs the others with memory itself, too, as it cannot trust the sender to have done
 * so. */
static bool take_more_cells(struct shm_peer *p, struct rx_channel *r, uint32_t used)
{
    const struct segment_info *g = &p->fabric->segment->info;
    if (used != g->cells || r == &p->rx[FABRIC_ASK] ||
        segment_back_cells(p->fabric->segment, p->in_index, (unsigned)(r - p->rx)) != 0) {
        peer_lost(p, "its number of cells is damaged");
        return false;
    }
    r->cells.mask = used - 1;
    segment_touch(cell_at(&r->cells, r->cells.count), more_cells_bytes(g), false);
    return true;
}

/* Returns how many cells the sender has handed over that were not taken yet. */
static uint64_t payload_cells(struct shm_peer *p, struct rx_channel *r)
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

/* Returns the packets from m->moved on that are in the peer's buffer. If there are none it fetches
 * the next ones, but not while the NIC keeps those in the buffer, and not after an error. */
static struct rx_span fetched_packets(struct shm_peer *p, struct rx_channel *r)
{
    struct rx_machine *m = &r->m;
    size_t most = p->fabric->setup.packet_size * FETCH_PACKETS;
    uint64_t rest = m->rx->length - m->moved;
    if (r->fetched == m->moved && m->status == FABRIC_OK && m->rx->held >= m->moved) {
        uint64_t n = rest < most ? rest : most;
        m->status = p->broken ? FABRIC_UNDELIVERABLE
                              : reference_fetch(p, p->buffer, r->address + m->moved, n);
        r->fetched += m->status == FABRIC_OK ? n : 0;
    }
    if (r->fetched != m->moved) {
        return (struct rx_span){p->buffer + m->moved % most, r->fetched - m->moved};
    }
    return (struct rx_span){NULL, m->status != FABRIC_OK ? rest : 0};
}

/* Copies a deposit by reference at once, and stores the result in the record. */
static struct rx_span deposit_reference(struct shm_peer *p, struct rx_channel *r)
{
    struct fabric_rx *rx = r->m.rx;
    uint64_t n = rx->sink != RX_DEPOSIT ? 0 : rx->room < rx->length ? rx->room : rx->length;
    if (n != 0 && r->m.status == FABRIC_OK) {
        r->m.status = p->broken ? FABRIC_UNDELIVERABLE : reference_deposit(p, r, n);
    }
    return (struct rx_span){NULL, rx->length - r->m.moved};
}

/* Notes whether the sender could not read the payload that it has put into cells. */
static void check_cells(struct rx_channel *r)
{
    if (atomic_load_explicit(&r->at->status, memory_order_relaxed) != 0) {
        r->m.status = FABRIC_SEGV;
    }
}

/* Returns the bytes of one cell, or for handlers of several that follow each other. */
static struct rx_span cells_here(struct shm_peer *p, struct rx_channel *r, bool packets)
{
    uint64_t cells = payload_cells(p, r), row = cells_in_row(&r->cells, r->cells_taken);
    uint64_t most = packets ? CELL_RUN : 1, rest = r->m.rx->length - r->m.moved;
    r->cells_seen = packets ? r->cells_seen : 0; /* the NIC may have ended the packets meanwhile */
    cells = cells > r->cells_seen ? cells : r->cells_seen;
    cells = cells < row ? cells : row;
    cells = cells < most ? cells : most;
    if (cells == 0) {
        return (struct rx_span){NULL, 0};
    }
    r->cells_seen = packets ? cells : 0;
    check_cells(r);
    uint64_t bytes = cells * p->fabric->setup.packet_size;
    return (struct rx_span){cell_at(&r->cells, r->cells_taken), bytes < rest ? bytes : rest};
}

static struct rx_span payload_here(struct rx_machine *m, bool packets)
{
    struct rx_channel *r = channel_of(m);
    switch (r->mode) {
    case RECORD_INLINE:
        return (struct rx_span){r->at->data + m->moved, m->rx->length - m->moved};
    case RECORD_REF:
        return packets || m->rx->sink == RX_PACKETS ? fetched_packets(peer_of(m), r)
                                                    : deposit_reference(peer_of(m), r);
    default:
        return cells_here(peer_of(m), r, packets);
    }
}

bool payload_can_move(struct shm_peer *p, struct rx_channel *r)
{
    switch (r->mode) {
    case RECORD_CELLS:
        return payload_cells(p, r) != 0;
    case RECORD_REF:
        return r->m.phase == RX_PAYLOAD &&
               (r->fetched != r->m.moved || r->m.rx->held >= r->m.moved);
    default:
        return false;
    }
}

/* Gives the cells that are done with back to the sender; true if there were any. */
static bool give_cells(struct shm_peer *p, struct rx_channel *r)
{
    uint64_t head = r->cells_taken;
    if (r->m.rx->held < r->m.moved) {
        head = r->first_cell + r->m.rx->held / p->fabric->setup.packet_size;
    }
    if (head == r->cells_head) {
        return false;
    }
    r->cells_head = head;
    KILL_POINT("cell-taken");
    atomic_store_explicit(&r->index->cells_head, head, memory_order_release);
    return true;
}

/* The machine has done with n bytes. The sender is told now and then of cells that are emptied one
 * by one; receive.c tells it of the last ones. */
static void payload_pass(struct rx_machine *m, uint64_t n, bool kept)
{
    struct rx_channel *r = channel_of(m);
    struct shm_peer *p = peer_of(m);
    if (r->mode != RECORD_CELLS) {
        return;
    }
    size_t packet = p->fabric->setup.packet_size;
    uint64_t cells = (n + packet - 1) / packet;
    r->cells_taken += cells;
    r->cells_seen -= cells < r->cells_seen ? cells : r->cells_seen;
    if (give_cells(p, r) && (cells != 1 || r->cells_taken % CELL_RUN == 0)) {
        tell_room(p, r);
    }
}

static bool payload_settle(struct rx_machine *m)
{
    struct rx_channel *r = channel_of(m);
    if (r->cells_head == r->cells_taken || !give_cells(peer_of(m), r)) {
        return false;
    }
    tell_room(peer_of(m), r);
    return true;
}

/* Tells the sender whether handlers used a payload of several cells packet by packet. */
static void note_use(struct rx_channel *r)
{
    uint32_t by_packet = r->m.rx->sink == RX_PACKETS;
    if (r->m.rx->length > r->cells.size &&
        atomic_load_explicit(&r->index->by_packet, memory_order_relaxed) != by_packet) {
        atomic_store_explicit(&r->index->by_packet, by_packet, memory_order_relaxed);
    }
}

static void payload_over(struct rx_machine *m)
{
    struct rx_channel *r = channel_of(m);
    (void)payload_settle(m);
    note_use(r);
    if (r->mode == RECORD_REF) {
        atomic_store_explicit(&r->at->status, m->status == FABRIC_OK ? 0 : 1, memory_order_relaxed);
    }
    release_lines(r, r->lines, behind(r, r->at, r->lines));
}

const struct rx_source_ops payload_source = {payload_here, payload_pass, payload_settle,
                                             payload_over};

const uint8_t *payload_cell(struct shm_peer *p, struct rx_channel *r)
{
    if (r->m.rx->length > p->fabric->setup.packet_size || r->cells_head != r->cells_taken ||
        (r->cells.mask + 1 != p->fabric->segment->info.cells && payload_cells(p, r) == 0)) {
        return NULL;
    }
    check_cells(r);
    return r->m.status == FABRIC_OK ? cell_at(&r->cells, r->cells_taken) : NULL;
}

void payload_taken(struct shm_peer *p, struct rx_channel *r)
{
    r->cells_taken++;
    if (give_cells(p, r)) {
        tell_room(p, r);
    }
}
