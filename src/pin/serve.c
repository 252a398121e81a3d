/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves that peers send to this node. A move is checked when it arrives, and waits in a queue until
 * no unit that it needs is being pinned or unpinned. It waits for nothing else, and for no request
 * of this node.
 *
 * For each firehose that a peer has here there is a grant, an entry of node number `nodes + peer`.
 * By the grants this node sees that a peer gives up only what it has and has at most f, and gives
 * up all when the peer dies.
 */
#include "pin/engine.h"

#include <stdlib.h>
#include <string.h>

static bool shape_ok(const struct pin_config *c, const struct pin_range *u)
{
    return u->len > 0 && u->addr % c->page == 0 && u->len % c->page == 0 &&
           u->len <= (c->regions ? c->region_most : c->page) && u->addr + u->len > u->addr;
}

static struct pin_serve *serve_new(uint32_t drops, uint32_t pins)
{
    struct pin_serve *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    size_t pointers = 2 * ((size_t)drops + pins) + 3 * (size_t)pins;
    s->pins = calloc(pins + 1, sizeof(*s->pins));
    s->grants = calloc(pointers + 1, sizeof(struct pin_entry *));
    if (s->pins == NULL || s->grants == NULL) {
        pin_serve_free(s);
        return NULL;
    }
    s->units = s->grants + pins;
    s->fresh = s->units + pins;
    s->drops = s->fresh + pins;
    s->leaves = s->drops + drops + pins;
    s->pin_count = pins;
    list_init(&s->link);
    return s;
}

void pin_serve_free(struct pin_serve *s)
{
    free(s->pins);
    free(s->grants);
    free(s);
}

/* Removes the grants that were made for the pins of a move, since nothing will be pinned for
 * them. */
static void fail_grants(struct pin *p, struct pin_serve *s)
{
    for (uint32_t i = 0; i < s->pin_count; i++) {
        if (s->grants[i] != NULL) {
            table_remove(p, s->grants[i]);
            s->grants[i] = NULL;
            p->pools[s->peer].granted--;
        }
    }
}

/* Marks the grants that the peer gives up as LEAVING; false, and marks none, if the peer lacks one
 * of them or names one twice. */
static bool mark_unpins(struct pin *p, uint32_t peer, const struct pin_range *unpins, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pin_entry *g = table_exact(p, p->config.nodes + peer, unpins[i].addr, unpins[i].len);
        if (g == NULL || g->state != PINNED) {
            while (i-- > 0) {
                table_exact(p, p->config.nodes + peer, unpins[i].addr, unpins[i].len)->state =
                    PINNED;
            }
            return false;
        }
        g->state = LEAVING;
    }
    return true;
}

int pin_arrive(struct pin *p, uint32_t peer, uint64_t token, const struct pin_range *unpins,
               uint32_t unpin_count, const struct pin_range *pins, uint32_t pin_count,
               struct pin_serve **out)
{
    const struct pin_config *c = &p->config;
    *out = NULL;
    bool fine = peer < c->nodes && peer != c->self && !p->pools[peer].dead && unpin_count <= c->f &&
                pin_count <= c->most && p->pools[peer].granted + pin_count <= c->f + unpin_count;
    for (uint32_t i = 0; fine && i < pin_count; i++) {
        fine = shape_ok(c, &pins[i]);
    }
    for (uint32_t i = 0; fine && i < unpin_count; i++) {
        fine = shape_ok(c, &unpins[i]);
    }
    if (!fine || !mark_unpins(p, peer, unpins, unpin_count)) {
        p->stats.refused++;
        return -EPROTO;
    }
    struct pin_serve *s = serve_new(unpin_count, pin_count);
    int rc = s == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; rc == 0 && i < pin_count; i++) {
        s->peer = peer;
        s->pins[i] = pins[i];
        if (table_exact(p, c->nodes + peer, pins[i].addr, pins[i].len) != NULL) {
            rc = -EPROTO;
        } else if ((s->grants[i] = table_add(p, c->nodes + peer, pins[i].addr, pins[i].len,
                                             PENDING)) == NULL) {
            rc = -ENOMEM;
        } else {
            p->pools[peer].granted++;
        }
    }
    for (uint32_t i = 0; i < unpin_count; i++) {
        struct pin_entry *g = table_exact(p, c->nodes + peer, unpins[i].addr, unpins[i].len);
        if (rc != 0) {
            g->state = PINNED;
        } else {
            s->drops[s->drop_count++] = g->unit;
            table_remove(p, g);
            p->pools[peer].granted--;
        }
    }
    if (rc != 0) {
        if (s != NULL) {
            fail_grants(p, s);
            pin_serve_free(s);
        }
        p->stats.refused++;
        return rc;
    }
    s->peer = peer;
    s->token = token;
    s->answer = true;
    list_push_back(&p->serves, &s->link);
    *out = s;
    return 0;
}

/* Called when a peer has given up a firehose on a unit. If no other peer has one and this node does
 * not use it, the unit becomes an idle, charged unit of this node. If that makes one too many, the
 * idle units that were released first are unpinned; if there are none, the unit itself is. */
static void drop_peer(struct pin *p, struct pin_serve *s, struct pin_entry *x)
{
    struct pin_pool *pool = &p->pools[p->config.self];
    if (--x->peers > 0 || x->charged) {
        return;
    }
    if (x->gone) {
        x->state = LEAVING;
        s->leaves[s->leave_count++] = x;
        return;
    }
    while (pool->used >= pool->limit) {
        struct pin_entry *v = fifo_reap(p, pool, NULL);
        if (v == NULL) {
            x->state = LEAVING;
            s->leaves[s->leave_count++] = x;
            return;
        }
        if (v->state == REAPED) {
            v->state = LEAVING;
            v->charged = false;
            pool->used--;
            p->stats.evicted++;
            s->leaves[s->leave_count++] = v;
        }
    }
    pool->used++;
    x->charged = true;
    fifo_list(p, x, true);
}

static void pin_one(struct pin *p, struct pin_serve *s, uint32_t i)
{
    uint32_t self = p->config.self;
    struct pin_entry *x = table_find(p, self, s->pins[i].addr, s->pins[i].len);
    if (x != NULL && x->state == CLAIMED) {
        request_lose_claim(x->owner, x);
        table_remove(p, x);
        x = NULL;
    }
    if (x != NULL && x->state == REAPED) {
        fifo_steal(p, x);
    }
    if (x == NULL) {
        x = table_add(p, self, s->pins[i].addr, s->pins[i].len, PENDING);
        if (x == NULL) {
            s->error = -ENOMEM;
            return;
        }
        p->pinned++;
        s->fresh[s->fresh_count++] = x;
    }
    s->units[i] = x;
    x->peers++;
    if (x->state == PINNED && x->charged && !x->fixed && word_seize(&x->word)) {
        entry_uncharge(p, x);
    }
}

/* Undoes the pins of a move that has failed. */
static void undo(struct pin *p, struct pin_serve *s)
{
    for (uint32_t i = 0; i < s->fresh_count; i++) {
        p->pinned--;
        table_remove(p, s->fresh[i]);
    }
    s->fresh_count = 0;
    for (uint32_t i = 0; i < s->pin_count; i++) {
        if (s->units[i] != NULL && s->units[i]->state != FREE) {
            s->drops[s->drop_count++] = s->units[i];
        }
        s->units[i] = NULL;
    }
    s->resolved = true;
    fail_grants(p, s);
}

/* Finds or makes the entries of all units of a move. False if one of them is being pinned or
 * unpinned, or if there is no room until units that leave are unpinned: then it changes nothing. A
 * move that wants a unit that was forgotten fails with PIN_RESTART instead of waiting for those who
 * use it, since these may wait for what the move's sender holds. */
static bool resolve(struct pin *p, struct pin_serve *s)
{
    uint64_t fresh = 0;
    for (uint32_t i = 0; i < s->pin_count; i++) {
        if (table_gone(p, p->config.self, s->pins[i].addr, s->pins[i].len)) {
            s->error = PIN_RESTART;
            undo(p, s);
            return true;
        }
    }
    for (uint32_t i = 0; i < s->pin_count; i++) {
        struct pin_entry *x = table_find(p, p->config.self, s->pins[i].addr, s->pins[i].len);
        if (x != NULL && (x->state == PENDING || x->state == LEAVING)) {
            return false;
        }
        fresh += x == NULL || x->state == CLAIMED;
    }
    if (p->pinned + fresh > p->config.remote + p->config.victims + s->leave_count) {
        return false;
    }
    for (uint32_t i = 0; i < s->pin_count && s->error == 0; i++) {
        pin_one(p, s, i);
    }
    if (s->error != 0) {
        undo(p, s);
    }
    return true;
}

static bool go_on(struct pin *p, struct pin_serve *s)
{
    do {
        for (uint32_t i = 0; i < s->drop_count; i++) {
            drop_peer(p, s, s->drops[i]);
        }
        s->drop_count = 0;
        if (!s->resolved) {
            s->resolved = s->error != 0 || resolve(p, s);
        }
    } while (s->drop_count > 0);
    if (!s->resolved && s->leave_count == 0) {
        p->stats.waited++;
        return false;
    }
    s->running = true;
    return true;
}

struct pin_serve *pin_serve_next(struct pin *p)
{
    for (struct list *at = p->serves.next; at != &p->serves; at = at->next) {
        struct pin_serve *s = container_of(at, struct pin_serve, link);
        if (!s->running && go_on(p, s)) {
            return s;
        }
    }
    return NULL;
}

struct pin_serve *pin_forsake(struct pin *p)
{
    struct list *at = list_pop_front(&p->serves);
    return at == NULL ? NULL : container_of(at, struct pin_serve, link);
}

uint32_t pin_serve_unpins(const struct pin_serve *s, struct pin_range *ranges)
{
    for (uint32_t i = 0; i < s->leave_count; i++) {
        pin_entry_range(s->leaves[i], &ranges[i]);
    }
    return s->leave_count;
}

uint32_t pin_serve_pins(const struct pin_serve *s, struct pin_range *ranges)
{
    for (uint32_t i = 0; i < s->fresh_count; i++) {
        pin_entry_range(s->fresh[i], &ranges[i]);
    }
    return s->fresh_count;
}

bool pin_served(struct pin *p, struct pin_serve *s, int error, const struct pin_range *pinned)
{
    s->running = false;
    for (uint32_t i = 0; i < s->leave_count; i++) {
        p->pinned--;
        table_remove(p, s->leaves[i]);
    }
    s->leave_count = 0;
    if (!s->resolved) {
        return false;
    }
    for (uint32_t i = 0; i < s->fresh_count && error == 0; i++) {
        memcpy(s->fresh[i]->handle, pinned[i].handle, PIN_HANDLE);
        s->fresh[i]->state = PINNED;
    }
    if (error == 0 && s->fresh_count > 0) {
        s->fresh_count = 0;
    }
    if (s->error == 0 && (error != 0 || (s->pin_count > 0 && p->pools[s->peer].dead))) {
        s->error = error != 0 ? error : -EPIPE;
        undo(p, s);
    }
    if (s->drop_count > 0) {
        return false;
    }
    for (uint32_t i = 0; i < s->pin_count && s->error == 0; i++) {
        s->grants[i]->state = PINNED;
        s->grants[i]->unit = s->units[i];
        gone_granted(p, s->units[i]);
        pin_entry_range(s->units[i], &s->pins[i]);
    }
    list_remove(&s->link);
    p->stats.served++;
    return true;
}

/* Gives up all units that a dead peer has pinned here, by a move that no peer has sent and none is
 * told of. */
static struct pin_serve *tear_down(struct pin *p, uint32_t node)
{
    struct pin_serve *s = serve_new((uint32_t)p->pools[node].granted, 0);
    if (s == NULL) {
        return NULL;
    }
    s->peer = node;
    for (uint32_t i = 0; i < p->capacity; i++) {
        struct pin_entry *g = &p->entries[i];
        if (g->state == PINNED && entry_node(g) == p->config.nodes + node) {
            s->drops[s->drop_count++] = g->unit;
            table_remove(p, g);
            p->pools[node].granted--;
        }
    }
    for (struct list *at = p->serves.next; at != &p->serves; at = at->next) {
        struct pin_serve *other = container_of(at, struct pin_serve, link);
        if (other->peer == node) {
            other->answer = false;
            if (!other->running && !other->resolved) {
                other->error = -EPIPE;
                fail_grants(p, other);
            }
        }
    }
    list_push_back(&p->serves, &s->link);
    return s;
}

/* Forgets this node's firehoses at a dead peer. Entries in use become DEAD and go with their last
 * release. */
static void forget(struct pin *p, uint32_t node)
{
    for (uint32_t i = 0; i < p->capacity; i++) {
        struct pin_entry *x = &p->entries[i];
        if (x->state != PINNED || entry_node(x) != node) {
            continue;
        }
        if (word_shut(&x->word) == 0) {
            entry_forget(p, x);
        } else {
            fifo_unlist(p, x);
            gone_remove(p, x);
            p->pools[node].used--;
            x->state = DEAD;
        }
    }
}

int pin_peer_dead(struct pin *p, uint32_t node, struct list *ended)
{
    if (node >= p->config.nodes || node == p->config.self) {
        p->stats.refused++;
        return -EINVAL;
    }
    if (p->pools[node].dead) {
        return 0;
    }
    if (tear_down(p, node) == NULL) {
        return -ENOMEM;
    }
    p->pools[node].dead = true;
    struct list *at = p->moves.next;
    while (at != &p->moves) {
        struct pin_request *r = container_of(at, struct pin_request, link);
        at = at->next;
        if (r->node == node) {
            pin_finish(p, node, r->token, -EPIPE, NULL, 0, ended);
        }
    }
    forget(p, node);
    return 0;
}
