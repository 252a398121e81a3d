/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is gone, or about to go: unmapped, moved, replaced by other pages.
 *
 * A unit that is forgotten loses HIT and is found by nobody. A unit of this node is unpinned when
 * its last use has ended and no peer has a firehose on it; the peers are asked once to give it up.
 * A peer does that by a move without pins, so its unit is LEAVING until the move is answered, and
 * messages may overtake each other: a unit that is named in vain was given up already, and one that
 * is PENDING is given up after its use.
 */
#include "pin/engine.h"

#include <stdlib.h>

static void put(struct pin_entry *x, struct list *where)
{
    list_remove(&x->link);
    list_push_back(where, &x->link);
}

/* Called when a forgotten PINNED unit has no use. */
void gone_idle(struct pin *p, struct pin_entry *x)
{
    if (!pin_is_self(p, entry_node(x))) {
        put(x, &p->give);
        return;
    }
    if (x->charged) {
        entry_uncharge(p, x);
    }
    if (x->peers == 0) {
        x->state = LEAVING;
        put(x, &p->unpin);
    }
}

/* Called when a peer got a firehose on a unit: it must give it up if the unit was forgotten while
 * it was being pinned. */
void gone_granted(struct pin *p, struct pin_entry *x)
{
    if (x->gone) {
        put(x, &p->ask);
    }
}

/* Called when an entry is no unit any more. */
void gone_remove(struct pin *p, struct pin_entry *x)
{
    if (x->gone) {
        list_remove(&x->link);
        x->gone = false;
        p->gone_count--;
    }
}

/* Forgets a unit; false if it was forgotten before, or is not pinned and not going to be. */
static bool mark(struct pin *p, struct pin_entry *x)
{
    if (x->gone || x->fixed || x->state == CLAIMED || x->state == DEAD) {
        return false;
    }
    if (x->state == REAPED) {
        fifo_steal(p, x);
    }
    x->gone = true;
    p->gone_count++;
    list_init(&x->link);
    put(x, x->peers > 0 ? &p->ask : &p->gone);
    if (x->state == PINNED) {
        uint32_t uses = word_shut(&x->word);
        fifo_unlist(p, x);
        if (uses == 0) {
            gone_idle(p, x);
        }
    }
    return true;
}

int pin_forget(struct pin *p, uint64_t addr, uint64_t len, bool spare, uint64_t *when)
{
    struct table_cursor cursor = {0};
    struct pin_entry *x;
    if (len == 0 || addr + (len - 1) < addr) {
        p->stats.refused++;
        return -EINVAL;
    }
    while ((x = table_over(p, p->config.self, addr, len, &cursor)) != NULL) {
        if (x->fixed && !spare) {
            p->stats.refused++;
            return -EBUSY;
        }
    }
    *when = ++p->forgets;
    cursor = (struct table_cursor){0};
    while ((x = table_over(p, p->config.self, addr, len, &cursor)) != NULL) {
        if (mark(p, x)) {
            x->when = *when;
            p->stats.forgotten++;
        }
    }
    return 0;
}

bool pin_forgotten(const struct pin *p, uint64_t addr, uint64_t len, uint64_t when)
{
    struct table_cursor cursor = {0};
    struct pin_entry *x = NULL;
    if (p->gone_count > 0) {
        while ((x = table_over(p, p->config.self, addr, len, &cursor)) != NULL &&
               !(x->gone && x->when <= when)) {
        }
    }
    return x == NULL;
}

struct pin_entry *pin_gone_next(struct pin *p, struct pin_range *range)
{
    if (list_empty(&p->unpin)) {
        return NULL;
    }
    struct pin_entry *x = container_of(p->unpin.next, struct pin_entry, link);
    put(x, &p->gone);
    pin_entry_range(x, range);
    return x;
}

void pin_gone(struct pin *p, struct pin_entry *x)
{
    p->pinned--;
    table_remove(p, x);
}

/* Adds the grants on a unit to the list for *peer, or for the first peer that has one if the list
 * is empty; false if there are more than it may add. */
static bool revoke(struct pin *p, struct pin_entry *x, uint32_t *peer, struct pin_range *ranges,
                   uint32_t *n, uint32_t most)
{
    for (uint32_t node = 0; node < p->config.nodes; node++) {
        struct table_cursor cursor = {0};
        struct pin_entry *g;
        while ((g = table_over(p, p->config.nodes + node, entry_addr(x), entry_len(x), &cursor)) !=
               NULL) {
            if (g->state != PINNED || g->unit != x || g->told) {
                continue;
            }
            if (*n == most || (*n > 0 && node != *peer)) {
                return false;
            }
            g->told = true;
            *peer = node;
            pin_entry_range(g, &ranges[(*n)++]);
        }
    }
    return true;
}

uint32_t pin_revoke_next(struct pin *p, uint32_t *peer, struct pin_range *ranges, uint32_t most)
{
    uint32_t n = 0;
    struct list *at = p->ask.next;
    while (at != &p->ask && n < most) {
        struct pin_entry *x = container_of(at, struct pin_entry, link);
        at = at->next;
        if (revoke(p, x, peer, ranges, &n, most)) {
            put(x, &p->gone);
        }
    }
    return n;
}

int pin_revoked(struct pin *p, uint32_t node, const struct pin_range *ranges, uint32_t n)
{
    uint64_t page = p->config.page;
    bool fine = node < p->config.nodes && !pin_is_self(p, node);
    for (uint32_t i = 0; fine && i < n; i++) {
        fine = ranges[i].len > 0 && ranges[i].addr % page == 0 && ranges[i].len % page == 0;
    }
    if (!fine) {
        p->stats.refused++;
        return -EPROTO;
    }
    for (uint32_t i = 0; i < n && !p->pools[node].dead; i++) {
        struct pin_entry *x = table_exact(p, node, ranges[i].addr, ranges[i].len);
        if (x != NULL && x->state != LEAVING) {
            p->stats.revoked += mark(p, x);
        }
    }
    return 0;
}

int pin_give_up(struct pin *p, struct pin_request *r, uint32_t most)
{
    if (list_empty(&p->give)) {
        return PIN_DONE;
    }
    uint32_t node = entry_node(container_of(p->give.next, struct pin_entry, link));
    int rc = request_shape(p, r, node, 0, p->config.page);
    if (rc != 0) {
        return rc;
    }
    r->count = 0;
    r->uses = calloc(most, sizeof(struct pin_entry *));
    if (r->uses == NULL) {
        return -ENOMEM;
    }
    r->victims = (struct pin_entry **)r->uses;
    struct list *at = p->give.next;
    while (at != &p->give && r->victim_count < most) {
        struct pin_entry *x = container_of(at, struct pin_entry, link);
        at = at->next;
        if (entry_node(x) == node) {
            x->state = LEAVING;
            put(x, &p->gone);
            r->victims[r->victim_count++] = x;
        }
    }
    r->sent = true;
    r->waiting = 1;
    r->token = ++p->token;
    list_push_back(&p->moves, &r->link);
    p->stats.moved++;
    return PIN_SENT;
}

void pin_gave(struct pin_request *r)
{
    request_free(r);
}

bool pin_gone_due(const struct pin *p)
{
    return !list_empty(&p->ask) || !list_empty(&p->unpin) || !list_empty(&p->give);
}

void pin_hide(struct pin *p)
{
    atomic_store(&p->hits, p->none);
}

void pin_show(struct pin *p)
{
    atomic_store(&p->hits, p->chains);
}
