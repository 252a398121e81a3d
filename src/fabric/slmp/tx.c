/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of a channel. A packet is FLIGHT, LOST or ACKED; lost.c decides when it is lost.
 * Lost packets leave before new ones. This file serves plain peers, too: their acknowledgements
 * name one packet each, and their window is fixed.
 */
#include "tx.h"

#include "auth.h"
#include "cc.h"
#include "lost.h"
#include "rx.h"

#include <string.h>

static struct slmp_segment *segment_at(const struct slmp_flow *f, uint64_t sequence)
{
    return &f->segments[sequence & (slmp_flow_config(f)->window - 1)];
}

static uint64_t total(const struct slmp_message *m)
{
    return m->head_length + m->body_length;
}

/* ---- A channel's life ---- */

void slmp_tx_start(struct slmp_flow *f)
{
    f->una = f->next = f->messages = 0;
    f->edge = slmp_flow_plain(f) ? UINT64_MAX : f->peer->window;
    f->in_flight = 0;
    f->order = f->acked_order = 0;
    f->acked_took = 0;
    f->rack_at = SLMP_NEVER;
    f->pto_sent = false;
    f->progress = f->peer->engine->now;
    f->probe_at = SLMP_NEVER;
    f->probe = false;
    f->unanswered = 0;
    f->in_vain = 0;
    list_init(&f->flight);
    list_init(&f->lost);
    slmp_cc_reset(&f->cc, slmp_flow_config(f), slmp_flow_plain(f));
}

void slmp_give_back(struct slmp_peer *p, struct list *messages, enum slmp_status status)
{
    struct slmp_message *m;
    while ((m = LIST_POP(struct slmp_message, messages, link)) != NULL) {
        p->engine->up.sent(p->engine->up.context, m, status);
    }
}

/* Ends a channel. The peer's state is IDLE already, so messages that an upcall sends wait for the
 * next session. */
void slmp_tx_end(struct slmp_flow *f, enum slmp_status status)
{
    struct list messages;
    list_init(&messages);
    list_move_all(&messages, &f->flying);
    list_move_all(&messages, &f->queue);
    slmp_tx_start(f);
    slmp_give_back(f->peer, &messages, status);
}

/* ---- Acknowledgements ---- */

void slmp_tx_acked(struct slmp_flow *f, struct slmp_segment *s)
{
    struct slmp *e = f->peer->engine;
    struct slmp_message *m = s->message;
    if (s->state == SEGMENT_FLIGHT) {
        f->in_flight--;
    }
    slmp_tx_heard(f, s);
    list_remove(&s->link);
    s->state = SEGMENT_ACKED;
    m->begun = m->begun || s->offset == 0;
    m->pending--;
    e->counters.bytes_out += s->length;
    if (m->whole && m->pending == 0) {
        list_remove(&m->link);
        e->counters.messages_out++;
        e->up.sent(e->up.context, m, SLMP_OK);
    }
}

void slmp_tx_settle(struct slmp_flow *f, uint32_t acked, int64_t rtt)
{
    struct slmp *e = f->peer->engine;
    while (f->una < f->next && segment_at(f, f->una)->state == SEGMENT_ACKED) {
        f->una++;
    }
    uint32_t lost = slmp_tx_lose(f);
    if (rtt > 0) {
        slmp_cc_sample(&f->cc, &e->config, rtt, e->now);
    }
    if (acked > 0) {
        f->progress = e->now;
        f->pto_sent = false;
    }
    if (!slmp_flow_plain(f)) {
        slmp_cc_lost(&f->cc, lost);
        if (acked > 0) {
            slmp_cc_acked(&f->cc, &e->config, acked, rtt, f->in_flight, e->now);
        }
    }
}

static uint32_t ack_between(struct slmp_flow *f, uint64_t first, uint64_t end)
{
    uint32_t acked = 0;
    for (uint64_t i = first; i < end; i++) {
        struct slmp_segment *s = segment_at(f, i);
        if (s->state != SEGMENT_ACKED) {
            slmp_tx_acked(f, s);
            acked++;
        }
    }
    return acked;
}

void slmp_tx_ack(struct slmp_flow *f, const struct slmp_wire *w)
{
    struct slmp *e = f->peer->engine;
    uint64_t cumulative = slmp_widen(f->una, w->cumulative);
    f->unanswered = 0;
    if (cumulative > f->next) {
        e->counters.malformed++;
        return;
    }
    if (cumulative + e->config.window < f->una) {
        return; /* so late that it acknowledges nothing new */
    }
    uint64_t una = f->una;
    uint32_t acked = ack_between(f, una, cumulative);
    for (unsigned i = 0; i < w->ranges; i++) {
        uint64_t first = cumulative + w->range[i].first, end = cumulative + w->range[i].end;
        if (first >= end || end > f->next) {
            e->counters.malformed++;
            break;
        }
        acked += ack_between(f, first < una ? una : first, end);
    }
    int64_t rtt = 0;
    /* An acknowledgement of nothing new may be old (RFC 7323), so its echo does not count. */
    if (w->echo != 0 && acked > 0) {
        int32_t us = (int32_t)((uint32_t)(e->now / 1000) - w->echo);
        rtt = us > 0 ? us * 1000LL : us > -2 ? 1000 : 0;
    }
    slmp_tx_settle(f, acked, rtt);
    bool opens = cumulative + w->window > f->edge;
    f->edge = opens ? cumulative + w->window : f->edge;
    if (f->probe_at != SLMP_NEVER && (opens || list_empty(&f->queue))) {
        f->probe_at = SLMP_NEVER; /* the peer lives, and no message waits for its window any more */
        f->cc.backoff = 0;
    }
}

/* ---- Packets that leave ---- */

void slmp_message_parts(const struct slmp_message *m, uint64_t offset, uint32_t length,
                        struct slmp_packet *p)
{
    p->parts = 0;
    if (offset < m->head_length && length > 0) {
        uint64_t n = m->head_length - offset;
        n = n < length ? n : length;
        p->part[p->parts++] = (struct iovec){(char *)(uintptr_t)m->head + offset, n};
        offset += n;
        length -= (uint32_t)n;
    }
    if (length > 0) {
        const char *from = (const char *)m->body + (offset - m->head_length);
        p->part[p->parts++] = (struct iovec){(char *)(uintptr_t)from, length};
    }
}

/* Copies a short payload behind the header: one part costs the system less than two. */
static void fold(struct slmp_packet *p)
{
    if (p->length <= SLMP_HEADER_ROOM) {
        for (unsigned i = 0; i < p->parts; i++) {
            memcpy(p->header + p->header_length, p->part[i].iov_base, p->part[i].iov_len);
            p->header_length += (uint16_t)p->part[i].iov_len;
        }
        p->parts = 0;
    }
}

/* The bytes [at, end) of a packet's payload: all of it, or a piece. */
struct part {
    uint32_t at, end;
};

/* Sets the parts of a packet to its bytes; false: they cannot be read, and zeros are sent for
 * them. */
static bool find_bytes(struct slmp_message *m, uint64_t offset, uint32_t length,
                       struct slmp_packet *p)
{
    static const uint8_t zeros[SLMP_PACKET_MAX];
    if (m->fill == NULL) {
        slmp_message_parts(m, offset, length, p);
        return true;
    }
    if (m->fill(m, offset, length, p)) {
        return true;
    }
    p->parts = 1;
    p->part[0] = (struct iovec){(void *)(uintptr_t)zeros, length};
    return false;
}

static void emit(struct slmp_flow *f, struct slmp_message *m, uint64_t offset, uint32_t length,
                 struct part part, uint64_t sequence, bool syn, struct slmp_packet *p)
{
    struct slmp *e = f->peer->engine;
    bool blank = !find_bytes(m, offset + part.at, part.end - part.at, p);
    struct slmp_wire w = {.id = (uint32_t)m->number, .offset = (uint32_t)offset};
    w.flags = (uint16_t)((syn ? SLMP_SYN : 0) | (offset + length == total(m) ? SLMP_EOM : 0));
    if (!slmp_flow_plain(f)) {
        w.flags |= SLMP_VER | SLMP_ACK;
        w.kind = SLMP_KIND_DATA;
        w.channel = f->channel;
        w.token = f->peer->token_out;
        w.sequence = (uint32_t)sequence;
        w.length = (uint32_t)total(m);
        w.cover = e->config.cover;
        w.piece = part.end - part.at < length;
        w.piece_at = (uint16_t)part.at;
        w.piece_of = (uint16_t)length;
        slmp_auth_number(f->peer, &w);
        w.blank = blank;
        slmp_rx_fill(f, &w);
    }
    slmp_auth_seal(f->peer, p, &w);
    if (m->fill == NULL) {
        fold(p); /* not if m->fill() has set the parts: only the system may read those */
    }
}

/* Notes that the whole of a packet is under way. */
static void depart(struct slmp_flow *f, struct slmp_segment *s)
{
    struct slmp *e = f->peer->engine;
    s->most = s->length < f->peer->segment ? s->length : f->peer->segment;
    s->state = SEGMENT_FLIGHT;
    s->order = ++f->order;
    s->sent_at = e->now;
    list_push_back(&f->flight, &s->link);
    if (f->in_flight++ == 0) {
        f->progress = e->now;
    }
    if (!slmp_flow_plain(f)) {
        slmp_cc_sent(&f->cc, (double)(SLMP_OVERHEAD + s->length) / (double)e->config.packet_size,
                     e->now);
    }
}

/* Returns the message to cut next, NULL if none may be cut now. */
static struct slmp_message *next_message(const struct slmp_flow *f)
{
    if (list_empty(&f->queue) || f->next - f->una >= slmp_flow_config(f)->window ||
        f->next >= f->edge) {
        return NULL;
    }
    struct slmp_message *m = container_of(f->queue.next, struct slmp_message, link);
    return slmp_flow_plain(f) && m->way == SLMP_ENDS && m->cut > 0 && !m->begun ? NULL : m;
}

static void cut(struct slmp_flow *f, struct slmp_message *m, struct slmp_packet *p)
{
    if (m->cut == 0) {
        m->number = slmp_flow_plain(f) ? f->peer->plain_id++ : f->messages++;
        m->segment = f->peer->segment;
    }
    uint64_t left = total(m) - m->cut, offset = m->cut;
    uint32_t length = left < m->segment ? (uint32_t)left : m->segment;
    bool ends = slmp_flow_plain(f) && m->way == SLMP_ENDS;
    m->cut += length;
    if (m->cut == total(m)) {
        m->whole = true;
        list_remove(&m->link);
        list_push_back(&f->flying, &m->link);
    }
    if (ends) {
        f->cc.next = f->peer->engine->now + m->gap;
    }
    if (ends && offset > 0 && !m->whole) {
        emit(f, m, offset, length, (struct part){0, length}, 0, false, p);
        return;
    }
    struct slmp_segment *s = segment_at(f, f->next);
    *s = (struct slmp_segment){.message = m, .offset = offset, .length = length};
    m->pending++;
    depart(f, s);
    emit(f, m, offset, length, (struct part){0, length}, f->next++, true, p);
}

/* Returns when the next packet may leave. If none is under way, at once: a message need not be
 * spaced from packets that were acknowledged. */
static int64_t next_at(const struct slmp_flow *f)
{
    return f->in_flight == 0 && !slmp_flow_plain(f) ? f->peer->engine->now : f->cc.next;
}

static bool may_send(const struct slmp_flow *f)
{
    return f->in_flight < f->cc.window && next_at(f) <= f->peer->engine->now;
}

/* Sends a packet in pieces: it was cut when the path took longer packets than now. Its last piece
 * counts as its transmission. */
static bool emit_piece(struct slmp_flow *f, struct slmp_segment *s, struct slmp_packet *p)
{
    uint32_t most = (f->peer->segment - SLMP_PIECE_MORE) / SLMP_PIECE_UNIT * SLMP_PIECE_UNIT;
    if (slmp_flow_plain(f) || s->length <= f->peer->segment || s->length - s->cut <= most) {
        return false;
    }
    emit(f, s->message, s->offset, s->length, (struct part){s->cut, s->cut + most},
         slmp_sequence(f, s), true, p);
    s->cut += most;
    return true;
}

static void send_again(struct slmp_flow *f, struct slmp_segment *s, struct slmp_packet *p)
{
    uint64_t sequence = slmp_sequence(f, s);
    if (!emit_piece(f, s, p)) {
        uint32_t from = s->cut;
        s->cut = 0;
        list_remove(&s->link);
        s->again = true;
        f->peer->engine->counters.retransmitted++;
        f->retransmitted++;
        depart(f, s);
        emit(f, s->message, s->offset, s->length, (struct part){from, s->length}, sequence, true,
             p);
    }
}

/* Begins to probe if no packet is under way and the peer's window is closed. */
static void await_window(struct slmp_flow *f)
{
    if (!list_empty(&f->queue) && list_empty(&f->lost) && f->next >= f->edge && f->in_flight == 0 &&
        f->probe_at == SLMP_NEVER) {
        f->probe_at = f->peer->engine->now + slmp_cc_rto(&f->cc, slmp_flow_config(f));
    }
}

bool slmp_tx_output(struct slmp_flow *f, struct slmp_packet *p)
{
    struct slmp_segment *s = LIST_FIRST(struct slmp_segment, &f->lost, link);
    struct slmp_message *m = next_message(f);
    await_window(f);
    if (!may_send(f)) {
        return false;
    }
    if (s != NULL) {
        send_again(f, s, p);
    } else if (m != NULL) {
        cut(f, m, p);
    }
    return s != NULL || m != NULL;
}

int64_t slmp_tx_deadline(const struct slmp_flow *f)
{
    int64_t at = slmp_tx_lost_at(f);
    if (f->in_flight < f->cc.window && (!list_empty(&f->lost) || next_message(f) != NULL)) {
        at = slmp_earlier(at, next_at(f));
    }
    return at;
}
