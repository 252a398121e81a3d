/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two peers agree on a session.
 *
 *   initiator                              responder
 *   IDLE      ── hello ──────────────────►            keeps nothing
 *   HELLO     ◄── WELCOME nonce ──────────
 *   OPENING   ── OPEN nonce, token a ────►            nonce right: SESSION
 *             ◄── OPENED nonce, token b ──
 *   SESSION   ── DATA token b ───────────►
 *             ◄── DATA token a ───────────
 *
 * The responder answers an OPEN with a wrong nonce by WELCOME; this repeats the first half of the
 * wrong nonce, in the place where it repeats the message id of a hello.
 *
 * The hello, without a job key, is an empty first packet of plain SLMP with the version bit. A
 * plain peer answers it with ten bytes: HELLO becomes PLAIN.
 *
 * A nonce is a keyed hash of the peer's address and of a generation that changes with each
 * session, so an OPEN opens one session at most, however late its copies come, and
 * only for a peer that receives packets at its address. When both open at once, the OPEN of the one
 * with the greater incarnation counts: that side ignores the other OPEN, and the other side drops
 * its own.
 *
 * Each side chooses the token that packets to it must have in the session. A packet with another
 * token is of a session that has ended: the receiver answers with RESET, which repeats that token,
 * and so ends only that session at its sender.
 *
 * A stranger gets the same answer ANSWERS_AT_ONCE times, and then once each ANSWER_GAP: so repeated
 * packets make this engine send no more than that.
 */
#include "session.h"

#include "auth.h"
#include "peer.h"
#include "plain.h"
#include "room.h"
#include "rx.h"
#include "tx.h"

enum { GREETINGS_LEAST = 3, WELCOMES_MOST = 4, ANSWERS_AT_ONCE = 16 };
#define ANSWER_GAP 10000000LL

static uint64_t nonce_for(struct slmp *e, const struct slmp_address *a, const struct slmp_peer *p)
{
    uint64_t generation = p != NULL ? p->generation : *slmp_peer_forgotten(e, a);
    return slmp_mix(e, (uint64_t)a->ip << 16 | a->port, generation);
}

static bool greeting(const struct slmp_peer *p)
{
    return p->state == PEER_HELLO || p->state == PEER_OPENING;
}

/* Whether an answer of the kind `what` may leave to an address. Answers share places in a table by
 * a keyed hash; each place has the time when its next answer is due. */
static bool may_answer(struct slmp *e, const struct slmp_address *to, uint64_t what)
{
    uint64_t hash = slmp_mix(e, ((uint64_t)to->ip << 16 | to->port) ^ what, ~what);
    int64_t *due = &e->answer_due[hash % SLMP_ANSWERS];
    int64_t at = *due > e->now ? *due : e->now;
    if (at - e->now >= ANSWERS_AT_ONCE * ANSWER_GAP) {
        e->counters.unsent++;
        return false;
    }
    *due = at + ANSWER_GAP;
    return true;
}

/* ---- Beginning ---- */

void slmp_session_plain(struct slmp_peer *p)
{
    if (p->engine->config.mode == SLMP_OWN) {
        p->engine->counters.refused++;
        return;
    }
    p->state = PEER_PLAIN;
    p->packet = p->engine->config.packet_size;
    slmp_peer_path(p, p->path);
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        slmp_tx_start(&p->flow[i]);
    }
}

void slmp_session_begin(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    if (e->config.mode == SLMP_PLAIN) {
        slmp_session_plain(p);
        return;
    }
    p->state = PEER_HELLO;
    p->greet_at = e->now;
    p->greetings = 0;
    slmp_wait_begin(&p->greet_wait, e->now, 0);
    p->opening = p->reset = 0;
    p->drawn = e->mac != NULL ? slmp_draw(e) : 0;
}

/* Begins the session: both tokens and the limits of the peer are known. */
static void start(struct slmp_peer *p, const struct slmp_wire *w)
{
    struct slmp *e = p->engine;
    uint32_t packet =
        w->packet_size < e->config.packet_size ? w->packet_size : e->config.packet_size;
    slmp_touch(p);
    p->state = PEER_SESSION;
    p->incarnation = w->incarnation;
    p->generation = slmp_draw(e);
    p->packet = packet;
    slmp_peer_path(p, p->path); /* ranges may precede the payload, four bytes each */
    p->window = w->window;
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        slmp_tx_start(&p->flow[i]);
    }
    e->up.opened(e->up.context, p, &p->address, p->incarnation);
}

static struct slmp_wire opening(const struct slmp *e, enum slmp_kind kind, uint64_t nonce,
                                uint64_t drawn, uint32_t token)
{
    return (struct slmp_wire){
        .flags = (uint16_t)(SLMP_VER | (kind == SLMP_KIND_OPEN ? SLMP_SYN : SLMP_ACK)),
        .id = (uint32_t)nonce,
        .kind = kind,
        .version = slmp_version(e->mac != NULL),
        .nonce = nonce,
        .number = drawn,
        .incarnation = e->config.incarnation,
        .token = token,
        .packet_size = (uint16_t)e->config.packet_size,
        .window = (uint16_t)e->config.window};
}

/* ---- Packets that have come ---- */

void slmp_session_hello(struct slmp *e, const struct slmp_address *from, const struct slmp_wire *w)
{
    uint8_t version = slmp_version(e->mac != NULL);
    struct slmp_wire welcome = {.flags = SLMP_VER | SLMP_ACK,
                                .id = w->id,
                                .offset = w->offset,
                                .kind = SLMP_KIND_WELCOME,
                                .version = version,
                                .version_max = version,
                                .nonce = nonce_for(e, from, slmp_known(e, from)),
                                .number = w->number,
                                .incarnation = e->config.incarnation};
    if (may_answer(e, from, (uint64_t)SLMP_KIND_WELCOME << 32 ^ w->id ^ w->number)) {
        slmp_reply(e, from, &welcome);
    }
}

void slmp_session_version(struct slmp *e, const struct slmp_address *from,
                          const struct slmp_wire *w, const uint8_t *packet)
{
    if (slmp_auth_greeting(e, w, packet)) {
        e->counters.version++;
        e->up.version(e->up.context, from, w->version, slmp_version(e->mac != NULL));
        if (w->kind == SLMP_KIND_HELLO) {
            /* the peer, too, may report which version this engine speaks */
            slmp_session_hello(e, from, w);
        }
    }
}

static void welcome(struct slmp *e, struct slmp_peer *p, const struct slmp_wire *w)
{
    /* A WELCOME answers the hello of this engine, or refuses its OPEN. A copy of an older one must
     * not make it open the session twice. */
    if (p == NULL || !greeting(p) ||
        w->id != (p->state == PEER_HELLO ? p->plain_id : (uint32_t)p->nonce) ||
        (e->mac != NULL && w->number != p->drawn)) {
        e->counters.stale++;
        return;
    }
    uint8_t version = slmp_version(e->mac != NULL);
    slmp_touch(p);
    if (w->version > version || w->version_max < version) {
        e->counters.version++;
        e->up.version(e->up.context, &p->address, w->version_max, version);
        slmp_session_plain(p);
        return;
    }
    p->greetings = p->state == PEER_HELLO ? 0 : p->greetings;
    p->state = PEER_OPENING;
    p->nonce = w->nonce;
    p->incarnation = w->incarnation;
    p->opening = p->opening != 0 ? p->opening : (uint32_t)slmp_draw(e) | 1;
    if (p->greetings < WELCOMES_MOST) {
        /* not at once for one that repeats this WELCOME: then at the usual time */
        p->greet_at = e->now;
    }
}

/* Enters the session of an OPEN, or, where the OPEN was this engine's own, of the peer's OPENED.
 * False: there is no room for it. */
static bool enter(struct slmp_peer *p, const struct slmp_whose *whose, const struct slmp_wire *w,
                  bool own)
{
    if (!slmp_room_join(p, whose)) {
        return false;
    }
    slmp_plain_end(p, SLMP_UNDELIVERABLE);
    p->token_in = own ? p->opening : (uint32_t)slmp_draw(p->engine) | 1;
    p->token_out = w->token;
    p->opened_by = own ? 0 : w->nonce;
    return slmp_auth_start(p, own, own ? p->drawn : w->number, w->nonce, w->incarnation);
}

/* Takes an OPEN of the peer with the right nonce: begins a new session, and ends an old one. */
static void open_session(struct slmp *e, const struct slmp_address *from, struct slmp_peer *p,
                         const struct slmp_wire *w)
{
    if (p != NULL && p->state == PEER_OPENING && e->config.incarnation > w->incarnation) {
        return; /* this engine's OPEN counts, and is on its way */
    }
    if (p != NULL && (p->state == PEER_SESSION || p->state == PEER_PLAIN)) {
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
    }
    struct slmp_whose whose = slmp_room_whose(e, from);
    if (!slmp_room_admit(e, &whose) ||
        (p == NULL && (p = slmp_peer_make(e, from, &whose)) == NULL) ||
        !enter(p, &whose, w, false)) {
        e->counters.no_room++;
        return;
    }
    struct slmp_wire opened = opening(e, SLMP_KIND_OPENED, w->nonce, w->number, p->token_in);
    slmp_reply(e, from, &opened);
    start(p, w);
}

static void open_asked(struct slmp *e, const struct slmp_address *from, struct slmp_peer *p,
                       const struct slmp_wire *w)
{
    if (p != NULL && p->state == PEER_SESSION && p->opened_by == w->nonce &&
        p->token_out == w->token) {
        struct slmp_wire opened = opening(e, SLMP_KIND_OPENED, w->nonce, w->number, p->token_in);
        if (may_answer(e, from, (uint64_t)SLMP_KIND_OPENED << 32 ^ w->nonce)) {
            slmp_reply(e, from, &opened);
        }
    } else if (w->nonce != nonce_for(e, from, p)) {
        e->counters.stale++;
        slmp_session_hello(e, from, w);
    } else {
        open_session(e, from, p, w);
    }
}

static void opened(struct slmp *e, struct slmp_peer *p, const struct slmp_wire *w)
{
    if (p == NULL || p->state != PEER_OPENING || w->nonce != p->nonce ||
        (e->mac != NULL && w->number != p->drawn)) {
        e->counters.stale++;
        return;
    }
    if (p->reset == w->token && p->reset != 0) {
        /* the end of this session has come before its beginning */
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        return;
    }
    struct slmp_whose whose = slmp_room_whose(e, &p->address);
    if (!enter(p, &whose, w, true)) {
        e->counters.no_room++;
        return;
    }
    start(p, w);
}

/* Whether a session with this token exists. With a key, a RESET proves that its session does not:
 * so no address may get a RESET for one that does. The search costs little, as there are few
 * sessions, and few senders can cause it. */
static bool lives(const struct slmp *e, uint32_t token)
{
    for (const struct list *l = e->all.next; e->mac != NULL && l != &e->all; l = l->next) {
        const struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        if ((p->state == PEER_SESSION && p->token_in == token) ||
            (p->state == PEER_OPENING && p->opening == token)) {
            return true;
        }
    }
    return false;
}

static struct slmp_wire reset_of(const struct slmp *e, uint32_t token)
{
    return (struct slmp_wire){.flags = SLMP_VER | SLMP_ACK,
                              .kind = SLMP_KIND_RESET,
                              .token = token,
                              .incarnation = e->config.incarnation};
}

void slmp_session_leave(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    struct slmp_wire w = reset_of(e, p->token_in);
    struct slmp_packet packet = {0};
    if (e->mac == NULL) {
        slmp_reply(e, &p->address, &w);
        return;
    }
    w.kind = SLMP_KIND_LEAVE;
    w.token = p->token_out;
    slmp_auth_number(p, &w);
    slmp_auth_seal(p, &packet, &w);
    slmp_reply_bytes(e, &p->address, packet.header, packet.header_length);
}

/* Answers a packet of an unknown session by a RESET. */
static void stale(struct slmp *e, const struct slmp_address *from, const struct slmp_peer *p,
                  const struct slmp_wire *w)
{
    struct slmp_wire reset = reset_of(e, w->token);
    e->counters.stale++;
    /* Data may overtake OPENED; the peer will send them again. */
    bool early = p != NULL && p->state == PEER_OPENING && p->opening == w->token;
    if (early || w->kind == SLMP_KIND_LEAVE || w->tagged != (e->mac != NULL) ||
        !may_answer(e, from, (uint64_t)SLMP_KIND_RESET << 32 ^ w->token) || lives(e, w->token)) {
        return;
    }
    slmp_auth_quote(&reset, w);
    slmp_reply(e, from, &reset);
}

/* Takes a RESET: the peer has ended the session. While OPEN is under way, the session may be one
 * whose OPENED is still to come. */
static void session_reset(struct slmp *e, struct slmp_peer *p, const struct slmp_wire *w)
{
    if (p != NULL && p->state == PEER_SESSION && p->token_out == w->token &&
        slmp_auth_answers(p, w)) {
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        return;
    }
    if (p != NULL && p->state == PEER_OPENING && e->mac == NULL) {
        p->reset = w->token;
    }
    e->counters.stale++;
}

/* Takes a packet of a session; true: it is of the peer's session, and was not taken before. */
static bool in_session(struct slmp *e, const struct slmp_address *from, struct slmp_peer *p,
                       const struct slmp_wire *w, const uint8_t *packet)
{
    if (p == NULL || p->state != PEER_SESSION || p->token_in != w->token) {
        stale(e, from, p, w);
        return false;
    }
    if (!slmp_auth_admit(p, w, packet)) {
        return false;
    }
    slmp_touch(p);
    if (w->kind == SLMP_KIND_LEAVE) {
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        return true;
    }
    slmp_room_heard(p);
    struct slmp_flow *f = slmp_peer_flow(p, w->channel);
    if (w->kind == SLMP_KIND_DATA && !slmp_peer_rings(f)) {
        e->counters.no_room++;
        return true;
    }
    slmp_tx_ack(f, w);
    /* An upcall may have sent a message, but cannot have ended the session. */
    if (w->kind == SLMP_KIND_DATA) {
        p->used = e->now;
        slmp_rx_data(f, w);
    } else if ((w->flags & SLMP_SYN) != 0) {
        slmp_rx_asked(f, w);
    }
    return true;
}

/* Whether a greeting of this engine itself was sent back to it. */
static bool reflected(const struct slmp *e, const struct slmp_wire *w)
{
    return (w->kind == SLMP_KIND_WELCOME || w->kind == SLMP_KIND_OPEN ||
            w->kind == SLMP_KIND_OPENED) &&
           w->incarnation == e->config.incarnation;
}

bool slmp_session_input(struct slmp *e, const struct slmp_address *from, const struct slmp_wire *w,
                        const uint8_t *packet)
{
    struct slmp_peer *p = slmp_known(e, from);
    if (e->config.mode == SLMP_PLAIN) {
        e->counters.refused++;
        return false;
    }
    if (slmp_wire_inside(w)) {
        return in_session(e, from, p, w, packet);
    }
    if (!slmp_auth_greeting(e, w, packet)) {
        return false;
    }
    if (reflected(e, w)) {
        e->counters.stale++;
        return false;
    }
    switch (w->kind) {
    case SLMP_KIND_HELLO:
        slmp_session_hello(e, from, w);
        break;
    case SLMP_KIND_WELCOME:
        welcome(e, p, w);
        break;
    case SLMP_KIND_OPEN:
        open_asked(e, from, p, w);
        break;
    case SLMP_KIND_OPENED:
        opened(e, p, w);
        break;
    default: /* RESET */
        session_reset(e, p, w);
    }
    return false;
}

/* ---- Greetings that leave ---- */

bool slmp_session_output(struct slmp_peer *p, struct slmp_packet *packet)
{
    struct slmp *e = p->engine;
    if (!greeting(p) || p->greet_at > e->now) {
        return false;
    }
    struct slmp_wire w = {.flags = SLMP_SYN | SLMP_VER,
                          .id = p->plain_id,
                          .kind = e->mac != NULL ? SLMP_KIND_HELLO : SLMP_KIND_PLAIN,
                          .version = slmp_version(e->mac != NULL),
                          .number = p->drawn};
    if (p->state == PEER_OPENING) {
        w = opening(e, SLMP_KIND_OPEN, p->nonce, p->drawn, p->opening);
    }
    int64_t wait = e->config.rto_initial;
    for (unsigned i = 0; i < p->greetings && wait < e->config.rto_max; i++) {
        wait *= 2;
    }
    wait = slmp_earlier(wait, e->config.rto_max);
    p->greetings++;
    p->greet_at = e->now + wait;
    slmp_wait_on(&p->greet_wait, e->now, wait);
    packet->to = p->address;
    packet->parts = 0;
    packet->header_length = (uint16_t)slmp_auth_greet(e, &p->address, &w, packet->header);
    packet->length = packet->header_length;
    return true;
}

int64_t slmp_session_deadline(const struct slmp_peer *p)
{
    return greeting(p) ? p->greet_at : SLMP_NEVER;
}

void slmp_session_advance(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    if (greeting(p) && p->greetings >= GREETINGS_LEAST && p->greet_at <= e->now &&
        slmp_waited(&p->greet_wait, e->now) >= e->config.silence) {
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
    }
}
