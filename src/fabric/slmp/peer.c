/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers of an engine: their table, the memory of their channels, and those with work to do.
 *
 *   all      every peer that is known
 *   active   peers that may have work, at `due` at the earliest; LOOK: something has happened, and
 *            the peer must be looked at. e->due is not later than any of these.
 *
 * A peer with nothing to do leaves `active`, so that silent peers cost no time; a while later its
 * channels' rings are freed, so that they cost little memory.
 */
#include "peer.h"

#include "auth.h"
#include "lost.h"
#include "plain.h"
#include "room.h"
#include "rx.h"
#include "session.h"
#include "tx.h"

#include <stdlib.h>

#define LOOK INT64_MIN
#define LINGER 1000000000LL /* for how long a silent peer keeps its rings */

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
    sip_word(v, (uint64_t)16 << 56); /* the length of both numbers together */
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
    LIST_EACH(struct slmp_peer, p, head, bucket) {
        if (slmp_address_equal(&p->address, a)) {
            return p;
        }
    }
    return NULL;
}

static void free_rings(struct slmp_flow *f)
{
    free(f->segments);
    free(f->slots);
    free(f->incoming);
    f->segments = NULL;
    f->slots = NULL;
    f->incoming = NULL;
}

void slmp_peer_free(struct slmp_peer *p)
{
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        free_rings(&p->flow[i]);
    }
    if (p->active) {
        list_remove(&p->work);
    }
    slmp_auth_end(p);
    slmp_room_leave(p);
    list_remove(&p->bucket);
    list_remove(&p->all);
    free(p->plain);
    p->engine->peers--;
    ++*slmp_peer_forgotten(p->engine, &p->address);
    free(p);
}

uint32_t *slmp_peer_forgotten(struct slmp *e, const struct slmp_address *a)
{
    uint64_t hash = slmp_mix(e, 1ULL << 63 | (uint64_t)a->ip << 16 | a->port, 0);
    return &e->forgotten[hash % SLMP_FORGOTTEN];
}

struct slmp_peer *slmp_peer_make(struct slmp *e, const struct slmp_address *a,
                                 const struct slmp_whose *w)
{
    struct slmp_peer *p = slmp_room_place(e, w) ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        return NULL;
    }
    p->engine = e;
    p->address = *a;
    p->generation = *slmp_peer_forgotten(e, a); /* a nonce that it got as a stranger stays valid */
    p->plain_id = (uint32_t)slmp_draw(e);
    p->unacked_at = e->now;
    p->packet = e->config.packet_size;
    p->path = SLMP_PACKET_MAX;
    p->raise_at = SLMP_NEVER;
    list_init(&p->unacked);
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        struct slmp_flow *f = &p->flow[i];
        f->peer = p;
        f->channel = (uint8_t)i;
        list_init(&f->queue);
        list_init(&f->flying);
        slmp_tx_start(f);
        slmp_rx_end(f, SLMP_OK);
    }
    list_push_back(bucket_of(e, a), &p->bucket);
    list_push_back(&e->all, &p->all);
    e->peers++;
    slmp_touch(p);
    return p;
}

bool slmp_peer_rings(struct slmp_flow *f)
{
    uint32_t window = f->peer->engine->config.window;
    if (f->segments != NULL) {
        return true;
    }
    f->segments = calloc(window, sizeof(*f->segments));
    f->slots = calloc(window, sizeof(*f->slots));
    f->incoming = calloc(window, sizeof(*f->incoming));
    if (f->segments == NULL || f->slots == NULL || f->incoming == NULL) {
        free_rings(f);
        return false;
    }
    return true;
}

/* ---- How long packets may be ---- */

/* Sets the longest packet of a path. Longer packets that were cut already leave in pieces from now
 * on. */
void slmp_peer_path(struct slmp_peer *p, uint32_t longest)
{
    enum { RANGES = 4 * SLMP_RANGES_DATA };
    uint32_t least = p->packet < longest ? p->packet : longest;
    p->path = longest > SLMP_PACKET_MIN ? longest : SLMP_PACKET_MIN;
    least = least > SLMP_PACKET_MIN ? least : SLMP_PACKET_MIN;
    p->segment = p->state == PEER_SESSION ? least - SLMP_OVERHEAD - RANGES -
                                                (p->engine->mac != NULL ? SLMP_TAGGED_MORE : 0)
                                          : least - SLMP_HEADER;
}

/* Ends the session or exchange with a peer: gives back all its messages. The next message begins
 * with a new greeting. */
void slmp_peer_end(struct slmp_peer *p, enum slmp_status status)
{
    struct slmp *e = p->engine;
    bool session = p->state == PEER_SESSION;
    p->state = PEER_IDLE;
    p->generation = slmp_draw(e);
    slmp_auth_end(p);
    slmp_touch(p);
    p->ending = session;
    for (unsigned i = 0; session && i < SLMP_CHANNELS; i++) {
        /* offers packets that were acknowledged but not taken a last time */
        slmp_rx_resume(&p->flow[i]);
    }
    p->ending = false;
    for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
        slmp_rx_end(&p->flow[i], status);
        slmp_tx_end(&p->flow[i], status);
    }
    slmp_room_leave(p);
    if (session) {
        e->up.closed(e->up.context, p, &p->address);
    }
}

/* ---- Peers with work to do ---- */

void slmp_touch(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    p->due = e->due = LOOK;
    p->touched = e->now;
    if (!p->active) {
        p->active = true;
        list_push_back(&e->active, &p->work);
    }
}

static bool talks(const struct slmp_peer *p)
{
    return p->state == PEER_SESSION || p->state == PEER_PLAIN;
}

static int64_t work_due(const struct slmp_peer *p)
{
    int64_t at = slmp_earlier(slmp_session_deadline(p), slmp_plain_deadline(p));
    for (unsigned i = 0; i < p->channels && talks(p); i++) {
        at = slmp_earlier(at, slmp_tx_deadline(&p->flow[i]));
        if (p->state == PEER_SESSION) {
            at = slmp_earlier(at, slmp_rx_deadline(&p->flow[i]));
        }
    }
    return at;
}

/* Whether a channel does not need its rings. */
static bool at_rest(const struct slmp_flow *f)
{
    return f->segments != NULL && list_empty(&f->queue) && f->una == f->next && f->base == f->top &&
           f->incoming_active == 0;
}

static int64_t peer_due(const struct slmp_peer *p)
{
    int64_t at = work_due(p);
    for (unsigned i = 0; i < p->channels && at == SLMP_NEVER; i++) {
        at = at_rest(&p->flow[i]) ? p->touched + LINGER : at;
    }
    return at;
}

/* Does the work that is due for a peer; this may end its session. */
static void advance(struct slmp_peer *p)
{
    slmp_session_advance(p);
    slmp_plain_advance(p);
    for (unsigned i = 0; i < p->channels; i++) {
        if (talks(p) && !slmp_tx_advance(&p->flow[i]) && !slmp_room_spares(p)) {
            slmp_peer_end(p, SLMP_UNDELIVERABLE);
        }
    }
    if (p->engine->now - p->touched >= LINGER && work_due(p) == SLMP_NEVER) {
        for (unsigned i = 0; i < SLMP_CHANNELS; i++) {
            if (at_rest(&p->flow[i])) {
                free_rings(&p->flow[i]);
            }
        }
    }
}

void slmp_active_advance(struct slmp *e)
{
    struct list *l = e->active.next;
    uint32_t count = e->peers;
    for (; e->due <= e->now && l != &e->active && count > 0; count--) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, work);
        l = l->next;
        if (p->due <= e->now) {
            advance(p);
            p->due = e->due = LOOK;
        }
    }
}

static bool peer_output(struct slmp_peer *p, struct slmp_packet *packet)
{
    if (slmp_session_output(p, packet) || slmp_plain_unacked(p, packet)) {
        return true;
    }
    for (unsigned i = 0; i < p->channels && talks(p); i++) {
        struct slmp_flow *f = &p->flow[i];
        if (slmp_tx_output(f, packet) || (p->state == PEER_SESSION && slmp_rx_output(f, packet))) {
            return true;
        }
    }
    return false;
}

static void rest(struct slmp_peer *p)
{
    p->due = peer_due(p);
    if (p->due == SLMP_NEVER) {
        p->active = false;
        list_remove(&p->work);
    }
}

bool slmp_active_output(struct slmp *e, struct slmp_packet *packet)
{
    enum { BURST = 64 };
    struct list *l = e->active.next;
    int64_t least = SLMP_NEVER;
    while (e->due <= e->now && l != &e->active) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, work);
        l = l->next;
        if (p->due <= e->now) {
            if (peer_output(p, packet)) {
                p->due = LOOK;
                if (++e->burst >= BURST) { /* the other peers have their turn */
                    list_remove(&p->work);
                    list_push_back(&e->active, &p->work);
                    e->burst = 0;
                }
                return true;
            }
            e->burst = 0;
            rest(p);
        }
        least = slmp_earlier(least, p->due);
    }
    e->due = e->due <= e->now ? least : e->due;
    return false;
}

int64_t slmp_active_due(const struct slmp *e)
{
    int64_t at = SLMP_NEVER;
    if (e->due != LOOK) {
        return e->due;
    }
    LIST_EACH(const struct slmp_peer, p, &e->active, work) {
        at = slmp_earlier(at, p->due == LOOK ? peer_due(p) : p->due);
    }
    return at;
}
