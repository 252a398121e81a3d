/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain SLMP, as in the paper: ten bytes of header; a receiver answers each packet with SYN at
 * once, by its header. The receiver keeps for each message the pieces that have come, so that it
 * delivers each byte once, and the ids of the last complete messages. It does not acknowledge a
 * packet for which it has no room.
 *
 * tx.c sends messages with acknowledgements, this file those without.
 */
#include "plain.h"

#include "auth.h"
#include "peer.h"
#include "session.h"
#include "tx.h"

#include <stdlib.h>
#include <string.h>

static void answer(struct slmp *e, const struct slmp_address *to, const struct slmp_wire *w)
{
    struct slmp_wire ack = {.flags = w->flags | SLMP_ACK, .id = w->id, .offset = w->offset};
    if ((w->flags & SLMP_SYN) != 0) {
        slmp_reply(e, to, &ack);
    }
}

/* ---- Acknowledgements of packets that this engine has sent ---- */

/* Takes an acknowledgement if it is for a packet of this flow; returns whether it is. */
static bool acknowledged(struct slmp_flow *f, const struct slmp_wire *w)
{
    struct slmp *e = f->peer->engine;
    for (uint64_t i = f->una; i < f->next; i++) {
        struct slmp_segment *s = &f->segments[i & (e->config.window - 1)];
        if (s->state != SEGMENT_ACKED && (uint32_t)s->message->number == w->id &&
            s->offset == w->offset) {
            int64_t rtt = s->again ? 0 : e->now - s->sent_at; /* Karn's rule */
            f->unanswered = 0;
            slmp_tx_acked(f, s);
            slmp_tx_settle(f, 1, rtt);
            return true;
        }
    }
    return false;
}

static void plain_ack(struct slmp *e, const struct slmp_address *from, const struct slmp_wire *w)
{
    struct slmp_peer *p = slmp_known(e, from);
    if (p != NULL) {
        slmp_touch(p);
    }
    if (p != NULL && p->state == PEER_HELLO && w->id == p->plain_id && w->offset == 0) {
        slmp_session_plain(p);
        return;
    }
    for (unsigned i = 0; p != NULL && p->state == PEER_PLAIN && i < SLMP_CHANNELS; i++) {
        if (acknowledged(&p->flow[i], w)) {
            return;
        }
    }
    e->counters.stale++;
}

/* ---- Messages of peers ---- */

static bool is_done(const struct slmp_plain *r, uint32_t id)
{
    unsigned known = r->done_count < SLMP_PLAIN_DONE ? r->done_count : SLMP_PLAIN_DONE;
    for (unsigned i = 0; i < known; i++) {
        if (r->done[i] == id) {
            return true;
        }
    }
    return false;
}

/* Returns the message that a packet is of, or a free place if the message is new; NULL if there is
 * none. */
static struct slmp_pieces *find_message(struct slmp_plain *r, uint32_t id)
{
    struct slmp_pieces *found = NULL;
    for (unsigned i = 0; i < SLMP_PLAIN_MESSAGES; i++) {
        struct slmp_pieces *m = &r->message[i];
        if (m->in.active && m->in.number == id) {
            return m;
        }
        found = !m->in.active ? m : found;
    }
    return found;
}

enum piece { PIECE_NEW, PIECE_KNOWN, PIECE_WRONG, PIECE_NO_ROOM };

/* Says whether a piece is new, and where it belongs: *at is the first known piece that begins after
 * its first byte. */
static enum piece place(const struct slmp_pieces *m, uint64_t first, uint64_t end, unsigned *at)
{
    unsigned i = 0;
    while (i < m->count && m->piece[i].first <= first) {
        i++;
    }
    *at = i;
    if (i > 0 && end <= m->piece[i - 1].end) {
        return PIECE_KNOWN;
    }
    if ((i > 0 && first < m->piece[i - 1].end) || (i < m->count && end > m->piece[i].first) ||
        end > m->end) {
        return PIECE_WRONG;
    }
    bool joins =
        (i > 0 && first == m->piece[i - 1].end) || (i < m->count && end == m->piece[i].first);
    return joins || m->count < SLMP_PLAIN_PIECES ? PIECE_NEW : PIECE_NO_ROOM;
}

static void insert(struct slmp_pieces *m, unsigned at, uint64_t first, uint64_t end)
{
    bool left = at > 0 && m->piece[at - 1].end == first;
    bool right = at < m->count && m->piece[at].first == end;
    if (left && right) {
        m->piece[at - 1].end = m->piece[at].end;
        m->count--;
        memmove(&m->piece[at], &m->piece[at + 1], (m->count - at) * sizeof(m->piece[0]));
    } else if (left) {
        m->piece[at - 1].end = end;
    } else if (right) {
        m->piece[at].first = first;
    } else {
        memmove(&m->piece[at + 1], &m->piece[at], (m->count - at) * sizeof(m->piece[0]));
        m->piece[at].first = first;
        m->piece[at].end = end;
        m->count++;
    }
}

static void finish(struct slmp_peer *p, struct slmp_pieces *m, enum slmp_status status)
{
    struct slmp *e = p->engine;
    struct slmp_plain *r = p->plain;
    m->in.active = false;
    if (status == SLMP_OK) {
        r->done[r->done_count++ % SLMP_PLAIN_DONE] = (uint32_t)m->in.number;
        m->in.length = m->end;
        e->counters.messages_in++;
    }
    e->up.done(e->up.context, &m->in, status);
}

/* Begins the message if it is new, and delivers a piece; false if the sender must send it again. */
static bool deliver(struct slmp_peer *p, struct slmp_pieces *m, const struct slmp_wire *w,
                    unsigned at)
{
    struct slmp *e = p->engine;
    if (!m->in.active) {
        m->in = (struct slmp_incoming){
            .from = p->address, .peer = p, .number = w->id, .length = SLMP_UNKNOWN, .plain = true};
        if (e->up.begin(e->up.context, &m->in, w->payload, w->payload_length) == SLMP_LATER) {
            return false;
        }
        m->in.active = true;
        m->heard = e->now;
    }
    if (w->payload_length > 0) {
        m->heard = e->now;
        if (e->up.data(e->up.context, &m->in, w->offset, w->payload, w->payload_length) ==
            SLMP_LATER) {
            return false;
        }
        insert(m, at, w->offset, w->offset + w->payload_length);
        e->counters.bytes_in += w->payload_length;
    }
    return true;
}

static void plain_data(struct slmp_peer *p, const struct slmp_wire *w)
{
    struct slmp *e = p->engine;
    struct slmp_pieces *m = find_message(p->plain, w->id);
    uint64_t end = w->offset + (uint64_t)w->payload_length;
    bool eom = w->flags & SLMP_EOM;
    unsigned at;
    if (is_done(p->plain, w->id)) {
        e->counters.duplicates++;
        answer(e, &p->address, w);
        return;
    }
    if (m == NULL) {
        e->counters.no_room++;
        return;
    }
    if (!m->in.active) {
        m->count = 0;
        m->end = SLMP_UNKNOWN;
    }
    enum piece piece = place(m, w->offset, end, &at);
    bool known = piece == PIECE_KNOWN && w->payload_length > 0;
    if (piece == PIECE_WRONG || (eom && m->end != SLMP_UNKNOWN && m->end != end) ||
        (eom && m->count > 0 && m->piece[m->count - 1].end > end)) {
        e->counters.malformed++;
        return;
    }
    if (piece == PIECE_NO_ROOM) {
        e->counters.no_room++;
        return;
    }
    if (!known && !deliver(p, m, w, at)) {
        return;
    }
    e->counters.duplicates += known;
    m->end = eom ? end : m->end;
    answer(e, &p->address, w);
    if (m->end == 0 || (m->count == 1 && m->piece[0].first == 0 && m->piece[0].end == m->end)) {
        finish(p, m, SLMP_OK);
    }
}

void slmp_plain_input(struct slmp *e, const struct slmp_address *from, const struct slmp_wire *w)
{
    if ((w->flags & SLMP_ACK) != 0) {
        if (e->config.mode == SLMP_OWN || w->payload_length > 0) {
            e->counters.refused++;
        } else {
            plain_ack(e, from, w);
        }
        return;
    }
    if (w->payload_length == 0 && (w->flags & SLMP_EOM) == 0 && e->config.mode != SLMP_OWN) {
        /* an empty packet only asks whether there is an engine at this address */
        answer(e, from, w);
        return;
    }
    struct slmp_peer *p = slmp_known(e, from);
    if (e->config.mode == SLMP_OWN || (p != NULL && p->state == PEER_SESSION)) {
        e->counters.refused++;
        return;
    }
    p = p != NULL ? p : slmp_peer_make(e, from, NULL);
    if (p == NULL || (p->plain == NULL && (p->plain = calloc(1, sizeof(*p->plain))) == NULL)) {
        e->counters.no_room++;
        return;
    }
    slmp_touch(p);
    plain_data(p, w);
}

void slmp_plain_end(struct slmp_peer *p, enum slmp_status status)
{
    for (unsigned i = 0; p->plain != NULL && i < SLMP_PLAIN_MESSAGES; i++) {
        if (p->plain->message[i].in.active) {
            finish(p, &p->plain->message[i], status);
        }
    }
}

/* ---- Messages without acknowledgement ---- */

static struct slmp_message *first_unsent(const struct slmp_peer *p)
{
    LIST_EACH(struct slmp_message, m, &p->unacked, link) {
        if (!m->whole) {
            return m;
        }
    }
    return NULL;
}

bool slmp_plain_unacked(struct slmp_peer *p, struct slmp_packet *packet)
{
    struct slmp *e = p->engine;
    struct slmp_message *m = p->unacked_at <= e->now ? first_unsent(p) : NULL;
    if (m == NULL) {
        return false;
    }
    if (m->cut == 0) {
        m->number = p->plain_id++;
        m->segment = e->config.packet_size - SLMP_HEADER;
    }
    uint64_t left = m->head_length + m->body_length - m->cut;
    uint32_t length = left < m->segment ? (uint32_t)left : m->segment;
    m->whole = length == left;
    struct slmp_wire w = {
        .flags = m->whole ? SLMP_EOM : 0, .id = (uint32_t)m->number, .offset = (uint32_t)m->cut};
    slmp_message_parts(m, m->cut, length, packet);
    slmp_auth_seal(p, packet, &w);
    m->cut += length;
    p->unacked_at = e->now + m->gap;
    e->counters.bytes_out += length;
    return true;
}

/* ---- Time ---- */

/* Gives back messages that have left. Not when their last packet is fetched, since that packet
 * still refers to the lent memory. */
void slmp_plain_advance(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    struct slmp_message *m;
    while ((m = LIST_FIRST(struct slmp_message, &p->unacked, link)) != NULL && m->whole) {
        list_remove(&m->link);
        e->counters.messages_out++;
        e->up.sent(e->up.context, m, SLMP_OK);
    }
    for (unsigned i = 0; p->plain != NULL && i < SLMP_PLAIN_MESSAGES; i++) {
        struct slmp_pieces *in = &p->plain->message[i];
        if (in->in.active && e->now - in->heard >= e->config.silence) {
            finish(p, in, SLMP_UNDELIVERABLE);
        }
    }
}

int64_t slmp_plain_deadline(const struct slmp_peer *p)
{
    const struct slmp_message *m = LIST_FIRST(struct slmp_message, &p->unacked, link);
    int64_t at = m == NULL ? SLMP_NEVER : m->whole ? p->engine->now : p->unacked_at;
    for (unsigned i = 0; p->plain != NULL && i < SLMP_PLAIN_MESSAGES; i++) {
        if (p->plain->message[i].in.active) {
            at = slmp_earlier(at, p->plain->message[i].heard + p->engine->config.silence);
        }
    }
    return at;
}
