/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of a channel: payloads that do not fit a record. They go through cells, which
 * cells_tail hands over; or the record is a reference, and the peer reads the sender's memory.
 *
 *   tx_send_long() ──► sent        the payload fits the free cells
 *              ├─────► filling     its record is written, its cells are filled as they become free
 *              └─────► referred    its record is written, and the peer has not taken it out yet
 *
 * tx_advance() goes on with both, and tells the NIC when one has been sent.
 * Invariants: cells_tail - cells_head <= cells; payload of `filling` enters the cells in the order
 * of the records.
 */
#include "fabric/shm/tx_payload.h"

#include "base/log.h"
#include "fabric/shm/send.h"
#include "fabric/shm/teardown.h"
#include "fabric/shm/tx.h"

#include <string.h>

#define HAND_OVER 4 /* cells handed over at a time, in the middle of a payload */
#define FILL_RUN 32 /* cells filled before incoming messages have their turn */
#define TIMED 8     /* one cell in so many is timed */
#define SLOW_BYTES_NS 4
#define SAMPLES 0xffffu /* bits of the timed cells that count */
#define FAR_FROM 12     /* if so many of these were slow the peer is far */
#define NEAR_FROM 4     /* if only so many were slow it is near */
#define FAR_PROBE 32    /* one in so many large messages to a far peer goes through cells */
/* The sender goes so many times round its first cells before it takes the others into use. Each
 * page of new memory costs it as much time as a message of one cell, or more, which a sender of
 * few messages does not earn back. */
#define GROW_AFTER 24

enum large { LARGE_AUTO, LARGE_CELLS, LARGE_VM }; /* values of PINWHEEL_SHM_LARGE */

static void refresh_cells(struct shm_peer *p, struct tx_channel *t)
{
    uint64_t head = atomic_load_explicit(&t->index->cells_head, memory_order_acquire);
    if (head - t->cells_head_seen > t->cells_tail - t->cells_head_seen) {
        peer_lost(p, "its cell index is damaged");
        return;
    }
    t->cells_head_seen = head;
}

/* Whether a payload goes by reference rather than through cells. To a peer that is far, one message
 * now and then goes through cells, to learn whether the peer still is far: processes move. A
 * payload that handlers take packet by packet goes through cells at any distance: they work on the
 * first packets while the sender fills the others. */
static bool by_reference(const struct shm_peer *p, struct tx_channel *t, const struct fabric_tx *tx)
{
    const struct options *o = p->fabric->setup.options;
    if (tx->at_once || tx->vector != NULL || /* a reference has a single address */
        /* the receiver's buffer is for packets of the REQUEST class */
        t == &p->tx[FABRIC_ASK] ||
        atomic_load_explicit(&p->out->references, memory_order_relaxed) == 0 ||
        record_max_lines((uint32_t)t->line_mask + 1) < 2) {
        return false;
    }
    if (o->number[OPT_SHM_LARGE] != LARGE_AUTO) {
        return o->number[OPT_SHM_LARGE] == LARGE_VM;
    }
    if (tx->length >= (uint64_t)o->number[OPT_SHM_VM_MIN]) {
        return true;
    }
    return tx->length >= (uint64_t)o->number[OPT_SHM_VM_FAR] && t->far &&
           atomic_load_explicit(&t->index->by_packet, memory_order_relaxed) == 0 &&
           ++t->large % FAR_PROBE != 0;
}

/* Returns the number of free cells, by the index read last; 0 while `draining`. */
static uint64_t cells_free(const struct tx_channel *t)
{
    return t->draining ? 0 : t->cells.mask + 1 - (t->cells_tail - t->cells_head_seen);
}

/* Takes more cells into use when none is in use: the first ones for the first payload, and all once
 * the first ones are empty again. */
static void use_more_cells(struct shm_peer *p, struct tx_channel *t)
{
    if (!t->draining || t->cells_tail != t->cells_head_seen) {
        return;
    }
    t->draining = false;
    if (t->cells_tail == 0) {
        segment_touch(t->cells.first, (uint64_t)t->cells.count * t->cells.size, true);
        return;
    }
    t->all_cells = true;
    int rc = segment_back_cells(p->remote, p->out_index, (unsigned)(t - p->tx));
    if (rc != 0) {
        log_line(LOG_INFO, "large messages stay slow, no memory for more cells: %s", strerror(rc));
        return;
    }
    t->cells.mask = p->remote->info.cells - 1;
    segment_touch(cell_at(&t->cells, t->cells.count), more_cells_bytes(&p->remote->info), true);
    atomic_store_explicit(&t->index->cells_used, p->remote->info.cells, memory_order_relaxed);
    KILL_POINT("cells-used");
}

/* Returns the number of free cells, and reads the peer's index first if fewer than `needed` seem
 * free. */
static uint64_t find_cells(struct shm_peer *p, struct tx_channel *t, uint64_t needed)
{
    if (cells_free(t) < needed) {
        refresh_cells(p, t);
        use_more_cells(p, t);
    }
    return p->dying ? 0 : cells_free(t);
}

static void hand_over(struct tx_channel *t)
{
    atomic_store_explicit(&t->index->cells_tail, t->cells_tail, memory_order_release);
    KILL_POINT("cell-published");
}

/* Fills a cell, and times one of TIMED to find out how far away the receiver's core is. A cell
 * whose lines another core of the same cache has emptied is filled at 8 GB/s and more, one that a
 * core far away has at 2 to 3 GB/s; there one copy by process_vm_readv is faster. */
static int fill_timed(struct tx_channel *t, uint8_t *cell, struct fabric_tx *tx, size_t n)
{
    if (n < t->cells.size || t->cells_tail % TIMED != 0) {
        return tx_take_payload(cell, tx, tx->moved, n);
    }
    int64_t start = clock_ns();
    int rc = tx_take_payload(cell, tx, tx->moved, n);
    bool slow = (uint64_t)(clock_ns() - start) * SLOW_BYTES_NS > n;
    t->slow = (t->slow << 1 | slow) & SAMPLES;
    int slow_ones = __builtin_popcount(t->slow);
    t->far = t->far ? slow_ones > NEAR_FROM : slow_ones >= FAR_FROM;
    return rc;
}

/* Copies payload into free cells, `most` of them; true if any was copied. It hands the first two
 * over one by one, so that the receiver can begin, and then HAND_OVER at a time. If the source
 * turns out to be unreadable, or is taken back, it marks the record, and the rest of the cells
 * carry nothing. */
static bool fill_cells(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx,
                       uint64_t most)
{
    uint64_t filled = 0;
    while (filled < most && tx->moved < tx->length && find_cells(p, t, 1) != 0) {
        uint64_t rest = tx->length - tx->moved;
        size_t n = rest < t->cells.size ? rest : t->cells.size;
        uint8_t *cell = cell_at(&t->cells, t->cells_tail);
        if (tx->fault == FABRIC_OK && fill_timed(t, cell, tx, n) != 0) {
            tx->fault = FABRIC_SEGV;
        }
        if (tx->fault != FABRIC_OK) {
            atomic_store_explicit(&tx_line(t, tx->record)->status, FABRIC_SEGV,
                                  memory_order_relaxed);
        }
        KILL_POINT("cell-filled");
        tx->moved += n;
        t->cells_tail++;
        if (++filled <= 2 || filled % HAND_OVER == 0) {
            hand_over(t);
        }
    }
    if (filled != 0) {
        hand_over(t);
        p->fabric->flowing = tx->length > t->cells.size ? p : p->fabric->flowing;
    }
    return filled != 0;
}

/* Whether all of a payload fits the cells that are free now. */
static bool fits_cells(struct shm_peer *p, struct tx_channel *t, uint64_t length)
{
    uint64_t needed = length / t->cells.size + (length % t->cells.size != 0);
    return list_empty(&t->filling) && needed <= t->cells.mask + 1 &&
           find_cells(p, t, needed) >= needed;
}

/* Sends a payload of one cell. It fills the cell before the record, so that a receiver that finds
 * the record has all of the message. */
static enum fabric_send send_cell(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx)
{
    struct record *r = tx_reserve(p, t, 1);
    if (r == NULL) {
        return FABRIC_FULL;
    }
    tx->cursor = (struct vector_cursor){0};
    tx->moved = 0;
    if (fill_timed(t, cell_at(&t->cells, t->cells_tail), tx, tx->length) != 0) {
        tx->fault = FABRIC_SEGV;
    }
    KILL_POINT("cell-filled");
    t->cells_tail++;
    hand_over(t);
    tx_set_record(r, tx->header, tx->fault);
    r->length = tx->length;
    tx_publish(t, RECORD_CELLS, RECORD_WHOLE, 1);
    shm_signal(p);
    return FABRIC_SENT;
}

enum fabric_send tx_send_long(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx)
{
    /* Decided only here, since a message that must leave at once must not find half of the cells
     * closed. */
    t->draining |= !t->all_cells && t->cells_tail >= GROW_AFTER * t->cells.count;
    if (tx->at_once && !fits_cells(p, t, tx->length)) {
        return FABRIC_FULL;
    }
    bool reference = by_reference(p, t, tx);
    if (!reference && tx->length <= t->cells.size && fits_cells(p, t, tx->length)) {
        return send_cell(p, t, tx);
    }
    struct record *r = tx_reserve(p, t, reference ? 2 : 1);
    if (r == NULL) {
        return FABRIC_FULL;
    }
    tx_set_record(r, tx->header, FABRIC_OK);
    r->length = tx->length;
    tx->cursor = (struct vector_cursor){0};
    tx->moved = 0;
    tx->record = t->tail;
    if (reference) {
        r->address = (uint64_t)(uintptr_t)tx->base;
        tx_publish(t, RECORD_REF, 0, 2);
        tx->record_end = t->tail;
        tx_watch(p, t);
        list_push_back(&t->referred, &tx->link);
        shm_signal(p);
        return FABRIC_QUEUED;
    }
    tx_publish(t, RECORD_CELLS, 0, 1);
    shm_signal(p);
    if (list_empty(&t->filling)) {
        fill_cells(p, t, tx, t->cells.mask + 1);
        shm_signal(p);
        if (tx->moved == tx->length) {
            return FABRIC_SENT;
        }
    }
    tx_watch(p, t);
    list_push_back(&t->filling, &tx->link);
    return FABRIC_QUEUED;
}

static bool advance_filling(struct shm_peer *p, struct tx_channel *t)
{
    struct fabric_tx *tx = LIST_FIRST(struct fabric_tx, &t->filling, link);
    if (tx == NULL || p->dying || !fill_cells(p, t, tx, FILL_RUN)) {
        return false;
    }
    if (tx->moved == tx->length) {
        list_remove(&tx->link);
        p->fabric->setup.up->sent(p->np, tx, tx->fault);
    }
    shm_signal(p);
    return true;
}

static bool advance_referred(struct shm_peer *p, struct tx_channel *t)
{
    bool moved = false;
    struct fabric_tx *tx;
    if (!list_empty(&t->referred)) {
        tx_refresh_head(p, t);
    }
    while ((tx = LIST_FIRST(struct fabric_tx, &t->referred, link)) != NULL && !p->dying &&
           t->head_seen >= tx->record_end) {
        list_remove(&tx->link);
        p->fabric->setup.up->sent(p->np, tx, tx->fault);
        moved = true;
    }
    return moved;
}

/* Notes that there is room where there was none; the NIC then sends the messages that wait. */
static bool advance_starved(struct shm_peer *p, struct tx_channel *t)
{
    uint64_t before = t->head_seen;
    if (t->starved) {
        tx_refresh_head(p, t);
        t->starved = t->head_seen == before;
        return !t->starved;
    }
    return false;
}

bool tx_advance(struct shm_peer *p)
{
    bool moved = false;
    for (int c = FABRIC_CLASSES - 1; c >= 0; c--) {
        struct tx_channel *t = &p->tx[c];
        if (t->index == NULL) {
            continue;
        }
        moved |= advance_filling(p, t);
        moved |= advance_referred(p, t);
        moved |= advance_starved(p, t);
        if (!t->starved && !tx_under_way(t) &&
            atomic_load_explicit(&t->index->want, memory_order_relaxed) != 0) {
            atomic_store_explicit(&t->index->want, 0, memory_order_relaxed);
        }
    }
    return moved;
}

bool tx_pending(const struct shm_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        if (p->tx[c].starved || tx_under_way(&p->tx[c])) {
            return true;
        }
    }
    return false;
}

bool tx_flows(struct shm_peer *p)
{
    bool moved = false;
    for (struct tx_channel *t = p->tx; t < p->tx + FABRIC_CLASSES; t++) {
        uint64_t before = t->cells_head_seen;
        if (before != t->cells_tail) {
            refresh_cells(p, t);
            moved |= t->cells_head_seen != before;
        }
    }
    return moved;
}

bool tx_has_room(struct shm_peer *p)
{
    for (struct tx_channel *t = p->tx; t < p->tx + FABRIC_CLASSES; t++) {
        uint64_t head = t->head_seen, cells = t->cells_head_seen;
        if (t->starved || !list_empty(&t->referred)) {
            tx_refresh_head(p, t);
        }
        if (!list_empty(&t->filling)) {
            refresh_cells(p, t);
        }
        if (head != t->head_seen || cells != t->cells_head_seen) {
            return true;
        }
    }
    return p->dying;
}

void tx_cancel(struct shm_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct list *lists[] = {&p->tx[c].filling, &p->tx[c].referred};
        for (unsigned i = 0; i < 2; i++) {
            for (struct fabric_tx *tx; (tx = LIST_POP(struct fabric_tx, lists[i], link)) != NULL;) {
                p->fabric->setup.up->sent(p->np, tx, FABRIC_UNDELIVERABLE);
            }
        }
    }
}
