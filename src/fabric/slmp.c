/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of slmp.h and the table of peers. A packet to send is looked for peer by
 * peer; the peer that gave one is asked first until it has given BURST or has no more, so
 * that packets to one address follow each other.
 */
#include "slmp_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct slmp_config slmp_defaults(void)
{
    return (struct slmp_config){.mode = SLMP_AUTO,
                                .packet_size = 1472,
                                .window = 256,
                                .plain_window = 32,
                                .peers_max = 1024,
                                .held_max = (size_t)64 << 20,
                                .rto_initial = 100000000,
                                .rto_min = 2000000,
                                .rto_max = 2000000000,
                                .silence = 10000000000,
                                .ack_delay = 50000,
                                .target = 2000000,
                                .cover = true};
}

static bool sensible(const struct slmp_config *c)
{
    return c->packet_size >= SLMP_PACKET_MIN && c->packet_size <= SLMP_PACKET_MAX &&
           c->window >= 16 && c->window <= SLMP_WINDOW_MAX && (c->window & (c->window - 1)) == 0 &&
           c->plain_window >= 1 && c->plain_window <= c->window && c->peers_max >= 1 &&
           c->rto_min > 0 && c->rto_initial >= c->rto_min && c->rto_max >= c->rto_initial &&
           c->silence > 0 && c->ack_delay >= 0 && c->target >= 0;
}

struct slmp *slmp_open(const struct slmp_config *config, const struct slmp_upcalls *up)
{
    if (!sensible(config)) {
        errno = EINVAL;
        return NULL;
    }
    struct slmp *e = calloc(1, sizeof(*e));
    struct slmp_reply *reply = calloc(SLMP_REPLIES, sizeof(*reply));
    if (e == NULL || reply == NULL) {
        free(e);
        free(reply);
        errno = ENOMEM;
        return NULL;
    }
    e->config = *config;
    e->up = *up;
    e->reply = reply;
    e->now = INT64_MIN;
    e->forgotten = 1;
    list_init(&e->all);
    for (unsigned i = 0; i < SLMP_BUCKETS; i++) {
        list_init(&e->bucket[i]);
    }
    return e;
}

static void set_now(struct slmp *e, int64_t now)
{
    e->now = now > e->now ? now : e->now;
}

/* ---- Numbers that cannot be guessed: SipHash-2-4 (Aumasson and Bernstein, 2012) ---- */

static inline uint64_t turn(uint64_t v, unsigned by)
{
    return v << by | v >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn(v[1], 13) ^ v[0];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] = turn(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turn(v[1], 17) ^ v[2];
    v[3] = turn(v[3], 21) ^ v[0];
    v[2] = turn(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t slmp_mix(const struct slmp *e, uint64_t a, uint64_t b)
{
    uint64_t k = e->config.secret, l = e->config.incarnation;
    uint64_t v[4] = {k ^ 0x736f6d6570736575, l ^ 0x646f72616e646f6d, k ^ 0x6c7967656e657261,
                     l ^ 0x7465646279746573};
    sip_word(v, a);
    sip_word(v, b);
    sip_word(v, (uint64_t)16 << 56); /* the length of the two */
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t slmp_draw(struct slmp *e)
{
    return slmp_mix(e, UINT64_MAX, ++e->drawn) | 1;
}

/* ---- Peers ---- */

static struct list *bucket_of(const struct slmp *e, const struct slmp_address *a)
{
    uint32_t h = (a->ip ^ a->port * 0x9e3779b1u) * 0x85ebca6bu;
    return (struct list *)(uintptr_t)&e->bucket[h >> 24];
}

struct slmp_peer *slmp_known(const struct slmp *e, const struct slmp_address *a)
{
    struct list *head = bucket_of(e, a);
    for (struct list *l = head->next; l != head; l = l->next) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, bucket);
        if (slmp_address_equal(&p->address, a)) {
            return p;
        }
    }
    return NULL;
}

static void free_peer(struct slmp_peer *p)
{
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        if (p->flow[i] != NULL) {
            free(p->flow[i]->segments);
            free(p->flow[i]->slots);
            free(p->flow[i]->incoming);
            free(p->flow[i]);
        }
    }
    list_remove(&p->bucket);
    list_remove(&p->all);
    free(p->plain);
    p->engine->peers--;
    p->engine->forgotten++;
    free(p);
}

/* Nothing is lost if this peer is forgotten. */
static bool idle(const struct slmp_peer *p)
{
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        const struct slmp_flow *f = p->flow[i];
        if (f != NULL && (!list_empty(&f->queue) || !list_empty(&f->flying))) {
            return false;
        }
    }
    for (unsigned i = 0; p->plain != NULL && i < SLMP_PLAIN_MESSAGES; i++) {
        if (p->plain->message[i].in.active) {
            return false;
        }
    }
    return p->state != PEER_SESSION && list_empty(&p->unacked);
}

static bool make_room(struct slmp *e)
{
    for (struct list *l = e->all.next; l != &e->all && e->peers >= e->config.peers_max;) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        l = l->next;
        if (idle(p)) {
            free_peer(p);
        }
    }
    return e->peers < e->config.peers_max;
}

struct slmp_peer *slmp_peer_make(struct slmp *e, const struct slmp_address *a)
{
    struct slmp_peer *p = make_room(e) ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        return NULL;
    }
    p->engine = e;
    p->address = *a;
    p->generation = e->forgotten; /* a nonce given before it was known stays good */
    p->plain_id = (uint32_t)slmp_draw(e);
    p->unacked_at = e->now;
    list_init(&p->unacked);
    list_push_back(bucket_of(e, a), &p->bucket);
    list_push_back(&e->all, &p->all);
    e->peers++;
    return p;
}

struct slmp_flow *slmp_peer_flow(struct slmp_peer *p, unsigned channel)
{
    struct slmp_flow *f = p->flow[channel];
    uint32_t window = p->engine->config.window;
    if (f != NULL) {
        return f;
    }
    if ((f = calloc(1, sizeof(*f))) == NULL) {
        return NULL;
    }
    f->segments = calloc(window, sizeof(*f->segments));
    f->slots = calloc(window, sizeof(*f->slots));
    f->incoming = calloc(window, sizeof(*f->incoming));
    if (f->segments == NULL || f->slots == NULL || f->incoming == NULL) {
        free(f->segments);
        free(f->slots);
        free(f->incoming);
        free(f);
        return NULL;
    }
    f->peer = p;
    f->channel = (uint8_t)channel;
    list_init(&f->queue);
    list_init(&f->flying);
    slmp_tx_start(f);
    slmp_rx_end(f, SLMP_OK);
    p->flow[channel] = f;
    return f;
}

/* Ends what there is with a peer: all messages are given back. Its next message begins
 * from the beginning. */
void slmp_peer_end(struct slmp_peer *p, enum slmp_status status)
{
    struct slmp *e = p->engine;
    bool session = p->state == PEER_SESSION;
    p->state = PEER_IDLE;
    p->generation = slmp_draw(e);
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        if (p->flow[i] != NULL) {
            slmp_rx_end(p->flow[i], status);
            slmp_tx_end(p->flow[i], status);
        }
    }
    if (session) {
        e->up.closed(e->up.context, p, &p->address);
    }
}

/* ---- Calls ---- */

void slmp_close(struct slmp *e)
{
    while (!list_empty(&e->all)) {
        struct slmp_peer *p = container_of(e->all.next, struct slmp_peer, all);
        struct list *l;
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        slmp_plain_end(p, SLMP_UNDELIVERABLE);
        while ((l = list_pop_front(&p->unacked)) != NULL) {
            struct slmp_message *m = container_of(l, struct slmp_message, link);
            e->up.sent(e->up.context, m, SLMP_UNDELIVERABLE);
        }
        free_peer(p);
    }
    free(e->reply);
    free(e);
}

int slmp_send(struct slmp *e, int64_t now, struct slmp_message *m)
{
    set_now(e, now);
    if (m->channel >= SLMP_CHANNELS) {
        return -EINVAL;
    }
    if (m->head_length > SLMP_LENGTH_MAX || m->body_length > SLMP_LENGTH_MAX - m->head_length) {
        return -EMSGSIZE;
    }
    struct slmp_peer *p = slmp_known(e, &m->to);
    if (p == NULL && e->inside && e->peers >= e->config.peers_max) {
        return -ENOBUFS;
    }
    if (p == NULL && (p = slmp_peer_make(e, &m->to)) == NULL) {
        return e->peers >= e->config.peers_max ? -ENOBUFS : -ENOMEM;
    }
    m->cut = 0;
    m->pending = 0;
    m->whole = m->begun = false;
    if (m->way == SLMP_UNACKED) {
        list_push_back(&p->unacked, &m->link);
        return 0;
    }
    bool channels = p->state != PEER_PLAIN && e->config.mode != SLMP_PLAIN;
    struct slmp_flow *f = slmp_peer_flow(p, channels ? m->channel : 0);
    if (f == NULL) {
        return -ENOMEM;
    }
    list_push_back(&f->queue, &m->link);
    if (p->state == PEER_IDLE) {
        slmp_session_begin(p);
    }
    return 0;
}

void slmp_input(struct slmp *e, int64_t now, const struct slmp_address *from, const void *packet,
                size_t length)
{
    struct slmp_wire w;
    set_now(e, now);
    e->counters.packets_in++;
    switch (slmp_wire_parse(&w, packet, length)) {
    case SLMP_MALFORMED:
        e->counters.malformed++;
        return;
    case SLMP_CORRUPT:
        e->counters.corrupt++;
        return;
    case SLMP_OTHER_VERSION:
        e->counters.version++;
        return;
    case SLMP_PARSED:
        break;
    }
    e->inside = true;
    bool hello = (w.flags & (SLMP_VER | SLMP_ACK | SLMP_SYN)) == (SLMP_VER | SLMP_SYN);
    if (w.kind != SLMP_KIND_PLAIN) {
        slmp_session_input(e, from, &w);
    } else if (hello && w.payload_length == 0 && e->config.mode != SLMP_PLAIN) {
        slmp_session_hello(e, from, &w);
    } else {
        slmp_plain_input(e, from, &w);
    }
    e->inside = false;
}

void slmp_reply(struct slmp *e, const struct slmp_address *to, const struct slmp_wire *w)
{
    uint8_t bytes[SLMP_HEADER_ROOM];
    if (e->reply_count == SLMP_REPLIES) {
        e->counters.unsent++;
        return;
    }
    struct slmp_reply *r = &e->reply[(e->reply_first + e->reply_count++) % SLMP_REPLIES];
    r->to = *to;
    r->length = (uint8_t)slmp_wire_write(w, bytes);
    memcpy(r->bytes, bytes, r->length);
}

static bool peer_output(struct slmp_peer *p, struct slmp_packet *packet)
{
    if (slmp_session_output(p, packet) || slmp_plain_unacked(p, packet)) {
        return true;
    }
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        struct slmp_flow *f = p->flow[i];
        if (f == NULL || (p->state != PEER_SESSION && p->state != PEER_PLAIN)) {
            continue;
        }
        if (slmp_tx_output(f, packet) || (p->state == PEER_SESSION && slmp_rx_output(f, packet))) {
            return true;
        }
    }
    return false;
}

static bool reply_output(struct slmp *e, struct slmp_packet *packet)
{
    if (e->reply_count == 0) {
        return false;
    }
    const struct slmp_reply *r = &e->reply[e->reply_first];
    e->reply_first = (e->reply_first + 1) % SLMP_REPLIES;
    e->reply_count--;
    packet->to = r->to;
    packet->parts = 0;
    packet->header_length = r->length;
    packet->length = r->length;
    memcpy(packet->header, r->bytes, r->length);
    return true;
}

bool slmp_output(struct slmp *e, int64_t now, struct slmp_packet *packet)
{
    enum { BURST = 64 };
    set_now(e, now);
    bool found = reply_output(e, packet);
    for (uint32_t tried = 0; !found && tried < e->peers; tried++) {
        struct list *first = e->all.next;
        struct slmp_peer *p = container_of(first, struct slmp_peer, all);
        found = peer_output(p, packet);
        if (!found || ++e->burst >= BURST) {
            list_remove(first);
            list_push_back(&e->all, first);
            e->burst = 0;
        }
    }
    e->counters.packets_out += found;
    return found;
}

void slmp_advance(struct slmp *e, int64_t now)
{
    set_now(e, now);
    e->inside = true;
    struct list *l = e->all.next;
    for (uint32_t n = e->peers; n > 0; n--, l = l->next) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        slmp_session_advance(p);
        slmp_plain_advance(p);
        for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
            bool talks = p->state == PEER_SESSION || p->state == PEER_PLAIN;
            if (talks && p->flow[i] != NULL && !slmp_tx_advance(p->flow[i])) {
                slmp_peer_end(p, SLMP_UNDELIVERABLE);
            }
        }
    }
    e->inside = false;
}

int64_t slmp_deadline(const struct slmp *e)
{
    int64_t at = e->reply_count > 0 ? e->now : SLMP_NEVER;
    for (struct list *l = e->all.next; l != &e->all; l = l->next) {
        const struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        at = slmp_earlier(at, slmp_session_deadline(p));
        at = slmp_earlier(at, slmp_plain_deadline(p));
        for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
            bool talks = p->state == PEER_SESSION || p->state == PEER_PLAIN;
            if (talks && p->flow[i] != NULL) {
                at = slmp_earlier(at, slmp_tx_deadline(p->flow[i]));
            }
            if (p->state == PEER_SESSION && p->flow[i] != NULL) {
                at = slmp_earlier(at, slmp_rx_deadline(p->flow[i]));
            }
        }
    }
    return at;
}

void slmp_resume(struct slmp *e, int64_t now, struct slmp_peer *p, unsigned channel)
{
    set_now(e, now);
    if (p->state == PEER_SESSION && channel < SLMP_CHANNELS && p->flow[channel] != NULL) {
        e->inside = true;
        slmp_rx_resume(p->flow[channel]);
        e->inside = false;
    }
}

void slmp_flush(struct slmp *e)
{
    for (struct list *l = e->all.next; l != &e->all; l = l->next) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
            if (p->flow[i] != NULL && p->flow[i]->unacked > 0) {
                p->flow[i]->ack_now = true;
            }
        }
    }
}

const struct slmp_counters *slmp_counters(const struct slmp *e)
{
    return &e->counters;
}

size_t slmp_held(const struct slmp *e)
{
    return e->held;
}

struct slmp_peer_info slmp_peer_info(const struct slmp *e, const struct slmp_address *a)
{
    const struct slmp_peer *p = slmp_known(e, a);
    struct slmp_peer_info info = {.known = p != NULL};
    if (p == NULL) {
        return info;
    }
    info.session = p->state == PEER_SESSION;
    info.plain = p->state == PEER_PLAIN;
    info.incarnation = p->incarnation;
    info.segment = p->segment;
    const struct slmp_flow *f = p->flow[0];
    if (f != NULL) {
        info.rtt = f->cc.srtt;
        info.rtt_min = slmp_cc_min(&f->cc);
        info.rto = slmp_cc_rto(&f->cc, &e->config);
        info.window = (uint32_t)f->cc.window;
        info.flight = f->in_flight;
    }
    return info;
}
