/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The consumer's side of a channel: records out of a ring, one message at a time.
 *
 *   look ──► a record of one line, with its payload ──rx_short──► over: most messages
 *        └─► any other record ──► over as well, or else in progress (fabric/rx_machine.h)
 *
 * The receiver copies a record's header out of the ring once, and checks the copy. It takes
 * responses first; then requests that came with them wait for the next look (shm_rx_advance()). A
 * thread sets `busy` while it works on a channel, since the NIC's lock may be free meanwhile.
 */
#include "fabric/shm/receive.h"

#include "fabric/shm/rx.h"
#include "fabric/shm/rx_payload.h"
#include "fabric/shm/teardown.h"

#define BATCH 32 /* messages of one channel before the next channel has its turn */

static inline bool is_there(struct ring_place place)
{
    uint32_t word = atomic_load_explicit(&place.at->word, memory_order_relaxed);
    return ((word ^ place.tag) & RECORD_TAG) == 0;
}

static inline void announce(struct rx_channel *r)
{
    atomic_store_explicit(r->announced, (uintptr_t)&r->at->word | r->tag, memory_order_relaxed);
}

void shm_rx_announce(struct shm_peer *p, _Atomic uintptr_t *next)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        bool polled = next != NULL && c < LARGE_CLASSES;
        p->rx[c].announced = polled ? &next[c] : &p->rx[c].unannounced;
        announce(&p->rx[c]);
    }
}

/* Makes a channel one in which no record will appear. */
static void silence(struct rx_channel *r)
{
    static struct record nothing;
    r->at = &nothing;
    r->tag = record_tag(0, 0);
}

void shm_rx_prepare(struct shm_peer *p)
{
    p->source = (struct rx_source){&payload_source, p->fabric->setup.up, NULL,
                                   p->fabric->setup.packet_size};
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        silence(&p->rx[c]);
        p->rx[c].m.source = &p->source;
    }
    shm_rx_announce(p, NULL);
}

void shm_rx_attach(struct shm_peer *p, struct slot *slot)
{
    const struct segment_info *g = &p->fabric->segment->info;
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct rx_channel *r = &p->rx[c];
        uint32_t lines = class_lines(c, g->ring_lines);
        r->ring = slot_ring(slot, c, g->ring_lines);
        cells_attach(&r->cells, slot, c, g);
        r->index = &slot->channel[c];
        r->line_mask = lines - 1;
        r->at = (struct record *)r->ring;
        r->end = (struct record *)(r->ring + lines * (size_t)RECORD_LINE);
        r->tag = record_tag(0, r->line_mask);
        r->head = r->cells_head = r->cells_taken = 0;
        r->m.rx->held = FABRIC_HELD_NOTHING;
    }
    p->in = slot;
}

/* Checks a published record; false: it breaks the rules, and the connection ends. */
static bool record_sound(const struct shm_peer *p, const struct rx_channel *r, uint32_t word)
{
    size_t lines = record_lines(word), bytes = record_bytes(word);
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
        /* the sender was told whether references can be read */
        return lines == 2 && p->references && r != &p->rx[FABRIC_ASK];
    default:
        return false;
    }
}

/* Copies the header of a record, since the sender might change it later. The copy is made word by
 * word, so that the processor can forward these stores to the NIC's loads of the fields. */
static inline void take_header(struct fabric_rx *rx, const struct record *at,
                               struct ring_place next)
{
    uint64_t *header = (uint64_t *)rx->header;
#pragma GCC unroll 6
    for (unsigned i = 0; i < FABRIC_HEADER / 8; i++) {
        header[i] = atomic_load_explicit(&at->words[i], memory_order_relaxed);
    }
    /* the load of that line, cold since the last lap, also prefetches it */
    rx->last = !is_there(next);
}

/* Takes up a record: sets the fields that are needed while its message is in progress. */
static inline void take_up(struct rx_channel *r, enum record_mode mode, size_t lines)
{
    r->mode = mode;
    r->lines = (uint32_t)lines;
    r->m.status = FABRIC_OK;
    r->first_cell = r->cells_taken;
    r->cells_seen = 0;
    r->fetched = 0;
}

/* Goes on as the NIC has said with a message that has come whole; returns whether it has ended. */
static bool after_short(struct shm_peer *p, struct rx_channel *r, enum rx_step step)
{
    if (rx_machine_short(&r->m, step)) {
        return false;
    }
    if (r->mode == RECORD_CELLS) {
        payload_taken(p, r);
    }
    release_lines(r, r->lines, behind(r, r->at, r->lines));
    return true;
}

/* The payload's length of a record that fits into one line, from the difference (XOR) between the
 * word of the record and that of a record without payload. The two words differ in the length alone
 * then, which this moves down to bit 0; a difference in any other bit is moved above the length, so
 * that the number becomes larger than any payload of one line. */
static inline uint32_t line_bytes(uint32_t difference)
{
    return difference >> RECORD_BYTES_AT | difference << (32 - RECORD_BYTES_AT);
}

static inline bool is_readable(const struct record *at)
{
    return atomic_load_explicit(&at->status, memory_order_relaxed) == FABRIC_OK;
}

/* Takes a message that is in one line with its payload, as nearly all are. */
static inline bool take_line(struct shm_peer *p, struct rx_channel *r, struct record *at,
                             uint32_t bytes)
{
    struct fabric_rx *rx = r->m.rx;
    struct ring_place next = behind(r, at, 1);
    KILL_POINT("record-read");
    rx->length = bytes;
    take_header(rx, at, next);
    enum rx_step step = p->fabric->setup.up->rx_short(p->np, rx, at->data);
    if (unlikely(step != RX_GO)) {
        take_up(r, RECORD_INLINE, 1);
        return after_short(p, r, step);
    }
    release_lines(r, 1, next);
    return true;
}

/* Takes any other record; returns whether its message has ended. */
static __attribute__((noinline)) bool take_any(struct shm_peer *p, struct rx_channel *r,
                                               uint32_t word)
{
    struct record *at = r->at;
    struct fabric_rx *rx = r->m.rx;
    const uint8_t *whole = NULL; /* all of the payload, if that has come */
    take_up(r, record_mode(word), record_lines(word));
    take_header(rx, at, behind(r, at, r->lines));
    if (likely(r->mode == RECORD_INLINE)) {
        rx->length = record_bytes(word);
        whole = is_readable(at) ? at->data : NULL;
        r->m.status = whole != NULL ? FABRIC_OK : FABRIC_SEGV;
    } else {
        rx->length = at->length;
        r->address = r->mode == RECORD_REF ? at->address : 0;
        if (r->mode == RECORD_CELLS && record_bytes(word) == RECORD_WHOLE) {
            whole = payload_cell(p, r);
        }
    }
    if (whole == NULL) {
        rx_machine_begin(&r->m);
        return false;
    }
    return after_short(p, r, p->fabric->setup.up->rx_short(p->np, rx, whole));
}

/* Takes a record of more than one line, or a pad; returns whether its message has ended, or it is a
 * pad. A malformed record ends the connection. */
static __attribute__((noinline)) bool take_other(struct shm_peer *p, struct rx_channel *r,
                                                 uint32_t word)
{
    if (unlikely(!record_sound(p, r, word))) {
        peer_lost(p, "it sent a record that makes no sense");
        return false;
    }
    KILL_POINT("record-read");
    if (record_mode(word) != RECORD_PAD) {
        return take_any(p, r, word);
    }
    uint32_t lines = (uint32_t)record_lines(word);
    release_lines(r, lines, behind(r, r->at, lines));
    r->m.rx->last = false;
    return true;
}

/* Takes the next record, if there is one; returns whether its message has ended. */
static inline bool take_next(struct shm_peer *p, struct rx_channel *r)
{
    struct record *at = r->at;
    uint32_t word = atomic_load_explicit(&at->word, memory_order_acquire);
    uint32_t difference = word ^ record_word(RECORD_INLINE, 0, 1, r->tag);
    if ((difference & RECORD_TAG) != 0 || unlikely(p->broken)) {
        return false;
    }
    uint32_t bytes = line_bytes(difference);
    return likely(bytes <= sizeof(at->data) && is_readable(at)) ? take_line(p, r, at, bytes)
                                                                : take_other(p, r, word);
}

/* Goes on with the message in progress. */
static bool go_on(struct shm_peer *p, struct rx_channel *r)
{
    shm_attend(p->fabric);
    return rx_machine_go_on(&r->m);
}

/* Takes records, and goes on with the message in progress; true if anything has moved. */
static inline bool take_messages(struct shm_peer *p, struct rx_channel *r)
{
    bool moved = unlikely(r->m.phase != RX_IDLE) && go_on(p, r);
    if (unlikely(r->m.phase != RX_IDLE)) {
        return moved;
    }
    for (unsigned n = 0; n < BATCH; n++) {
        if (likely(take_next(p, r))) {
            moved = true;
            if (r->m.rx->last) {
                break; /* requests that have come since wait for the next look */
            }
            continue;
        }
        if (r->m.phase == RX_IDLE) {
            break; /* there was no record */
        }
        moved |= go_on(p, r);
        if (r->m.phase != RX_IDLE) {
            break;
        }
    }
    return moved;
}

static __attribute__((noinline)) bool serve_channel(struct shm_peer *p, struct rx_channel *r)
{
    r->m.busy = true;
    bool moved = take_messages(p, r);
    r->m.busy = false;
    if (likely(moved)) {
        p->sent_on = 0;
        tell_room(p, r);
        announce(r);
    }
    return moved;
}

/* Whether the next record has been written. */
static inline bool has_record(const struct rx_channel *r)
{
    uint32_t word = atomic_load_explicit(&r->at->word, memory_order_acquire);
    return ((word ^ r->tag) & RECORD_TAG) == 0;
}

static inline bool may_advance(const struct rx_channel *r)
{
    return likely(r->m.engaged == 0) ? has_record(r) : !r->m.busy;
}

unsigned shm_rx_state(const struct shm_peer *p)
{
    unsigned state = 0;
    for (const struct rx_channel *r = p->rx; r < p->rx + FABRIC_CLASSES; r++) {
        const struct rx_machine *m = &r->m;
        bool keeps = rx_machine_keeps(m), waits = m->waiting || keeps;
        bool elsewhere = m->waiting ? m->rx->elsewhere : keeps;
        state |= m->engaged != 0 ? RX_BUSY : 0;
        state |= m->busy || waits ? RX_BLOCKED : 0;
        state |= m->busy || (m->phase != RX_IDLE && !elsewhere) ? RX_OURS : 0;
        state |= m->phase == RX_PAYLOAD && r->mode == RECORD_CELLS && !m->waiting ? RX_AWAITS : 0;
    }
    return state;
}

/* Whether a sender has left its slot, and all its messages were taken. */
static inline bool has_gone(struct shm_peer *p)
{
    if (p->in == NULL || p->dying ||
        likely(atomic_load_explicit(&p->in->ready, memory_order_acquire) != SLOT_LEFT) ||
        (shm_rx_state(p) & RX_BLOCKED) != 0 || shm_rx_visible(p)) {
        return false;
    }
    peer_lost(p, NULL);
    return true;
}

bool shm_rx_advance(struct shm_peer *p)
{
    struct rx_channel *requests = &p->rx[FABRIC_REQUEST], *responses = &p->rx[FABRIC_RESPONSE];
    /* Looked at before the responses: then those that were sent before this request are visible,
     * too. */
    bool request = may_advance(requests), moved = false, wait = false;
    if (may_advance(responses)) {
        /* A program that has waited for a response often appends the entry for the next request
         * only now. So the request stays in its ring until the next look, but only once, not to
         * miss that entry. */
        moved = serve_channel(p, responses);
        wait = moved && !p->requests_wait && responses->m.phase == RX_IDLE;
        request = request && !wait && may_advance(requests);
    }
    p->requests_wait = wait;
    if (request) {
        moved |= serve_channel(p, requests);
    }
    return moved || has_gone(p);
}

bool shm_rx_asks(struct shm_peer *p)
{
    struct rx_channel *asks = &p->rx[FABRIC_ASK], *responses = &p->rx[FABRIC_RESPONSE];
    bool moved = may_advance(responses) && serve_channel(p, responses);
    return (may_advance(asks) && serve_channel(p, asks)) || moved;
}

bool shm_rx_asked(const struct shm_peer *p)
{
    const struct rx_channel *asks = &p->rx[FABRIC_ASK];
    return asks->m.engaged != 0 || has_record(asks);
}

bool shm_rx_visible(struct shm_peer *p)
{
    for (struct rx_channel *r = p->rx; r < p->rx + FABRIC_CLASSES; r++) {
        if (r->index == NULL || r->m.busy) {
            continue;
        }
        if (r->m.phase == RX_IDLE ? has_record(r) : !r->m.waiting && payload_can_move(p, r)) {
            return true;
        }
    }
    return false;
}

/* Cuts the message in progress. Messages behind it are lost, too, even if their records have come:
 * a channel has no gaps. */
void shm_rx_cut(struct shm_peer *p)
{
    for (unsigned c = FABRIC_CLASSES; c-- != 0;) {
        if (rx_machine_cut(&p->rx[c].m)) {
            silence(&p->rx[c]);
            announce(&p->rx[c]);
        }
    }
}
