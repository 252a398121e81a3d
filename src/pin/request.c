/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of this node. A request gathers the entries that it needs in a log, and then commits or
 * rolls back the log.
 *
 * A request uses units that are pinned, waits for units that another request is having pinned, and
 * claims the others. Each claim needs a slot, and so does each unit of this node that only peers
 * keep pinned: a free slot, or that of an entry that is replaced. The request is committed when it
 * has all these slots, and none of its units is in a state that ends by itself (CLAIMED by another
 * request, LEAVING).
 */
#include "pin/engine.h"

#include <stdlib.h>
#include <string.h>

static struct pin_counts *counts_of(struct pin *p, uint32_t node)
{
    return pin_is_self(p, node) ? &p->stats.local : &p->stats.remote;
}

static uint64_t cap(const struct pin *p)
{
    return p->config.remote + p->config.victims;
}

/* Checks the range, rounds it to pages and fills `uses` with its units. */
int request_shape(struct pin *p, struct pin_request *r, uint32_t node, uint64_t addr, uint64_t len)
{
    const struct pin_config *c = &p->config;
    memset(r, 0, sizeof(*r));
    list_init(&r->link);
    list_init(&r->ended);
    if (node >= c->nodes || len == 0 || addr + (len - 1) < addr ||
        ((addr + (len - 1)) | (c->page - 1)) == UINT64_MAX) {
        p->stats.refused++;
        return -EINVAL;
    }
    if (p->pools[node].dead) {
        return -EPIPE;
    }
    uint64_t low = addr & ~(c->page - 1), high = ((addr + (len - 1)) | (c->page - 1)) + 1;
    uint64_t units = c->regions ? 1 : (high - low) / c->page;
    uint64_t most = pin_is_self(p, node) ? c->victims : c->most;
    if (units > most || (c->regions && high - low > c->region_most)) {
        p->stats.refused++;
        return -EMSGSIZE;
    }
    r->node = node;
    r->addr = low;
    r->len = high - low;
    r->count = (uint32_t)units;
    r->uses = &r->one;
    r->victims = &r->one_victim;
    if (units > 1) {
        r->uses = calloc(units, sizeof(*r->uses) + sizeof(*r->victims));
        if (r->uses == NULL) {
            return -ENOMEM;
        }
        r->victims = (struct pin_entry **)(r->uses + units);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t each = c->regions ? r->len : c->page;
        r->uses[i] = (struct pin_use){.request = r, .addr = low + i * each, .len = each};
    }
    return 0;
}

void request_free(struct pin_request *r)
{
    if (r->uses != &r->one) {
        free(r->uses);
    }
    r->uses = NULL;
    r->count = 0;
}

static void stop_waiting(struct pin_use *u)
{
    struct pin_use **at = &u->entry->waiters;
    while (*at != u) {
        at = &(*at)->next;
    }
    *at = u->next;
    u->waits = false;
    u->request->waiting--;
}

/* Gives back all that the request has gathered; it may gather again afterwards. */
void request_rollback(struct pin *p, struct pin_request *r)
{
    struct pin_pool *pool = &p->pools[r->node];
    for (uint32_t i = 0; i < r->count; i++) {
        struct pin_use *u = &r->uses[i];
        if (u->entry == NULL) {
            continue;
        }
        if (u->waits) {
            stop_waiting(u);
        }
        if (u->fresh) {
            table_remove(p, u->entry);
        } else {
            entry_drop(p, u->entry);
        }
        u->entry = NULL;
        u->fresh = false;
    }
    while (r->victim_count > 0) {
        fifo_restore(p, r->victims[--r->victim_count]);
    }
    pool->used -= r->reserved;
    pool->reserved -= r->reserved;
    r->reserved = r->claims = 0;
    if (pool->winner == r) {
        pool->winner = NULL;
    }
}

/* Takes the claim on an entry away from a request, because a move of a peer needs the unit. */
void request_lose_claim(struct pin_request *r, struct pin_entry *x)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->uses[i].entry == x) {
            r->uses[i].entry = NULL;
            r->uses[i].fresh = false;
            r->claims--;
        }
    }
}

void request_end(struct pin *p, struct pin_request *r, struct list *ended)
{
    r->gathering = false;
    if (r->error != 0) {
        request_rollback(p, r);
        request_free(r);
        *(r->error == PIN_RESTART ? &p->stats.restarted : &p->stats.failed) += 1;
    } else if (p->config.regions && r->count == 1) {
        r->addr = entry_addr(r->uses[0].entry);
        r->len = entry_len(r->uses[0].entry);
    }
    if (ended != NULL) {
        list_push_back(ended, &r->ended);
    }
}

static void take(struct pin_use *u, struct pin_entry *x)
{
    word_use(&x->word, 1);
    u->entry = x;
}

enum found { GOT, NEEDS_SLOT, BUSY };

static enum found claim(struct pin *p, struct pin_request *r, struct pin_use *u)
{
    uint64_t addr = u->addr, len = u->len;
    if (p->config.regions) {
        table_widen(p, r->node, &addr, &len);
    }
    struct pin_entry *x = table_add(p, r->node, addr, len, CLAIMED);
    if (x == NULL) {
        return BUSY;
    }
    x->owner = r;
    take(u, x);
    u->fresh = true;
    r->claims++;
    return GOT;
}

static enum found look(struct pin *p, struct pin_request *r, struct pin_use *u)
{
    struct pin_pool *pool = &p->pools[r->node];
    if (u->entry != NULL) {
        return GOT;
    }
    if (table_gone(p, r->node, u->addr, u->len)) {
        return BUSY;
    }
    struct pin_entry *x = table_find(p, r->node, u->addr, u->len);
    if (x == NULL) {
        return claim(p, r, u);
    }
    if (x->state == REAPED && (pool->winner == NULL || pool->winner == r || x->owner == r)) {
        fifo_steal(p, x);
    }
    bool slot = !pin_is_self(p, r->node) || x->charged;
    if (word_uses(entry_word(x)) >= WORD_USES - 1) {
        return BUSY;
    }
    if (x->state == PINNED) {
        if (!slot) {
            return NEEDS_SLOT;
        }
        take(u, x);
        return GOT;
    }
    if (x->state == PENDING && slot) {
        take(u, x);
        u->waits = true;
        u->next = x->waiters;
        x->waiters = u;
        r->waiting++;
        return GOT;
    }
    return BUSY;
}

/* Gets slots until the request has `need` of them, or until there are no more. */
static void get_slots(struct pin *p, struct pin_request *r, uint32_t need)
{
    struct pin_pool *pool = &p->pools[r->node];
    while (r->reserved + r->victim_count < need) {
        if (pool->used < pool->limit) {
            pool->used++;
            pool->reserved++;
            r->reserved++;
            continue;
        }
        struct pin_entry *x = fifo_reap(p, pool, r);
        if (x == NULL) {
            return;
        }
        if (x->state == REAPED) {
            r->victims[r->victim_count++] = x;
        }
    }
}

/* Gives back the slots that the request has beyond `need`. */
static void trim_slots(struct pin *p, struct pin_request *r, uint32_t need)
{
    struct pin_pool *pool = &p->pools[r->node];
    while (r->reserved + r->victim_count > need) {
        if (r->reserved > 0) {
            pool->used--;
            pool->reserved--;
            r->reserved--;
        } else {
            fifo_restore(p, r->victims[--r->victim_count]);
        }
    }
}

/* Charges a unit of this node that peers keep pinned to MAXVICTIM, as this node uses it now,
 * too. */
static void charge(struct pin *p, struct pin_use *u)
{
    struct pin_entry *x = table_find(p, p->config.self, u->addr, u->len);
    x->charged = true;
    take(u, x);
    fifo_list(p, x, true);
}

static enum pin_step commit(struct pin *p, struct pin_request *r, uint32_t need)
{
    struct pin_pool *pool = &p->pools[r->node];
    struct pin_counts *counts = counts_of(p, r->node);
    bool self = pin_is_self(p, r->node);
    trim_slots(p, r, need);
    for (uint32_t i = 0; i < r->victim_count; i++) {
        r->victims[i]->state = LEAVING;
        r->victims[i]->charged = false;
        r->victims[i]->owner = NULL;
    }
    pool->used += need - r->victim_count - r->reserved;
    pool->reserved -= r->reserved;
    r->reserved = 0;
    p->stats.evicted += r->victim_count;
    for (uint32_t i = 0; i < r->count; i++) {
        struct pin_use *u = &r->uses[i];
        if (u->fresh) {
            u->entry->state = PENDING;
            u->entry->charged = self;
            p->pinned += self;
        } else if (u->entry == NULL) {
            charge(p, u);
        }
    }
    if (pool->winner == r) {
        pool->winner = NULL;
    }
    r->gathering = false;
    if (r->claims > 0) {
        counts->miss++;
    } else {
        *(r->waiting > 0 || r->later ? &counts->pending : &counts->hit) += 1;
    }
    if (r->claims == 0 && r->victim_count == 0) {
        if (r->waiting > 0) {
            return PIN_WAIT;
        }
        request_end(p, r, NULL);
        return PIN_DONE;
    }
    r->sent = true;
    r->waiting++;
    r->token = ++p->token;
    list_push_back(&p->moves, &r->link);
    p->stats.moved++;
    return PIN_SENT;
}

static int gather(struct pin *p, struct pin_request *r)
{
    struct pin_pool *pool = &p->pools[r->node];
    if (pool->dead && r->error == 0) {
        r->error = -EPIPE;
    }
    if (r->error != 0) {
        request_end(p, r, NULL);
        return r->error;
    }
    uint32_t need = 0;
    bool busy = false;
    for (uint32_t i = 0; i < r->count; i++) {
        enum found found = look(p, r, &r->uses[i]);
        need += found == NEEDS_SLOT;
        busy |= found == BUSY;
    }
    need += r->claims;
    if ((need > 0 || busy) && pool->winner != NULL && pool->winner != r) {
        request_rollback(p, r);
        r->tries = 0;
        r->later = true;
        p->stats.rollbacks++;
        p->stats.yields++;
        return PIN_YIELD;
    }
    get_slots(p, r, need);
    bool room = !pin_is_self(p, r->node) || p->pinned + r->claims <= cap(p) + r->victim_count;
    if (busy || !room || r->reserved + r->victim_count < need) {
        r->later = true;
        return PIN_AGAIN;
    }
    return commit(p, r, need);
}

int pin_begin(struct pin *p, struct pin_request *r, uint32_t node, uint64_t addr, uint64_t len)
{
    int rc = request_shape(p, r, node, addr, len);
    if (rc != 0) {
        return rc;
    }
    counts_of(p, node)->pin++;
    r->gathering = true;
    return gather(p, r);
}

int pin_again(struct pin *p, struct pin_request *r)
{
    struct pin_pool *pool = &p->pools[r->node];
    if (pool->winner == NULL && ++r->tries >= p->config.da_limit) {
        pool->winner = r;
        p->stats.avoided++;
    }
    return gather(p, r);
}

void pin_cancel(struct pin *p, struct pin_request *r)
{
    request_rollback(p, r);
    request_free(r);
    p->stats.rollbacks++;
    p->stats.failed++;
}

/* Returns the PINNED entry of a unit that can be used without a move and without pinning, or NULL.
 * A unit that must be charged takes one of the `spare` slots. */
static struct pin_entry *at_hand(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                                 uint64_t *spare)
{
    struct pin_entry *x = table_find(p, node, addr, len);
    if (x == NULL || x->state != PINNED || word_uses(entry_word(x)) >= WORD_USES - 1 ||
        table_gone(p, node, addr, len)) {
        return NULL;
    }
    if (pin_is_self(p, node) && !x->charged) {
        if (*spare == 0) {
            return NULL;
        }
        (*spare)--;
    }
    return x;
}

static uint64_t spare_of(const struct pin *p, uint32_t node)
{
    return p->pools[node].limit - p->pools[node].used;
}

static int try_all(struct pin *p, struct pin_request *r)
{
    uint64_t spare = spare_of(p, r->node);
    for (uint32_t i = 0; i < r->count; i++) {
        if (at_hand(p, r->node, r->uses[i].addr, r->uses[i].len, &spare) == NULL) {
            return -EAGAIN;
        }
    }
    for (uint32_t i = 0; i < r->count; i++) {
        struct pin_use *u = &r->uses[i];
        struct pin_entry *x = table_find(p, r->node, u->addr, u->len);
        if (pin_is_self(p, r->node) && !x->charged) {
            p->pools[r->node].used++;
            charge(p, u);
        } else {
            take(u, x);
        }
    }
    request_end(p, r, NULL);
    return 0;
}

int pin_try(struct pin *p, struct pin_request *r, uint32_t node, uint64_t addr, uint64_t len)
{
    int rc = request_shape(p, r, node, addr, len);
    if (rc != 0) {
        return rc;
    }
    rc = try_all(p, r);
    *(rc == 0 ? &counts_of(p, node)->try_hit : &counts_of(p, node)->try_miss) += 1;
    if (rc != 0) {
        request_free(r);
    }
    return rc;
}

int pin_partial(struct pin *p, struct pin_request *r, uint32_t node, uint64_t addr, uint64_t len)
{
    int rc = request_shape(p, r, node, addr, len);
    if (rc != 0) {
        return rc;
    }
    uint64_t page = p->config.page, low = r->addr, end = r->addr + r->len, high;
    uint64_t spare = spare_of(p, node);
    struct pin_entry *x = NULL;
    while (low < end && (x = at_hand(p, node, low, page, &spare)) == NULL) {
        low += page;
    }
    high = low + page;
    if (x != NULL && p->config.regions) {
        uint64_t x_end = entry_addr(x) + entry_len(x);
        high = x_end < end ? x_end : end;
    }
    while (x != NULL && !p->config.regions && high < end &&
           at_hand(p, node, high, page, &spare) != NULL) {
        high += page;
    }
    request_free(r);
    *(x != NULL ? &counts_of(p, node)->partial_hit : &counts_of(p, node)->partial_miss) += 1;
    if (x == NULL) {
        return -EAGAIN;
    }
    rc = request_shape(p, r, node, low, high - low);
    if (rc == 0) {
        rc = try_all(p, r);
        r->addr = low;
        r->len = high - low;
    }
    if (rc != 0) {
        request_free(r);
    }
    return rc;
}

void pin_release(struct pin *p, struct pin_request *r)
{
    counts_of(p, r->node)->release++;
    request_rollback(p, r);
    request_free(r);
}

uint32_t pin_unpins(const struct pin_request *r, struct pin_range *ranges)
{
    for (uint32_t i = 0; i < r->victim_count; i++) {
        pin_entry_range(r->victims[i], &ranges[i]);
    }
    return r->victim_count;
}

uint32_t pin_pins(const struct pin_request *r, struct pin_range *ranges)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->uses[i].fresh) {
            pin_entry_range(r->uses[i].entry, &ranges[n++]);
        }
    }
    return n;
}
