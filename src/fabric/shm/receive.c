/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer's side of a channel: one message at a time, as a state machine.
 *
 *   IDLE ──record──► HEADER ──rx_header──► PAYLOAD ──all moved──► DONE ──rx_done──► IDLE
 *                      │ RX_WAIT, RX_FIRST    │ no cell yet, RX_WAIT    │ RX_WAIT
 *                      └── stays              └── stays                 └── stays
 *
 * A record is copied out of the ring once and checked in the copy. Its lines
 * stay ours until it is done, since packets and references are used in place.
 * Of what has come, responses are taken first, and requests that a response came before wait
 * for the next look (rx_advance()).
 * The NIC's lock may be let go of inside the upcalls and during copies by
 * reference; `busy` keeps other threads off the channel meanwhile.
 */
#include "fabric/shm/shm.h"

#include "base/killpoint.h"
#include "base/nic_copy.h"

#include <string.h>

#define BATCH 32   /* messages of one channel before the next has its turn */
#define CELL_RUN 8 /* cells emptied before the sender is told, or handed to the NIC at once */

static inline struct record *line_at(const struct rx_channel *r, uint64_t line)
{
    return (struct record *)(r->ring + (line & r->line_mask) * RECORD_LINE);
}

static inline void set_head(struct rx_channel *r, uint64_t head)
{
    r->head = head;
    r->at = line_at(r, head);
    r->tag = record_tag(head, r->line_mask);
}

void rx_attach(struct fabric_peer *p, struct slot *slot)
{
    const struct segment_info *g = &p->fabric->segment->info;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct rx_channel *r = &p->rx[c];
        r->ring = slot_ring(slot, c, g->ring_lines);
        cells_attach(&r->cells, slot, c, g);
        r->index = &slot->channel[c];
        r->line_mask = g->ring_lines - 1;
        set_head(r, 0);
        r->cells_head = r->cells_taken = 0;
        r->rx->held = FABRIC_HELD_NOTHING;
        r->phase = RX_IDLE;
    }
    p->in = slot;
}

void rx_next(struct fabric_peer *p, unsigned class)
{
    const struct rx_channel *r = &p->rx[class];
    atomic_store_explicit(&p->fabric->next[p->listening_at][class],
                          (uintptr_t)&r->at->word | r->tag, memory_order_relaxed);
}

/* Whether the next record is there. */
static inline bool has_record(const struct rx_channel *r)
{
    uint32_t word = atomic_load_explicit(&r->at->word, memory_order_acquire);
    return ((word ^ r->tag) & RECORD_TAG) == 0;
}

/* Whether there is one at a line further on. */
static inline bool record_at(const struct rx_channel *r, uint64_t line)
{
    uint32_t word = atomic_load_explicit(&line_at(r, line)->word, memory_order_relaxed);
    return ((word ^ record_tag(line, r->line_mask)) & RECORD_TAG) == 0;
}

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

/* Payload cells that the sender has handed over and we have not taken. */
static uint64_t cells_ready(struct fabric_peer *p, struct rx_channel *r)
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

/* Gives `lines` of the ring back to the sender. */
static inline void release_lines(struct rx_channel *r, uint32_t lines)
{
    set_head(r, r->head + lines);
    KILL_POINT("record-done");
    atomic_store_explicit(&r->index->head, r->head, memory_order_release);
    KILL_POINT("head-moved");
}

/* What a published record must satisfy; false ends the connection. */
static inline bool record_sound(const struct rx_channel *r, uint32_t word)
{
    size_t lines = record_lines(word), bytes = record_bytes(word);
    if (usual(record_mode(word) == RECORD_INLINE && bytes <= 8)) {
        return lines == 1;
    }
    size_t to_end = r->line_mask + 1 - (r->head & r->line_mask);
    if (lines == 0 || lines > to_end || lines > r->line_mask) {
        return false;
    }
    switch (record_mode(word)) {
    case RECORD_PAD:
        return lines == to_end;
    case RECORD_INLINE:
        return inline_lines(bytes) == lines;
    case RECORD_CELLS:
        return lines == 1;
    case RECORD_REF:
        return lines == 2;
    default:
        return false;
    }
}

/* The word of the next record that is no padding, checked; 0 if there is none. */
static inline uint32_t next_word(struct fabric_peer *p, struct rx_channel *r)
{
    for (;;) {
        uint32_t word = atomic_load_explicit(&r->at->word, memory_order_acquire);
        if (((word ^ r->tag) & RECORD_TAG) != 0 || rare(p->broken)) {
            return 0;
        }
        if (rare(!record_sound(r, word))) {
            peer_lost(p, "it sent a record that makes no sense");
            return 0;
        }
        KILL_POINT("record-read");
        if (usual(record_mode(word) != RECORD_PAD)) {
            return word;
        }
        release_lines(r, (uint32_t)record_lines(word));
    }
}

static void begin_payload(struct rx_channel *r)
{
    r->moved = 0;
    r->first_cell = r->cells_taken;
    r->rx->held = FABRIC_HELD_NOTHING;
    r->rx->elsewhere = false;
    r->cursor = (struct vector_cursor){0};
    r->phase = RX_PAYLOAD;
}

/* Begins to go through the phases with the record in hand. */
static void begin_message(struct rx_channel *r)
{
    begin_payload(r);
    r->fetched = 0;
    r->rx->first = NULL;
    r->rx->first_length = 0;
    r->rx->sink = RX_DISCARD;
    r->rx->vector = NULL;
    r->phase = RX_HEADER;
}

/* Bytes of the packet that begins at r->moved. */
static size_t packet_length(struct fabric_peer *p, struct rx_channel *r)
{
    uint64_t rest = r->rx->length - r->moved;
    size_t packet = p->fabric->packet_size;
    return rest < packet ? rest : packet;
}

/* The packet at r->moved, in place; NULL if it is not here yet. */
static uint8_t *packet(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->mode == RECORD_INLINE) {
        return r->at->data + r->moved;
    }
    if (r->mode == RECORD_CELLS) {
        return cells_ready(p, r) != 0 ? cell_at(&r->cells, r->cells_taken) : NULL;
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
        uint64_t cells = cells_ready(p, r), row = cells_in_row(&r->cells, r->cells_taken);
        cells = cells < row ? cells : row;
        here = (cells < CELL_RUN ? cells : CELL_RUN) * p->fabric->packet_size;
    } else if (r->mode == RECORD_REF) {
        here = r->fetched - r->moved;
    }
    return here < rest ? here : rest;
}

/* The verdict of the sender on its own payload. */
static void check_source(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->mode == RECORD_CELLS &&
        atomic_load_explicit(&r->at->status, memory_order_relaxed) != 0) {
        r->status = FABRIC_SEGV;
    }
}

/* Gives the cells that nobody needs any more back to the sender, in order; true if there
 * were any. */
static bool give_cells(struct fabric_peer *p, struct rx_channel *r)
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

/* Tells the sender that there is room, if it waits for some. */
static void tell_room(struct fabric_peer *p, struct rx_channel *r)
{
    if (rare(p->remote == NULL)) {
        return;
    }
    light_barrier(p);
    if (rare(atomic_load_explicit(&r->index->want, memory_order_relaxed) != 0)) {
        shm_signal(p);
    }
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

/* Tells the sender how a payload of several cells was used. */
static void note_use(struct rx_channel *r)
{
    uint32_t by_packet = r->rx->sink == RX_PACKETS;
    if (r->rx->length > r->cells.size &&
        atomic_load_explicit(&r->index->by_packet, memory_order_relaxed) != by_packet) {
        atomic_store_explicit(&r->index->by_packet, by_packet, memory_order_relaxed);
    }
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

/* The next n bytes are the NIC's, or done with; true if cells could be given back. */
static bool pass(struct fabric_peer *p, struct rx_channel *r, uint64_t n)
{
    size_t packet = p->fabric->packet_size;
    r->moved += n;
    if (r->mode != RECORD_CELLS) {
        return false;
    }
    r->cells_taken += (n + packet - 1) / packet;
    return give_cells(p, r);
}

/* Hands the NIC the packets that are here; true if it goes on with what comes next. */
static bool hand_packets(struct fabric_peer *p, struct rx_channel *r)
{
    uint8_t *data = packet(p, r);
    if (data == NULL) {
        return false;
    }
    uint64_t n = bytes_in_place(p, r);
    check_source(p, r);
    enum rx_step step = RX_GO;
    if (r->status == FABRIC_OK) {
        step = p->fabric->up->rx_packet(p->np, r->rx, data, r->moved, n);
    }
    r->waiting = step == RX_WAIT;
    if (pass(p, r, r->waiting ? r->rx->taken : n)) {
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

/* Moves payload; true if any moved. */
static bool move_payload(struct fabric_peer *p, struct rx_channel *r)
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
        uint8_t *data = packet(p, r);
        if (data == NULL) {
            break;
        }
        check_source(p, r);
        size_t n = packet_length(p, r);
        place(r, data, n);
        told |= pass(p, r, n);
        moved = true;
    }
    if (told) {
        tell_room(p, r);
    }
    return moved;
}

static bool step_header(struct fabric_peer *p, struct rx_channel *r)
{
    enum rx_step step = p->fabric->up->rx_header(p->np, r->rx);
    if (step == RX_FIRST && r->rx->first == NULL && r->rx->length != 0) {
        uint8_t *data = packet(p, r);
        if (data == NULL) {
            return false;
        }
        check_source(p, r);
        r->rx->first = data;
        r->rx->first_length = packet_length(p, r);
        r->rx->torn = r->status != FABRIC_OK;
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
    check_source(p, r);
    r->waiting = p->fabric->up->rx_done(p->np, r->rx, r->status) == RX_WAIT;
    if (r->waiting) {
        return false;
    }
    r->rx->held = FABRIC_HELD_NOTHING;
    if (give_cells(p, r)) {
        tell_room(p, r);
    }
    note_use(r);
    if (r->mode == RECORD_REF) {
        atomic_store_explicit(&r->at->status, r->status == FABRIC_OK ? 0 : 1, memory_order_relaxed);
    }
    r->phase = RX_IDLE;
    release_lines(r, r->lines);
    return true;
}

/* A payload that came in one cell before its record, which vouches for it; but which cell that is
 * must be known. NULL: it is not, or its sender could not read the payload. */
static inline const uint8_t *whole_cell(struct fabric_peer *p, struct rx_channel *r)
{
    if (r->rx->length > p->fabric->packet_size || r->cells_head != r->cells_taken ||
        (r->cells.mask + 1 != p->fabric->segment->info.cells && cells_ready(p, r) == 0)) {
        return NULL;
    }
    check_source(p, r);
    return r->status == FABRIC_OK ? cell_at(&r->cells, r->cells_taken) : NULL;
}

/* Takes a record in hand, in a copy that nobody changes. A message that is here whole may be over
 * in one step; true if it is. */
static inline bool take_record(struct fabric_peer *p, struct rx_channel *r, uint32_t word)
{
    struct record *at = r->at;
    struct fabric_rx *rx = r->rx;
    const enum record_mode mode = record_mode(word);
    const uint8_t *data = at->data;
    __builtin_prefetch(at + 1); /* looked at next, and cold since the last lap */
    r->mode = mode;
    r->lines = (uint32_t)record_lines(word);
    r->status = FABRIC_OK;
    /* Word by word, which the NIC's loads of them need not wait for. */
    uint64_t *header = (uint64_t *)rx->header;
#pragma GCC unroll 6
    for (unsigned i = 0; i < FABRIC_HEADER / 8; i++) {
        header[i] = atomic_load_explicit(&at->words[i], memory_order_relaxed);
    }
    rx->torn = false;
    rx->last = !record_at(r, r->head + r->lines);
    if (usual(mode == RECORD_INLINE)) {
        rx->length = record_bytes(word);
        data = atomic_load_explicit(&at->status, memory_order_relaxed) == 0 ? data : NULL;
        r->status = data != NULL ? FABRIC_OK : FABRIC_SEGV;
    } else {
        bool whole = mode == RECORD_CELLS && record_bytes(word) == RECORD_WHOLE;
        rx->length = at->length;
        r->address = mode == RECORD_REF ? at->address : 0;
        data = whole ? whole_cell(p, r) : NULL;
    }
    if (rare(data == NULL)) {
        begin_message(r);
        return false;
    }
    enum rx_step step = p->fabric->up->rx_short(p->np, rx, data);
    if (usual(step == RX_GO)) {
        if (mode != RECORD_INLINE && pass(p, r, rx->length)) {
            tell_room(p, r);
        }
        release_lines(r, (uint32_t)record_lines(word));
        return true;
    }
    if (step == RX_HEADED) {
        begin_payload(r);
        return false;
    }
    begin_message(r);
    if (step == RX_WAIT) {
        (void)pass(p, r, rx->length);
        r->phase = RX_DONE;
    }
    return false;
}

/* Takes the message in hand as far as it goes; true if it went on. */
static bool step_message(struct fabric_peer *p, struct rx_channel *r)
{
    bool moved = false;
    if (r->cells_head != r->cells_taken && give_cells(p, r)) {
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
        while (r->moved < r->rx->length && move_payload(p, r)) {
            moved = true;
        }
        if (r->moved < r->rx->length) {
            return moved;
        }
        r->phase = RX_DONE;
    }
    return step_done(p, r) || moved;
}

/* Takes what has come and goes on with what is in hand; true if anything moved. */
static bool take_messages(struct fabric_peer *p, struct rx_channel *r)
{
    bool moved = false;
    for (unsigned n = 0; n < BATCH; n++) {
        if (usual(r->phase == RX_IDLE)) {
            uint32_t word = next_word(p, r);
            if (word == 0) {
                break;
            }
            if (usual(take_record(p, r, word))) {
                moved = true;
                if (r->rx->last) {
                    break; /* what came since is for the next look */
                }
                continue;
            }
        }
        fabric_attend(p->fabric);
        if (!step_message(p, r)) {
            break;
        }
        moved = true;
        if (r->phase != RX_IDLE) {
            break;
        }
    }
    return moved;
}

static bool serve_channel(struct fabric_peer *p, unsigned class)
{
    struct rx_channel *r = &p->rx[class];
    uint64_t before = r->head;
    r->busy = true;
    bool moved = take_messages(p, r);
    r->busy = false;
    if (moved || r->head != before) {
        p->sent_on = 0;
        tell_room(p, r);
        rx_next(p, class);
    }
    return moved;
}

static inline bool may_advance(const struct rx_channel *r)
{
    return usual(r->index != NULL && !r->busy) && (rare(r->phase != RX_IDLE) || has_record(r));
}

static inline bool advance_channel(struct fabric_peer *p, unsigned class)
{
    return may_advance(&p->rx[class]) && serve_channel(p, class);
}

/* The NIC has packets of the message in hand. */
static bool is_kept(const struct rx_channel *r)
{
    return r->phase != RX_IDLE && r->rx->held != FABRIC_HELD_NOTHING;
}

bool rx_blocked(const struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        if (p->rx[c].busy || p->rx[c].waiting || is_kept(&p->rx[c])) {
            return true;
        }
    }
    return false;
}

bool rx_elsewhere(const struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        const struct rx_channel *r = &p->rx[c];
        bool alone = r->waiting ? r->rx->elsewhere : is_kept(r);
        if (r->busy || (r->phase != RX_IDLE && !alone)) {
            return false;
        }
    }
    return true;
}

bool rx_expects(const struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        const struct rx_channel *r = &p->rx[c];
        if (r->phase == RX_PAYLOAD && r->mode == RECORD_CELLS && !r->waiting) {
            return true;
        }
    }
    return false;
}

bool rx_advance(struct fabric_peer *p)
{
    /* Looked at first: responses that were sent before this request are visible then. */
    bool request = may_advance(&p->rx[FABRIC_REQUEST]);
    bool moved = advance_channel(p, FABRIC_RESPONSE);
    /* Who waited for a response often makes an entry for the request behind it next, which had
     * better not find the entry missing: it stays where it is, once. */
    p->requests_wait = moved && !p->requests_wait && p->rx[FABRIC_RESPONSE].phase == RX_IDLE;
    if (request && !p->requests_wait) {
        moved |= advance_channel(p, FABRIC_REQUEST);
    }
    if (!moved && p->in != NULL && !p->dying && !rx_blocked(p) &&
        atomic_load_explicit(&p->in->ready, memory_order_acquire) == SLOT_LEFT && !rx_visible(p)) {
        peer_lost(p, NULL);
        return true;
    }
    return moved;
}

bool rx_visible(struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct rx_channel *r = &p->rx[c];
        if (r->index == NULL || r->busy) {
            continue;
        }
        if (r->phase == RX_IDLE
                ? has_record(r)
                : r->mode == RECORD_CELLS && !r->waiting && cells_ready(p, r) != 0) {
            return true;
        }
    }
    return false;
}

bool rx_idle(const struct fabric_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        if (p->rx[c].phase != RX_IDLE || p->rx[c].busy) {
            return false;
        }
    }
    return true;
}

/* Ends the message in hand of a channel whose sender is gone. What waits for
 * our own side only has all it needs, and is left to go on. */
static void cut_channel(struct fabric_peer *p, struct rx_channel *r)
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

void rx_cut(struct fabric_peer *p)
{
    cut_channel(p, &p->rx[FABRIC_RESPONSE]);
    cut_channel(p, &p->rx[FABRIC_REQUEST]);
}
