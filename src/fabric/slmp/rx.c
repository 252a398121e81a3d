/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving side of a channel. It takes each packet once, in an order that slmp.h allows, and
 * holds packets that cannot be taken yet, in memory that is counted.
 *
 * An acknowledgement leaves at once for a packet that is out of order or was sent again; else with
 * the next data, or after config.ack_delay, or, after ACK_EVERY packets, a tenth of that.
 *
 * A packet that was sent again has a later stamp than all that have come. One that merely comes
 * again has not: it may be an old copy, and its sender another one than the peer. It tells nothing
 * of the round trip, so its stamp is not echoed, and it is answered once in OLD_GAP at most.
 */
#include "rx.h"

#include "auth.h"
#include "room.h"

#include <stdlib.h>
#include <string.h>

enum { ACK_EVERY = 8, SOON = 10 };
#define OLD_GAP 1000000LL

enum taken { TAKEN, WAITS, BAD };

static struct slmp_slot *slot_at(const struct slmp_flow *f, uint64_t sequence)
{
    return &f->slots[sequence & (f->peer->engine->config.window - 1)];
}

static void release(struct slmp_flow *f, struct slmp_slot *s)
{
    slmp_room_release(f->peer, s->held->size);
    f->held--;
    free(s->held);
    s->held = NULL;
}

void slmp_rx_end(struct slmp_flow *f, enum slmp_status status)
{
    struct slmp *e = f->peer->engine;
    for (uint64_t i = f->base; i < f->top; i++) {
        struct slmp_slot *s = slot_at(f, i);
        if (s->held != NULL) {
            release(f, s);
        }
        s->filled = false;
    }
    f->base = f->cumulative = f->top = f->begin = 0;
    f->begin_waits = f->data_waits = f->ack_now = false;
    f->unacked = f->stamp = f->latest = 0;
    f->old_at = INT64_MIN;
    f->ack_at = SLMP_NEVER;
    f->told = e->config.window;
    for (uint32_t i = 0; i < e->config.window && f->incoming_active > 0; i++) {
        if (f->incoming[i].active) {
            f->incoming[i].active = false;
            f->incoming_active--;
            e->up.done(e->up.context, &f->incoming[i], status);
        }
    }
}

/* ---- Messages ---- */

static enum taken begin(struct slmp_flow *f, const struct slmp_held *h, const uint8_t *bytes,
                        struct slmp_incoming *in)
{
    struct slmp *e = f->peer->engine;
    if (h->number > f->begin || h->offset != 0 || f->begin_waits) {
        return WAITS;
    }
    if (in->active) {
        return BAD; /* the peer has begun more messages than its window allows */
    }
    *in = (struct slmp_incoming){.from = f->peer->address,
                                 .peer = f->peer,
                                 .number = h->number,
                                 .length = h->total,
                                 .channel = f->channel};
    if (e->up.begin(e->up.context, in, bytes, h->length) == SLMP_LATER) {
        f->begin_waits = true;
        return WAITS;
    }
    in->active = true;
    f->incoming_active++;
    f->begin++;
    return TAKEN;
}

static enum taken take(struct slmp_flow *f, const struct slmp_held *h, const uint8_t *bytes)
{
    struct slmp *e = f->peer->engine;
    struct slmp_incoming *in = &f->incoming[h->number & (e->config.window - 1)];
    if (h->number >= f->begin) {
        enum taken t = begin(f, h, bytes, in);
        if (t != TAKEN) {
            return t;
        }
    }
    if (!in->active || in->number != h->number || in->length != h->total) {
        return BAD;
    }
    if (in->waiting || (e->config.ordered && h->offset > in->received)) {
        return WAITS;
    }
    if (h->length > in->length - in->received || (e->config.ordered && h->offset < in->received)) {
        return BAD;
    }
    in->blank = in->blank || h->blank;
    if (h->length > 0 && e->up.data(e->up.context, in, h->offset, bytes, h->length) == SLMP_LATER) {
        in->waiting = f->data_waits = true;
        return WAITS;
    }
    in->received += h->length;
    e->counters.bytes_in += h->length;
    if (in->received == in->length) {
        in->active = false;
        f->incoming_active--;
        e->counters.messages_in++;
        e->up.done(e->up.context, in, SLMP_OK);
    }
    return TAKEN;
}

/* Takes the held packets that can be taken now. */
static void drain(struct slmp_flow *f)
{
    bool again = f->held > 0;
    while (again) {
        again = false;
        for (uint64_t i = f->base; i < f->top && f->held > 0; i++) {
            struct slmp_slot *s = slot_at(f, i);
            enum taken t = s->held != NULL && s->filled ? take(f, s->held, s->held->bytes) : WAITS;
            if (t != WAITS) {
                f->peer->engine->counters.malformed += t == BAD;
                release(f, s);
                again = true;
            }
        }
    }
}

/* ---- Packets ---- */

static bool make_held(struct slmp_flow *f, struct slmp_slot *s, const struct slmp_held *h,
                      size_t more)
{
    size_t size = sizeof(*h) + h->length + more;
    if (!slmp_room_hold(f->peer, size)) {
        return false;
    }
    if ((s->held = malloc(size)) == NULL) {
        slmp_room_release(f->peer, size);
        return false;
    }
    *s->held = *h;
    s->held->size = size;
    f->held++;
    return true;
}

static bool hold(struct slmp_flow *f, struct slmp_slot *s, const struct slmp_held *h,
                 const uint8_t *bytes)
{
    if (!make_held(f, s, h, 0)) {
        return false;
    }
    memcpy(s->held->bytes, bytes, h->length);
    return true;
}

/* ---- Packets in pieces ---- */

static uint32_t units(uint32_t bytes)
{
    return (bytes + SLMP_PIECE_UNIT - 1) / SLMP_PIECE_UNIT;
}

static bool begin_pieces(struct slmp_flow *f, struct slmp_slot *s, const struct slmp_wire *w)
{
    struct slmp_held h = {.length = w->piece_of, .missing = units(w->piece_of)};
    size_t bits = (h.missing + 7) / 8;
    if (!make_held(f, s, &h, bits)) {
        slmp_drop(f->peer, &f->peer->engine->counters.no_room);
        return false;
    }
    memset(s->held->bytes + h.length, 0, bits);
    return true;
}

/* Copies a piece into its packet; returns whether it was the last one missing. */
static bool add_piece(struct slmp_held *h, const struct slmp_wire *w)
{
    uint8_t *have = h->bytes + h->length;
    uint32_t end = w->piece_at + (uint32_t)w->payload_length;
    memcpy(h->bytes + w->piece_at, w->payload, w->payload_length);
    for (uint32_t i = w->piece_at / SLMP_PIECE_UNIT; i < units(end); i++) {
        h->missing -= (have[i / 8] >> i % 8 & 1) == 0;
        have[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return h->missing == 0;
}

/* Has an acknowledgement leave soon. Not at once, since an application that has waited for these
 * packets may be about to send data. */
static void ack_soon(struct slmp_flow *f)
{
    struct slmp *e = f->peer->engine;
    f->ack_at = slmp_earlier(f->ack_at, e->now + e->config.ack_delay / SOON);
}

static void slide(struct slmp_flow *f)
{
    uint32_t window = f->peer->engine->config.window;
    while (f->cumulative < f->top && slot_at(f, f->cumulative)->filled) {
        f->cumulative++;
    }
    while (f->base < f->cumulative && slot_at(f, f->base)->held == NULL) {
        slot_at(f, f->base++)->filled = false;
    }
    /* A sender that was told of little room waits until it is told of more. */
    if (f->base + window - f->told >= window / 2) {
        ack_soon(f);
    }
}

/* Whether a packet left its sender later than all that have come before; then it becomes the
 * latest. */
static bool is_latest(struct slmp_flow *f, const struct slmp_wire *w)
{
    bool latest = f->latest == 0 || (int32_t)(w->stamp - f->latest) > 0;
    f->latest = latest ? w->stamp : f->latest;
    return latest;
}

/* Answers an old packet, though rarely. Stamps wrap around after 71 minutes, so the latest packet
 * may look old, and must be answered in the end. */
static void answer_old(struct slmp_flow *f)
{
    int64_t now = f->peer->engine->now;
    if (now >= f->old_at) {
        f->old_at = now + OLD_GAP;
        f->ack_now = true;
    }
}

void slmp_rx_asked(struct slmp_flow *f, const struct slmp_wire *w)
{
    if (is_latest(f, w)) {
        f->ack_now = true;
    } else {
        answer_old(f);
    }
}

static void want_ack(struct slmp_flow *f, const struct slmp_wire *w, bool at_once)
{
    struct slmp *e = f->peer->engine;
    if (f->unacked++ == 0) {
        f->ack_at = slmp_earlier(f->ack_at, e->now + e->config.ack_delay);
    }
    f->stamp = f->stamp == 0 ? w->stamp : f->stamp;
    is_latest(f, w);
    f->ack_now = f->ack_now || at_once;
    if (f->unacked >= ACK_EVERY) {
        ack_soon(f);
    }
}

/* Handles a packet that has come before. */
static void came_again(struct slmp_flow *f, const struct slmp_wire *w)
{
    if (is_latest(f, w)) {
        want_ack(f, w, true);
    } else {
        answer_old(f);
    }
}

/* Takes a piece of a packet. True: its packet is complete; `w` is changed to that packet, and
 * `whole` owns its memory. */
static bool gather(struct slmp_flow *f, struct slmp_slot *s, uint64_t sequence, struct slmp_wire *w,
                   struct slmp_slot *whole)
{
    if (s->held != NULL && s->held->length != w->piece_of) {
        slmp_drop(f->peer, &f->peer->engine->counters.malformed);
        return false;
    }
    if (s->held == NULL && !begin_pieces(f, s, w)) {
        want_ack(f, w, true);
        return false;
    }
    f->top = f->top > sequence ? f->top : sequence + 1;
    s->held->blank = s->held->blank || w->blank;
    uint32_t missing = s->held->missing;
    if (!add_piece(s->held, w)) {
        if (s->held->missing == missing) {
            came_again(f, w);
        } else {
            want_ack(f, w, true); /* tells the sender that this side lives */
        }
        return false;
    }
    w->blank = w->blank || s->held->blank;
    whole->held = s->held;
    s->held = NULL;
    w->payload = whole->held->bytes;
    w->payload_length = whole->held->length;
    return true;
}

/* Takes a new packet, or holds it; false: the sender must send it again. */
static bool accept_packet(struct slmp_flow *f, struct slmp_slot *s, const struct slmp_wire *w)
{
    struct slmp *e = f->peer->engine;
    struct slmp_held h = {.number = slmp_widen(f->begin, w->id),
                          .offset = w->offset,
                          .length = (uint32_t)w->payload_length,
                          .total = w->length,
                          .blank = w->blank};
    bool last = h.offset + (uint64_t)h.length == h.total;
    enum taken t = last == ((w->flags & SLMP_EOM) != 0) ? take(f, &h, w->payload) : BAD;
    if (t == BAD || (t == WAITS && h.number >= f->begin + e->config.window)) {
        slmp_drop(f->peer, &e->counters.malformed);
        return false;
    }
    if (t == WAITS && !hold(f, s, &h, w->payload)) {
        slmp_drop(f->peer, &e->counters.no_room);
        want_ack(f, w, true); /* tells the sender that this side lives, and misses other packets */
        return false;
    }
    return true;
}

/* Takes a piece; returns whether its packet was accepted with it. */
static bool take_piece(struct slmp_flow *f, struct slmp_slot *s, uint64_t sequence,
                       const struct slmp_wire *w)
{
    struct slmp_wire packet = *w;
    struct slmp_slot whole = {0};
    if (!gather(f, s, sequence, &packet, &whole)) {
        return false;
    }
    bool good = accept_packet(f, s, &packet);
    release(f, &whole);
    return good;
}

void slmp_rx_data(struct slmp_flow *f, const struct slmp_wire *w)
{
    struct slmp *e = f->peer->engine;
    uint64_t sequence = slmp_widen(f->cumulative, w->sequence);
    if ((int64_t)(sequence - f->base) >= (int64_t)e->config.window) {
        slmp_drop(f->peer, &e->counters.beyond);
        return;
    }
    struct slmp_slot *s = slot_at(f, sequence);
    if ((int64_t)(sequence - f->base) < 0 || s->filled) {
        e->counters.duplicates++;
        came_again(f, w);
        return;
    }
    if (s->held != NULL && !w->piece) {
        release(f, s); /* the path takes the packet whole again */
    }
    bool in_order = sequence == f->cumulative && f->top <= sequence;
    if (!(w->piece ? take_piece(f, s, sequence, w) : accept_packet(f, s, w))) {
        return;
    }
    s->filled = true;
    f->top = f->top > sequence ? f->top : sequence + 1;
    want_ack(f, w, !in_order);
    if (s->held == NULL) {
        drain(f);
    }
    slide(f);
}

void slmp_rx_resume(struct slmp_flow *f)
{
    f->begin_waits = f->data_waits = false;
    for (uint32_t i = 0; i < f->peer->engine->config.window && f->incoming_active > 0; i++) {
        f->incoming[i].waiting = false;
    }
    drain(f);
    slide(f);
}

/* ---- Acknowledgements ---- */

/* Writes the ranges of packets beyond the first missing one that have come; false if there are more
 * than `most`. */
static bool fill_ranges(const struct slmp_flow *f, struct slmp_wire *w, unsigned most)
{
    uint64_t i = f->cumulative;
    w->ranges = 0;
    for (;;) {
        while (i < f->top && !slot_at(f, i)->filled) {
            i++;
        }
        if (i >= f->top || w->ranges == most) {
            return i >= f->top;
        }
        w->range[w->ranges].first = (uint16_t)(i - f->cumulative);
        while (i < f->top && slot_at(f, i)->filled) {
            i++;
        }
        w->range[w->ranges++].end = (uint16_t)(i - f->cumulative);
    }
}

/* Puts an acknowledgement into a packet of the same channel. */
void slmp_rx_fill(struct slmp_flow *f, struct slmp_wire *w)
{
    struct slmp *e = f->peer->engine;
    uint32_t stamp = (uint32_t)(e->now / 1000);
    bool data = w->kind == SLMP_KIND_DATA;
    bool all = fill_ranges(f, w, data ? SLMP_RANGES_DATA : SLMP_RANGES_ACK);
    w->cumulative = (uint32_t)f->cumulative;
    f->told = f->base + e->config.window;
    w->window = (uint16_t)(f->told - f->cumulative);
    w->stamp = stamp != 0 ? stamp : 1;
    w->echo = f->stamp;
    if (!data || (all && !f->probe)) {
        f->ack_now = false;
        f->unacked = 0;
        f->ack_at = SLMP_NEVER;
    }
    f->stamp = 0;
}

bool slmp_rx_output(struct slmp_flow *f, struct slmp_packet *p)
{
    struct slmp *e = f->peer->engine;
    if (!f->ack_now && f->ack_at > e->now) {
        return false;
    }
    struct slmp_wire w = {.flags = SLMP_VER | SLMP_ACK,
                          .kind = SLMP_KIND_ACK,
                          .channel = f->channel,
                          .token = f->peer->token_out,
                          .sequence = (uint32_t)f->next};
    if (f->probe) {
        w.flags |= SLMP_SYN;
        f->probe = false;
    }
    slmp_auth_number(f->peer, &w);
    slmp_rx_fill(f, &w);
    p->parts = 0;
    slmp_auth_seal(f->peer, p, &w);
    return true;
}

int64_t slmp_rx_deadline(const struct slmp_flow *f)
{
    return f->ack_now ? f->peer->engine->now : f->ack_at;
}
