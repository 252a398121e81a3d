/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's side of a channel.
 *
 *     head ──► | taken out, free | records ...          | 0 | free ...
 *                                                  tail ──┘
 *
 * A record is published by its first word, stored last. The line behind it holds the
 * word of a record of the lap before, whose tag is another one, or 0: lines that held
 * something else since are remembered in `stale`, and zeroed when they come next; so
 * one line always stays free. A stream of short records zeroes nothing, and each of its
 * lines crosses over once. A record never wraps: a pad fills the ring's end. Cells are handed over
 * by cells_tail. Invariants: tail - head < lines; cells_tail - cells_head <= cells; payload of
 * `filling` enters the cells in the order of the records.
 */
#include "fabric/shm/shm.h"

#include "base/cancel.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

#define HAND_OVER 4 /* cells handed over at once, in the middle of a payload */
#define FILL_RUN 32 /* cells filled before what comes in has its turn */
#define TIMED 8     /* of so many cells one is timed */
#define SLOW_BYTES_NS 4
#define SAMPLES 0xffffu /* timed cells that count: */
#define FAR_FROM 12     /* so many slow ones, and the peer is far, */
#define NEAR_FROM 4     /* so few, and it is near */
#define FAR_PROBE 32    /* of so many large messages to a far peer one goes through cells */
#define SENT_ON 3       /* who sends so many records without an answer sends more: the line */
#define AHEAD 2         /* that comes so many later is fetched. The peer is not there yet. */
#define GROW_AFTER 4    /* passes through the first cells before all are used */

bool tx_allocate(struct fabric_peer *p, const struct segment_info *g)
{
    bool done = true;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        p->tx[c].stale = calloc(g->ring_lines, sizeof(*p->tx[c].stale));
        done &= p->tx[c].stale != NULL;
    }
    return done;
}

void tx_free(struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        free(p->tx[c].stale);
        p->tx[c].stale = NULL;
    }
}

void tx_attach(struct fabric_peer *p, struct slot *slot)
{
    const struct segment_info *g = &p->remote->info;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct tx_channel *t = &p->tx[c];
        t->ring = slot_ring(slot, c, g->ring_lines);
        cells_attach(&t->cells, slot, c, g);
        t->all_cells = t->cells.count == g->cells;
        t->index = &slot->channel[c];
        t->line_mask = g->ring_lines - 1;
    }
    p->out = slot;
    p->inline_max = inline_most(p->fabric->options, g->ring_lines);
}

/* Wakes a sleeper: its thread on the futex, or its NIC thread by its socket. A
 * full queue has rung already, a missing listener is dead. */
void shm_ring(struct fabric *f, struct segment *s, uint32_t bell)
{
    atomic_fetch_or(&s->header->bell, BELL_RUNG);
    KILL_POINT("rung");
    if ((bell & BELL_STATE) == BELL_ASLEEP_FUTEX) {
        futex_wake(&s->header->bell);
        return;
    }
    struct sockaddr_un to;
    socklen_t length = bell_address(&to, &s->info);
    int cancel = cancel_off();
    sendto(f->ring_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, length);
    cancel_back(cancel);
}

static inline void signal_peer(struct fabric_peer *p)
{
    struct segment_header *h = p->remote->header;
    light_barrier(p);
    _Atomic uint64_t *word = &h->bitmap[p->out_index / 64];
    uint64_t bit = 1ull << (p->out_index % 64);
    if (rare((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0)) {
        atomic_fetch_or(word, bit);
        KILL_POINT("bit-set");
    }
    uint32_t bell = atomic_load_explicit(&h->bell, memory_order_relaxed);
    if (rare(bell_asleep(bell)) && (bell | BELL_RUNG) != p->rung) {
        p->rung = bell | BELL_RUNG;
        shm_ring(p->fabric, p->remote, bell);
    }
}

void shm_signal(struct fabric_peer *p)
{
    signal_peer(p);
}

static inline struct record *line_at(const struct tx_channel *t, uint64_t line)
{
    return (struct record *)(t->ring + (line & t->line_mask) * RECORD_LINE);
}

/* Reads how far the peer has taken out; a head that cannot be is a broken peer.
 * The lines behind it are ours to write again, so the verdicts on references
 * that stand in them are read now. */
static void refresh_head(struct fabric_peer *p, struct tx_channel *t)
{
    uint64_t head = atomic_load_explicit(&t->index->head, memory_order_acquire);
    if (head == t->head_seen) {
        return;
    }
    if (head - t->head_seen > t->tail - t->head_seen) {
        peer_lost(p, "its ring index is damaged");
        return;
    }
    for (struct list *l = t->referred.next; l != &t->referred; l = l->next) {
        struct fabric_tx *tx = container_of(l, struct fabric_tx, link);
        if (tx->record_end > head) {
            break;
        }
        if (tx->record_end > t->head_seen &&
            atomic_load_explicit(&line_at(t, tx->record)->status, memory_order_relaxed) != 0) {
            tx->fault = FABRIC_SEGV;
        }
    }
    t->head_seen = head;
}

static void refresh_cells(struct fabric_peer *p, struct tx_channel *t)
{
    uint64_t head = atomic_load_explicit(&t->index->cells_head, memory_order_acquire);
    if (head - t->cells_head_seen > t->cells_tail - t->cells_head_seen) {
        peer_lost(p, "its cell index is damaged");
        return;
    }
    t->cells_head_seen = head;
}

/* Makes the record at tail visible. A line that the consumer will look at holds a word
 * of an earlier lap, 0, or is zeroed now. */
static inline void publish(struct tx_channel *t, enum record_mode mode, size_t bytes, size_t lines)
{
    struct record *r = line_at(t, t->tail);
    uint32_t tag = record_tag(t->tail, t->line_mask);
    t->stale[t->tail & t->line_mask] = false;
    for (size_t i = 1; i < lines; i++) {
        t->stale[(t->tail + i) & t->line_mask] = true;
    }
    t->tail += lines;
    if (rare(t->stale[t->tail & t->line_mask])) {
        t->stale[t->tail & t->line_mask] = false;
        atomic_store_explicit(&line_at(t, t->tail)->word, 0, memory_order_relaxed);
    }
    KILL_POINT("record-written");
    atomic_store_explicit(&r->word, record_word(mode, bytes, lines, tag), memory_order_release);
    KILL_POINT("record-published");
}

/* From here on the peer's progress is ours to watch. */
static void watch(struct fabric_peer *p, struct tx_channel *t)
{
    atomic_store_explicit(&t->index->want, 1, memory_order_relaxed);
    fabric_attend(p->fabric);
    if (list_empty(&p->active)) {
        list_push_back(&p->fabric->active, &p->active);
    }
}

/* No room for a record of `lines` at tail, padding included, as far as we know. */
static inline bool crowded(const struct tx_channel *t, uint64_t lines)
{
    return t->tail - t->head_seen + lines > t->line_mask;
}

static bool make_room(struct fabric_peer *p, struct tx_channel *t, uint64_t lines)
{
    refresh_head(p, t);
    if (crowded(t, lines)) {
        watch(p, t);
        t->starved = true;
        return false;
    }
    return true;
}

/* Makes room for a record of `lines` at tail and returns it, or NULL. */
static inline struct record *reserve(struct fabric_peer *p, struct tx_channel *t, uint64_t lines)
{
    uint64_t to_end = t->line_mask + 1 - (t->tail & t->line_mask);
    uint64_t pad = lines > to_end ? to_end : 0;
    if (rare(crowded(t, pad + lines)) && !make_room(p, t, pad + lines)) {
        return NULL;
    }
    t->starved = false;
    if (pad != 0) {
        publish(t, RECORD_PAD, 0, pad);
    }
    return line_at(t, t->tail);
}

static inline void set_record(struct record *r, const void *header, enum fabric_status status)
{
    /* Word by word, as the NIC wrote it just now: a wider load would wait until those
     * stores are in the cache, and with them all stores before. */
    const uint64_t *from = header;
#pragma GCC unroll 6
    for (unsigned i = 0; i < FABRIC_HEADER / 8; i++) {
        atomic_store_explicit(&r->words[i], from[i], memory_order_relaxed);
    }
    atomic_store_explicit(&r->status, status, memory_order_relaxed);
}

/* Copies n bytes of a payload, those from `offset` on. */
static inline int take_payload(void *to, struct fabric_tx *tx, uint64_t offset, size_t n)
{
    if (tx->vector != NULL) {
        return vector_gather(to, tx->vector, &tx->cursor, tx->skip + offset, n);
    }
    return nic_copy(to, (const void *)((uintptr_t)tx->base + offset), n);
}

/* A message whose payload lies in its record: what is at `payload`, or if tx is not NULL the
 * one of tx. */
static inline __attribute__((always_inline)) enum fabric_short
send_inline(struct fabric_peer *p, struct tx_channel *t, const void *header, const void *payload,
            struct fabric_tx *tx, size_t bytes, enum fabric_status status)
{
    struct record *r = reserve(p, t, inline_lines(bytes));
    if (r == NULL) {
        return SHORT_FULL;
    }
    int rc = rare(bytes == 0) ? 0
             : tx == NULL     ? nic_copy(r->data, payload, bytes)
                              : take_payload(r->data, tx, 0, bytes);
    if (rare(rc != 0)) {
        status = FABRIC_SEGV;
        bytes = 0;
        /* Some of it may stand in the lines ahead. */
        memset(t->stale, true, t->line_mask + 1);
    }
    set_record(r, header, status);
    publish(t, RECORD_INLINE, bytes, inline_lines(bytes));
    if (++p->sent_on >= SENT_ON) {
        prefetch_write(line_at(t, t->tail + AHEAD));
    }
    signal_peer(p);
    return status == FABRIC_OK ? SHORT_SENT : SHORT_UNREADABLE;
}

static __attribute__((noinline)) enum fabric_short
send_lines(struct fabric_peer *p, struct tx_channel *t, const void *header, const void *payload,
           size_t bytes, enum fabric_status status)
{
    return send_inline(p, t, header, payload, NULL, bytes, status);
}

/* The same for what fits one line: most of the work on longer records falls away. */
static __attribute__((noinline)) enum fabric_short send_line(struct fabric_peer *p,
                                                             struct tx_channel *t,
                                                             const void *header,
                                                             const void *payload, size_t bytes)
{
    if (bytes > 8) {
        __builtin_unreachable();
    }
    return send_inline(p, t, header, payload, NULL, bytes, FABRIC_OK);
}

static __attribute__((noinline)) enum fabric_short
send_parts(struct fabric_peer *p, struct tx_channel *t, struct fabric_tx *tx)
{
    tx->cursor = (struct vector_cursor){0};
    return send_inline(p, t, tx->header, NULL, tx, tx->length, FABRIC_OK);
}

void shm_foresend(struct fabric_peer *p)
{
    const struct tx_channel *t = &p->tx[FABRIC_REQUEST];
    if (t->index != NULL) {
        prefetch_write(line_at(t, t->tail));
    }
}

/* A response that has no way to go is dropped with its asker. */
static inline bool no_way(const struct fabric_peer *p, const struct tx_channel *t)
{
    return p->dying || t->index == NULL;
}

enum fabric_short shm_send_short(struct fabric_peer *p, enum fabric_class class, const void *header,
                                 const void *payload, size_t length)
{
    struct tx_channel *t = &p->tx[class];
    if (rare(no_way(p, t))) {
        return class == FABRIC_RESPONSE ? SHORT_SENT : SHORT_FULL;
    }
    if (rare(length > p->inline_max)) {
        return SHORT_FULL;
    }
    if (usual(length <= 8)) {
        return send_line(p, t, header, payload, length);
    }
    return send_lines(p, t, header, payload, length, FABRIC_OK);
}

/* Cells or a reference? To a peer that is far, now and then a message goes through cells, so
 * that it learns whether it still is: processes move. What handlers take packet by packet goes
 * through cells at any distance: they work on the first packets while the others are filled. */
static bool by_reference(const struct fabric_peer *p, struct tx_channel *t,
                         const struct fabric_tx *tx)
{
    const struct options *o = p->fabric->options;
    if (tx->at_once || tx->vector != NULL || /* a reference is one address */
        atomic_load_explicit(&p->out->references, memory_order_relaxed) == 0 ||
        record_max_lines(p->remote->info.ring_lines) < 2) {
        return false;
    }
    switch (o->number[OPT_SHM_LARGE]) {
    case 1:
        return false;
    case 2:
        return true;
    default:
        break;
    }
    if (tx->length >= (uint64_t)o->number[OPT_SHM_VM_MIN]) {
        return true;
    }
    return tx->length >= (uint64_t)o->number[OPT_SHM_VM_FAR] && t->far &&
           atomic_load_explicit(&t->index->by_packet, memory_order_relaxed) == 0 &&
           ++t->large % FAR_PROBE != 0;
}

/* Free cells, as far as we know; none while the first ones must become empty. */
static uint64_t cells_free(const struct tx_channel *t)
{
    return t->draining ? 0 : t->cells.mask + 1 - (t->cells_tail - t->cells_head_seen);
}

/* Takes the other cells into use, once the first ones are empty. */
static void use_all_cells(struct fabric_peer *p, struct tx_channel *t)
{
    if (!t->draining || t->cells_tail != t->cells_head_seen) {
        return;
    }
    t->draining = false;
    t->all_cells = true;
    int rc = segment_back_cells(p->remote, p->out_index, (unsigned)(t - p->tx));
    if (rc != 0) {
        log_line(LOG_INFO, "large messages stay slow, no memory for more cells: %s", strerror(rc));
        return;
    }
    t->cells.mask = p->remote->info.cells - 1;
    atomic_store_explicit(&t->index->cells_used, p->remote->info.cells, memory_order_relaxed);
    KILL_POINT("cells-used");
}

/* Room in the cells for a payload of `length`, or for any of it, is looked for. */
static uint64_t find_cells(struct fabric_peer *p, struct tx_channel *t, uint64_t needed)
{
    if (cells_free(t) < needed) {
        refresh_cells(p, t);
        use_all_cells(p, t);
    }
    return p->dying ? 0 : cells_free(t);
}

static void hand_over(struct tx_channel *t)
{
    atomic_store_explicit(&t->index->cells_tail, t->cells_tail, memory_order_release);
    KILL_POINT("cell-published");
}

/* A cell whose lines another core of the same cache has emptied is filled at 8 GB/s and more;
 * where they come from a core far away, at 2 to 3, and there one copy by process_vm_readv is
 * faster. */
static int fill_timed(struct tx_channel *t, uint8_t *cell, struct fabric_tx *tx, size_t n)
{
    if (n < t->cells.size || t->cells_tail % TIMED != 0) {
        return take_payload(cell, tx, tx->moved, n);
    }
    int64_t start = clock_ns();
    int rc = take_payload(cell, tx, tx->moved, n);
    bool slow = (uint64_t)(clock_ns() - start) * SLOW_BYTES_NS > n;
    t->slow = (t->slow << 1 | slow) & SAMPLES;
    int slow_ones = __builtin_popcount(t->slow);
    t->far = t->far ? slow_ones > NEAR_FROM : slow_ones >= FAR_FROM;
    return rc;
}

/* Copies payload into free cells, `most` of them; true if any moved. The first two are handed over
 * one by one, so that the receiver can begin, the others by HAND_OVER. A source that turns out
 * unreadable, or is taken back, is said in the record; the rest of its cells carry nothing. */
static bool fill_cells(struct fabric_peer *p, struct tx_channel *t, struct fabric_tx *tx,
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
            atomic_store_explicit(&line_at(t, tx->record)->status, FABRIC_SEGV,
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

/* Whether the cells can take all of a payload now. */
static bool fits_cells(struct fabric_peer *p, struct tx_channel *t, uint64_t length)
{
    uint64_t needed = length / t->cells.size + (length % t->cells.size != 0);
    return list_empty(&t->filling) && needed <= t->cells.mask + 1 &&
           find_cells(p, t, needed) >= needed;
}

/* A payload of one cell goes ahead of its record: whoever finds that has all of the message. */
static enum fabric_send send_cell(struct fabric_peer *p, struct tx_channel *t, struct fabric_tx *tx)
{
    struct record *r = reserve(p, t, 1);
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
    set_record(r, tx->header, tx->fault);
    r->length = tx->length;
    publish(t, RECORD_CELLS, RECORD_WHOLE, 1);
    shm_signal(p);
    return FABRIC_SENT;
}

enum fabric_send shm_send(struct fabric_peer *p, enum fabric_class class, struct fabric_tx *tx)
{
    struct tx_channel *t = &p->tx[class];
    if (no_way(p, t)) {
        return class == FABRIC_RESPONSE ? FABRIC_SENT : FABRIC_FULL;
    }
    if (tx->fault != FABRIC_OK || tx->length <= p->inline_max) {
        size_t bytes = tx->fault == FABRIC_OK ? tx->length : 0;
        switch (bytes != 0 && tx->vector != NULL
                    ? send_parts(p, t, tx)
                    : send_lines(p, t, tx->header, tx->base, bytes, tx->fault)) {
        case SHORT_FULL:
            return FABRIC_FULL;
        case SHORT_UNREADABLE:
            tx->fault = FABRIC_SEGV;
            break;
        case SHORT_SENT:
            break;
        }
        return FABRIC_SENT;
    }
    /* Only here: what is to leave at once must not find the cells closed half-way. */
    t->draining |= !t->all_cells && t->cells_tail >= GROW_AFTER * t->cells.count;
    if (tx->at_once && !fits_cells(p, t, tx->length)) {
        return FABRIC_FULL;
    }
    bool reference = by_reference(p, t, tx);
    if (!reference && tx->length <= t->cells.size && fits_cells(p, t, tx->length)) {
        return send_cell(p, t, tx);
    }
    struct record *r = reserve(p, t, reference ? 2 : 1);
    if (r == NULL) {
        return FABRIC_FULL;
    }
    set_record(r, tx->header, FABRIC_OK);
    r->length = tx->length;
    tx->cursor = (struct vector_cursor){0};
    tx->moved = 0;
    tx->record = t->tail;
    if (reference) {
        r->address = (uint64_t)(uintptr_t)tx->base;
        publish(t, RECORD_REF, 0, 2);
        tx->record_end = t->tail;
        watch(p, t);
        list_push_back(&t->referred, &tx->link);
        shm_signal(p);
        return FABRIC_QUEUED;
    }
    publish(t, RECORD_CELLS, 0, 1);
    shm_signal(p);
    if (list_empty(&t->filling)) {
        fill_cells(p, t, tx, t->cells.mask + 1);
        shm_signal(p);
        if (tx->moved == tx->length) {
            return FABRIC_SENT;
        }
    }
    watch(p, t);
    list_push_back(&t->filling, &tx->link);
    return FABRIC_QUEUED;
}

static bool advance_filling(struct fabric_peer *p, struct tx_channel *t)
{
    if (list_empty(&t->filling) || p->dying) {
        return false;
    }
    struct fabric_tx *tx = container_of(t->filling.next, struct fabric_tx, link);
    if (!fill_cells(p, t, tx, FILL_RUN)) {
        return false;
    }
    if (tx->moved == tx->length) {
        list_remove(&tx->link);
        p->fabric->up->sent(p->np, tx, tx->fault);
    }
    shm_signal(p);
    return true;
}

static bool advance_referred(struct fabric_peer *p, struct tx_channel *t)
{
    bool moved = false;
    if (!list_empty(&t->referred)) {
        refresh_head(p, t);
    }
    while (!list_empty(&t->referred) && !p->dying) {
        struct fabric_tx *tx = container_of(t->referred.next, struct fabric_tx, link);
        if (t->head_seen < tx->record_end) {
            break;
        }
        list_remove(&tx->link);
        p->fabric->up->sent(p->np, tx, tx->fault);
        moved = true;
    }
    return moved;
}

/* Notices room where there was none; the NIC then sends what waits. */
static bool advance_starved(struct fabric_peer *p, struct tx_channel *t)
{
    uint64_t before = t->head_seen;
    if (t->starved) {
        refresh_head(p, t);
        t->starved = t->head_seen == before;
        return !t->starved;
    }
    return false;
}

bool tx_advance(struct fabric_peer *p)
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
        if (!t->starved && list_empty(&t->filling) && list_empty(&t->referred) &&
            atomic_load_explicit(&t->index->want, memory_order_relaxed) != 0) {
            atomic_store_explicit(&t->index->want, 0, memory_order_relaxed);
        }
    }
    return moved;
}

bool tx_pending(const struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        const struct tx_channel *t = &p->tx[c];
        if (t->index != NULL &&
            (t->starved || !list_empty(&t->filling) || !list_empty(&t->referred))) {
            return true;
        }
    }
    return false;
}

bool tx_flows(struct fabric_peer *p)
{
    bool moved = false;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct tx_channel *t = &p->tx[c];
        uint64_t before = t->cells_head_seen;
        if (t->index != NULL && before != t->cells_tail) {
            refresh_cells(p, t);
            moved |= t->cells_head_seen != before;
        }
    }
    return moved;
}

bool tx_has_room(struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct tx_channel *t = &p->tx[c];
        if (t->index == NULL) {
            continue;
        }
        uint64_t head = t->head_seen, cells = t->cells_head_seen;
        if (t->starved || !list_empty(&t->referred)) {
            refresh_head(p, t);
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

void tx_cancel(struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct list *lists[] = {&p->tx[c].filling, &p->tx[c].referred};
        for (unsigned i = 0; i < 2; i++) {
            for (struct list *l; (l = list_pop_front(lists[i])) != NULL;) {
                p->fabric->up->sent(p->np, container_of(l, struct fabric_tx, link),
                                    FABRIC_UNDELIVERABLE);
            }
        }
    }
}
