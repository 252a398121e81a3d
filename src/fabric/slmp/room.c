/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places and memory of an engine, and which sessions give way when these are short.
 *
 * Invariants:
 *   - A session gives way only if this side has nothing outstanding with it: no message to the peer
 *     is under way, and the user of the engine does not say that the peer is busy. So no operation
 *     of the program fails by it.
 *   - While there is room, no peer is probed and none gives way: a stopped process keeps its
 *     session.
 *   - When room becomes short, the engine asks silent peers whether they live, the one that was
 *     silent longest first. A peer that answers lives. One that has not answered three questions,
 *     for a quarter of config.silence at least, is absent: dead or stopped, which cannot be told
 *     apart. An absent peer keeps its session until a newcomer needs the place.
 *   - A newcomer gets a place when it has proved its address: its OPEN repeats this engine's nonce.
 *   - The order in which sessions give way: the lowest standing first, then absent ones, then those
 *     of the source with most places, then the one that was used longest ago. A session does not
 *     give way to a newcomer of lower standing; to one of equal standing only if it is absent, of
 *     the same source, or of a source with more places. A peer that lives gives way only after a
 *     while without messages, and is told so (slmp_leave()), so that it can begin anew.
 *   - Sources with standing SLMP_OTHERS have half of the places together at most.
 *   - A source may hold as much memory for packets as remains free then: one alone has half of it,
 *     and n sources leave as much for another one as each of them has.
 */
#include "room.h"

#include "lost.h"
#include "peer.h"

#include <stdlib.h>

/* a peer heard within this time lives; one used within it is not quiet */
#define QUIET_NS 1000000000LL

enum {
    SHORT_PART = 8, /* room is short when less than the 8th part of it is free */
    QUESTIONS = 2   /* peers that are asked for each newcomer */
};

/* A source: its sessions share places and memory. It has the peers of one IP address, or those that
 * the upcall `whose` names alike. */
struct slmp_source {
    struct list link;
    uint64_t name;
    enum slmp_standing standing;
    uint32_t places;
    size_t held; /* bytes of packets that its sessions hold */
};

/* The source of peers that this side itself wants to reach. */
const struct slmp_whose slmp_room_self = {.name = UINT64_MAX, .standing = SLMP_OURS};

/* ---- Sources ---- */

struct slmp_whose slmp_room_whose(struct slmp *e, const struct slmp_address *a)
{
    if (e->up.whose == NULL) {
        return (struct slmp_whose){.name = a->ip, .standing = SLMP_ANYBODYS};
    }
    return e->up.whose(e->up.context, a);
}

static struct slmp_source *find_source(const struct slmp *e, const struct slmp_whose *w)
{
    LIST_EACH(struct slmp_source, s, &e->sources, link) {
        if (s->name == w->name && s->standing == w->standing) {
            return s;
        }
    }
    return NULL;
}

void slmp_room_leave(struct slmp_peer *p)
{
    struct slmp_source *s = p->source;
    if (s == NULL) {
        return;
    }
    p->source = NULL;
    p->engine->others -= s->standing == SLMP_OTHERS;
    if (--s->places == 0) {
        list_remove(&s->link);
        free(s);
    }
}

bool slmp_room_join(struct slmp_peer *p, const struct slmp_whose *w)
{
    struct slmp *e = p->engine;
    struct slmp_source *s = find_source(e, w);
    slmp_room_heard(p);
    p->used = e->now;
    if (s != NULL && s == p->source) {
        return true;
    }
    if (s == NULL) {
        if ((s = calloc(1, sizeof(*s))) == NULL) {
            return false;
        }
        s->name = w->name;
        s->standing = w->standing;
        list_push_back(&e->sources, &s->link);
    }
    slmp_room_leave(p);
    p->source = s;
    s->places++;
    e->others += s->standing == SLMP_OTHERS;
    return true;
}

/* ---- Quiet and absent peers ---- */

static bool sends(const struct slmp_peer *p)
{
    for (unsigned i = 0; i < p->channels; i++) {
        const struct slmp_flow *f = &p->flow[i];
        if (!list_empty(&f->queue) || !list_empty(&f->flying) || f->una != f->next) {
            return true;
        }
    }
    return !list_empty(&p->unacked);
}

/* Whether this side has something outstanding with a peer. */
static bool is_needed(const struct slmp_peer *p)
{
    const struct slmp_upcalls *up = &p->engine->up;
    return sends(p) ||
           (up->busy != NULL && up->busy(up->context, (struct slmp_peer *)(uintptr_t)p));
}

/* Whether the peer has: a message that came in part, or a packet that is not acknowledged. */
static bool has_begun(const struct slmp_peer *p)
{
    for (unsigned i = 0; i < p->channels; i++) {
        const struct slmp_flow *f = &p->flow[i];
        if (f->base != f->top || f->incoming_active != 0 || f->unacked != 0) {
            return true;
        }
    }
    return false;
}

static bool holds(const struct slmp_peer *p)
{
    return p->flow[0].held != 0 || p->flow[1].held != 0;
}

static bool is_absent(const struct slmp_peer *p)
{
    return p->asked &&
           (p->absent || slmp_tx_unanswered(&p->flow[0], p->engine->config.silence / 4));
}

static bool is_quiet(const struct slmp_peer *p)
{
    return p->engine->now - p->used >= QUIET_NS && !has_begun(p);
}

/* Asks one peer whether it lives: the one that was silent longest among those that were not asked
 * yet; with `holding` among those that hold packets. */
static void ask_one(struct slmp *e, bool holding)
{
    struct slmp_peer *best = NULL;
    LIST_EACH(struct slmp_peer, p, &e->all, all) {
        if (p->state == PEER_SESSION && !p->asked && e->now - p->heard >= QUIET_NS &&
            (!holding || holds(p)) && (best == NULL || p->heard < best->heard) && !is_needed(p)) {
            best = p;
        }
    }
    if (best != NULL) {
        best->asked = true;
        slmp_touch(best);
        slmp_tx_ask(slmp_peer_flow(best, 0));
    }
}

static void ask_some(struct slmp *e, bool holding)
{
    for (unsigned i = 0; i < QUESTIONS; i++) {
        ask_one(e, holding);
    }
}

bool slmp_room_spares(struct slmp_peer *p)
{
    if (!p->asked || is_needed(p)) {
        return false;
    }
    p->absent = true;
    slmp_tx_hush(&p->flow[0]);
    return true;
}

/* ---- Places ---- */

/* Whether a session may give way to a newcomer `w`, whose source has so many places. */
static bool may_push(const struct slmp_peer *p, const struct slmp_whose *w, uint32_t places)
{
    const struct slmp_source *s = p->source;
    if (s->standing != w->standing) {
        return s->standing < w->standing;
    }
    return is_absent(p) || s->name == w->name || s->places > places;
}

/* Whether session p gives way before session q. */
static bool goes_before(const struct slmp_peer *p, const struct slmp_peer *q)
{
    const struct slmp_source *s = p->source, *t = q->source;
    bool absent = is_absent(p);
    if (s->standing != t->standing) {
        return s->standing < t->standing;
    }
    if (absent != is_absent(q)) {
        return absent;
    }
    if (!absent && s->places != t->places) {
        return s->places > t->places;
    }
    return p->used < q->used;
}

/* Returns the session that gives way to a newcomer; with `others` only one of SLMP_OTHERS. NULL:
 * none. */
static struct slmp_peer *choose(struct slmp *e, const struct slmp_whose *w, bool others)
{
    const struct slmp_source *own = find_source(e, w);
    uint32_t places = own != NULL ? own->places : 0;
    struct slmp_peer *best = NULL;
    LIST_EACH(struct slmp_peer, p, &e->all, all) {
        if (p->state == PEER_SESSION && (!others || p->source->standing == SLMP_OTHERS) &&
            (is_absent(p) || is_quiet(p)) && may_push(p, w, places) &&
            (best == NULL || goes_before(p, best)) && !is_needed(p)) {
            best = p;
        }
    }
    return best;
}

/* Ends a session to make room, and frees the peer. False: an upcall has meanwhile sent a message to
 * the peer, which therefore stays. */
static bool give_way(struct slmp_peer *p)
{
    struct slmp *e = p->engine;
    bool inside = e->inside;
    e->inside = true;
    slmp_leave(e, p);
    slmp_peer_end(p, SLMP_UNDELIVERABLE);
    e->inside = inside;
    if (sends(p) || p->state != PEER_IDLE) {
        return false;
    }
    slmp_peer_free(p);
    return true;
}

/* Whether a peer can be forgotten without loss: it has no session, and there is nothing to send. */
static bool is_idle(const struct slmp_peer *p)
{
    for (unsigned i = 0; p->plain != NULL && i < SLMP_PLAIN_MESSAGES; i++) {
        if (p->plain->message[i].in.active) {
            return false;
        }
    }
    return p->state != PEER_SESSION && !sends(p);
}

static bool is_full(const struct slmp *e)
{
    return e->peers >= e->config.peers_max;
}

/* Forgets idle peers until there is a place; with `greeting` those with which an exchange has
 * begun, though there is no message for them. */
static bool forget_idle(struct slmp *e, bool greeting)
{
    for (struct list *l = e->all.next; l != &e->all && is_full(e);) {
        struct slmp_peer *p = container_of(l, struct slmp_peer, all);
        bool greets = p->state == PEER_HELLO || p->state == PEER_OPENING;
        l = l->next;
        if (greets == greeting && is_idle(p)) {
            slmp_peer_free(p);
        }
    }
    return !is_full(e);
}

static uint32_t others_most(const struct slmp *e)
{
    return (e->config.peers_max + 1) / 2;
}

static bool is_short(uint32_t used, uint32_t most)
{
    return used + most / SHORT_PART >= most;
}

/* Makes a place free if any peer gives way. `w` is NULL for a peer that has not proved its
 * address. */
static bool free_place(struct slmp *e, const struct slmp_whose *w)
{
    if (!is_full(e) || forget_idle(e, false)) {
        return true;
    }
    struct slmp_peer *p = w != NULL ? choose(e, w, false) : NULL;
    return (p != NULL && give_way(p)) || forget_idle(e, true);
}

bool slmp_room_place(struct slmp *e, const struct slmp_whose *w)
{
    bool found = free_place(e, w);
    if (w != NULL && is_short(e->peers, e->config.peers_max)) {
        ask_some(e, false);
    }
    return found;
}

bool slmp_room_admit(struct slmp *e, const struct slmp_whose *w)
{
    bool found = true;
    if (w->standing == SLMP_OTHERS && is_short(e->others, others_most(e))) {
        struct slmp_peer *p = e->others >= others_most(e) ? choose(e, w, true) : NULL;
        found = e->others < others_most(e) || (p != NULL && give_way(p));
        ask_some(e, false);
    }
    return found;
}

/* ---- Memory ---- */

static bool has_share(const struct slmp_peer *p, size_t size)
{
    const struct slmp *e = p->engine;
    size_t left = e->config.held_max - e->held;
    return size <= left && p->source->held <= left - size;
}

/* Ends an absent session that holds packets, but not that of `but`; false: there is none. */
static bool squeeze(const struct slmp_peer *but)
{
    struct slmp *e = but->engine;
    LIST_EACH(struct slmp_peer, p, &e->all, all) {
        if (p != but && p->state == PEER_SESSION && holds(p) && is_absent(p) && !is_needed(p)) {
            slmp_leave(e, p);
            slmp_peer_end(p, SLMP_UNDELIVERABLE);
            return true;
        }
    }
    return false;
}

bool slmp_room_hold(struct slmp_peer *p, size_t size)
{
    while (!has_share(p, size)) {
        if (!squeeze(p)) {
            ask_some(p->engine, true);
            return false;
        }
    }
    p->source->held += size;
    p->engine->held += size;
    return true;
}

void slmp_room_release(struct slmp_peer *p, size_t size)
{
    p->source->held -= size;
    p->engine->held -= size;
}
