/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of slmp.h: parses packets, and passes them to the other files. */
#include "engine.h"

#include "auth.h"
#include "base/ip.h"
#include "cc.h"
#include "lost.h"
#include "peer.h"
#include "plain.h"
#include "room.h"
#include "rx.h"
#include "session.h"
#include "tx.h"

#include <errno.h>
#include <stdio.h>
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
           c->silence > 0 && c->ack_delay >= 0 && c->target >= 0 &&
           (c->key == NULL || (c->mode == SLMP_OWN && c->key->length >= SLMP_KEY_MIN &&
                               c->key->length <= SLMP_KEY_MAX));
}

struct reason slmp_version_text(const struct slmp_address *a, unsigned theirs, unsigned ours)
{
    struct reason why;
    reason_say(&why, 0,
               "%s:%u speaks version %u of SLMP sessions and this process version %u, so "
               "there is none between them: install the same release of Pinwheel at both",
               ip_text(a->ip).text, a->port, theirs, ours);
    return why;
}

static void no_version(void *context, const struct slmp_address *from, unsigned theirs,
                       unsigned ours)
{
}

struct slmp *slmp_open(const struct slmp_config *config, const struct slmp_upcalls *up,
                       struct reason *why)
{
    bool good = sensible(config);
    struct slmp *e = good ? calloc(1, sizeof(*e)) : NULL;
    reason_say(why, 0, good ? "out of memory" : "a configuration that cannot be");
    if (e == NULL || (config->key != NULL && (e->mac = slmp_mac_open(config->key, why)) == NULL)) {
        free(e);
        return NULL;
    }
    e->config = *config;
    e->config.key = NULL; /* the caller may wipe the key now */
    e->up = *up;
    e->up.version = up->version != NULL ? up->version : no_version;
    e->now = INT64_MIN;
    list_init(&e->all);
    list_init(&e->active);
    list_init(&e->sources);
    for (unsigned i = 0; i < SLMP_BUCKETS; i++) {
        list_init(&e->bucket[i]);
    }
    return e;
}

static void set_now(struct slmp *e, int64_t now)
{
    e->now = now > e->now ? now : e->now;
}

/* Notes that the user of the engine wants a session with a peer: the engine sends the next greeting
 * within `rto_initial`, for however long the peer has not answered. */
static void wish(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    if (p->state == PEER_IDLE) {
        slmp_session_begin(p);
    }
    slmp_touch(p);
    p->greet_at = slmp_earlier(p->greet_at, e->now + e->config.rto_initial);
}

/* ---- Calls ---- */

void slmp_close(struct slmp *e)
{
    for (struct slmp_peer *p; (p = LIST_FIRST(struct slmp_peer, &e->all, all)) != NULL;) {
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        slmp_plain_end(p, SLMP_UNDELIVERABLE);
        slmp_give_back(p, &p->unacked, SLMP_UNDELIVERABLE);
        slmp_peer_free(p);
    }
    slmp_mac_close(e->mac);
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
    if (m->way == SLMP_UNACKED && e->mac != NULL) {
        return -EPERM;
    }
    struct slmp_peer *p = slmp_known(e, &m->to);
    if (p == NULL && e->inside && e->peers >= e->config.peers_max) {
        return -ENOBUFS;
    }
    if (p == NULL && (p = slmp_peer_make(e, &m->to, &slmp_room_self)) == NULL) {
        return e->peers >= e->config.peers_max ? -ENOBUFS : -ENOMEM;
    }
    p->used = e->now;
    m->cut = 0;
    m->pending = 0;
    m->whole = m->begun = false;
    slmp_touch(p);
    if (m->way == SLMP_UNACKED) {
        list_push_back(&p->unacked, &m->link);
        return 0;
    }
    bool channels = p->state != PEER_PLAIN && e->config.mode != SLMP_PLAIN;
    struct slmp_flow *f = slmp_peer_flow(p, channels ? m->channel : 0);
    if (!slmp_peer_rings(f)) {
        return -ENOMEM;
    }
    list_push_back(&f->queue, &m->link);
    wish(p);
    return 0;
}

bool slmp_lengthen(struct slmp_message *m, uint64_t more)
{
    if (m->cut != 0 || m->whole || m->fill != NULL || m->way == SLMP_UNACKED ||
        more > SLMP_LENGTH_MAX - m->head_length - m->body_length) {
        return false;
    }
    m->body_length += more;
    return true;
}

int slmp_contact(struct slmp *e, int64_t now, const struct slmp_address *a)
{
    set_now(e, now);
    struct slmp_peer *p = slmp_known(e, a);
    if (p == NULL && (p = slmp_peer_make(e, a, &slmp_room_self)) == NULL) {
        return e->peers >= e->config.peers_max ? -ENOBUFS : -ENOMEM;
    }
    wish(p);
    return 0;
}

void slmp_leave(struct slmp *e, struct slmp_peer *p)
{
    if (p->state == PEER_SESSION) {
        slmp_session_leave(p);
    }
}

void slmp_lost(struct slmp *e, int64_t now, struct slmp_peer *p)
{
    set_now(e, now);
    if (p->state == PEER_SESSION || p->state == PEER_OPENING) {
        e->inside = true;
        slmp_peer_end(p, SLMP_UNDELIVERABLE);
        e->inside = false;
    }
}

void slmp_ask(struct slmp *e, int64_t now, struct slmp_peer *p)
{
    set_now(e, now);
    if (p->state == PEER_SESSION) {
        p->asked = false; /* the question is not only for the sake of room any more */
        slmp_touch(p);
        slmp_tx_ask(slmp_peer_flow(p, 0));
    }
}

void slmp_peer_set_user(struct slmp_peer *p, void *user)
{
    p->user = user;
}

void *slmp_peer_user(const struct slmp_peer *p)
{
    return p->user;
}

bool slmp_ending(const struct slmp_peer *p)
{
    return p->ending;
}

bool slmp_incomplete(const struct slmp_peer *p)
{
    bool any = false;
    for (unsigned i = 0; i < p->channels; i++) {
        any = any || p->flow[i].cumulative < p->flow[i].top;
    }
    return any;
}

bool slmp_input(struct slmp *e, int64_t now, const struct slmp_address *from, const void *packet,
                size_t length)
{
    struct slmp_wire w;
    bool proved = false;
    set_now(e, now);
    e->counters.packets_in++;
    enum slmp_parse parsed = slmp_wire_parse(&w, packet, length);
    if (parsed == SLMP_MALFORMED || parsed == SLMP_CORRUPT) {
        e->counters.malformed += parsed == SLMP_MALFORMED;
        e->counters.corrupt += parsed == SLMP_CORRUPT;
        return false;
    }
    if (w.tagged && e->mac == NULL) {
        e->counters.refused++;
        return false;
    }
    e->inside = true;
    bool hello = (w.flags & (SLMP_VER | SLMP_ACK | SLMP_SYN)) == (SLMP_VER | SLMP_SYN);
    if (parsed == SLMP_OTHER_VERSION) {
        slmp_session_version(e, from, &w, packet);
    } else if (w.kind != SLMP_KIND_PLAIN) {
        proved = slmp_session_input(e, from, &w, packet);
    } else if (e->mac != NULL) {
        e->counters.forged++;
    } else if (hello && w.payload_length == 0 && e->config.mode != SLMP_PLAIN) {
        slmp_session_hello(e, from, &w);
    } else {
        slmp_plain_input(e, from, &w);
    }
    e->inside = false;
    return proved;
}

void slmp_reply_bytes(struct slmp *e, const struct slmp_address *to, const uint8_t *bytes,
                      size_t length)
{
    if (e->reply_count == SLMP_REPLIES) {
        e->counters.unsent++;
        return;
    }
    struct slmp_reply *r = &e->reply[(e->reply_first + e->reply_count++) % SLMP_REPLIES];
    r->to = *to;
    r->length = (uint8_t)length;
    memcpy(r->bytes, bytes, length);
}

void slmp_reply(struct slmp *e, const struct slmp_address *to, struct slmp_wire *w)
{
    uint8_t bytes[SLMP_HEADER_ROOM];
    if (e->reply_count == SLMP_REPLIES) {
        e->counters.unsent++; /* dropped before a tag is made for it */
        return;
    }
    slmp_reply_bytes(e, to, bytes, slmp_auth_greet(e, to, w, bytes));
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
    set_now(e, now);
    bool found = reply_output(e, packet) || slmp_active_output(e, packet);
    e->counters.packets_out += found;
    return found;
}

void slmp_advance(struct slmp *e, int64_t now)
{
    set_now(e, now);
    e->inside = true;
    slmp_active_advance(e);
    e->inside = false;
}

int64_t slmp_deadline(const struct slmp *e)
{
    return e->reply_count > 0 ? e->now : slmp_active_due(e);
}

void slmp_resume(struct slmp *e, int64_t now, struct slmp_peer *p, unsigned channel)
{
    struct slmp_flow *f = channel < SLMP_CHANNELS ? &p->flow[channel] : NULL;
    set_now(e, now);
    if (p->state == PEER_SESSION && f != NULL && (f->held > 0 || f->begin_waits || f->data_waits)) {
        e->inside = true;
        slmp_touch(p);
        slmp_rx_resume(f);
        e->inside = false;
    }
}

void slmp_path(struct slmp *e, int64_t now, const struct slmp_address *a, uint32_t longest)
{
    struct slmp_peer *p = slmp_known(e, a);
    set_now(e, now);
    if (p != NULL) {
        slmp_peer_path(p, longest);
        p->raise_at = e->now + SLMP_RAISE_AFTER;
        slmp_touch(p);
    }
}

void slmp_flush(struct slmp *e)
{
    LIST_EACH(struct slmp_peer, p, &e->active, work) {
        for (unsigned i = 0; i < p->channels; i++) {
            if (p->flow[i].unacked > 0) {
                p->flow[i].ack_now = true;
                slmp_touch(p);
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
    info.answered = p->state == PEER_OPENING;
    info.incarnation = p->incarnation;
    info.heard = p->heard;
    info.segment = p->segment;
    info.dropped = p->dropped;
    const struct slmp_flow *f = &p->flow[0];
    info.rtt = f->cc.srtt;
    info.rto = slmp_cc_rto(&f->cc, &e->config);
    info.window = (uint32_t)f->cc.window;
    info.flight = f->in_flight;
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        info.retransmitted += p->flow[i].retransmitted;
    }
    return info;
}
