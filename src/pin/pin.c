/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's creation and end, the end of the moves of this node, and queries. */
#include "pin/engine.h"

#include <stdlib.h>
#include <string.h>

static bool config_ok(const struct pin_config *c)
{
    uint64_t all = (uint64_t)(c->nodes - 1) * c->f;
    return c->nodes > 0 && c->nodes < 1u << 24 && c->self < c->nodes && c->page > 0 &&
           (c->page & (c->page - 1)) == 0 && c->victims > 0 && c->most <= c->f &&
           (c->nodes == 1 || c->most > 0) && c->f < 1u << 30 && all <= c->remote &&
           c->remote + c->victims < 1u << 28 && c->da_limit > 0 &&
           (!c->regions || (c->region_most >= c->page && c->region_most % c->page == 0 &&
                            c->region_most <= UINT64_C(1) << 62));
}

static bool allocate(struct pin *p)
{
    const struct pin_config *c = &p->config;
    uint64_t units = c->remote + c->victims, all = (uint64_t)(c->nodes - 1) * c->f;
    /* Entries for: units that are pinned or leave, here and at peers; grants; claims of
     * requests. */
    uint64_t capacity = 2 * units + 3 * all + 4 * (c->victims < c->f ? c->f : c->victims) + 64;
    if (capacity >= 1u << 30) {
        return false;
    }
    p->capacity = (uint32_t)capacity;
    unsigned bits = 4;
    while (bits < 31 && (1u << bits) < p->capacity) {
        bits++;
    }
    p->shift = 64 - bits;
    p->entries = aligned_alloc(64, p->capacity * sizeof(*p->entries));
    p->chains = calloc(1u << bits, sizeof(*p->chains));
    p->none = calloc(1u << bits, sizeof(*p->none));
    atomic_init(&p->hits, p->chains);
    p->pools = calloc(c->nodes, sizeof(*p->pools));
    if (p->entries == NULL || p->chains == NULL || p->none == NULL || p->pools == NULL) {
        return false;
    }
    memset(p->entries, 0, p->capacity * sizeof(*p->entries));
    for (uint32_t i = p->capacity; i-- > 0;) {
        p->entries[i].free = p->free;
        p->free = &p->entries[i];
    }
    for (uint32_t node = 0; node < c->nodes; node++) {
        struct pin_pool *pool = &p->pools[node];
        pool->limit = node == c->self ? c->victims : c->f;
        pool->fifo = calloc(pool->limit + 1, sizeof(*pool->fifo));
        if (pool->fifo == NULL) {
            return false;
        }
    }
    return true;
}

int pin_open(const struct pin_config *config, struct pin **out)
{
    *out = NULL;
    if (!config_ok(config)) {
        return -EINVAL;
    }
    struct pin *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return -ENOMEM;
    }
    p->config = *config;
    uint64_t longest = config->regions ? config->region_most : config->page;
    while (UINT64_C(1) << p->grain < longest) {
        p->grain++;
    }
    list_init(&p->moves);
    list_init(&p->serves);
    list_init(&p->ask);
    list_init(&p->unpin);
    list_init(&p->give);
    list_init(&p->gone);
    if (!allocate(p)) {
        pin_close(p);
        return -ENOMEM;
    }
    *out = p;
    return 0;
}

void pin_close(struct pin *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t node = 0; p->pools != NULL && node < p->config.nodes; node++) {
        free(p->pools[node].fifo);
    }
    struct list *at;
    while (p->serves.next != NULL && (at = list_pop_front(&p->serves)) != NULL) {
        pin_serve_free(container_of(at, struct pin_serve, link));
    }
    free(p->pools);
    free(p->chains);
    free(p->none);
    free(p->entries);
    free(p);
}

int pin_prepin(struct pin *p, uint64_t addr, uint64_t len, const uint8_t *handle)
{
    uint64_t page = p->config.page, each = p->config.regions ? len : page;
    struct pin_pool *pool = &p->pools[p->config.self];
    if (len == 0 || addr % page != 0 || len % page != 0 || addr + len < addr ||
        each > UINT64_C(1) << p->grain) {
        return -EINVAL;
    }
    if (len / each > pool->limit - pool->used) {
        return -EMSGSIZE;
    }
    for (uint64_t at = addr; at < addr + len; at += each) {
        if (table_exact(p, p->config.self, at, each) != NULL) {
            return -EEXIST;
        }
        struct pin_entry *x = table_add(p, p->config.self, at, each, PINNED);
        if (x == NULL) {
            return -ENOMEM;
        }
        if (handle != NULL) {
            memcpy(x->handle, handle, PIN_HANDLE);
        }
        x->charged = x->fixed = true;
        pool->used++;
        p->pinned++;
        word_use(&x->word, 1);
        entry_open(p, x);
    }
    return 0;
}

bool pin_drop(struct pin *p, struct pin_entry *x, uint32_t generation, int *error)
{
    enum word_drop how = word_drop(&x->word, generation, &p->epoch);
    *error = how == WORD_STALE ? -EALREADY : 0;
    return how != WORD_SLOW;
}

int pin_drop_locked(struct pin *p, struct pin_entry *x, uint32_t generation)
{
    uint64_t word = entry_word(x);
    if (word_generation(word) != generation || word_uses(word) == 0) {
        p->stats.refused++;
        return -EALREADY;
    }
    entry_drop(p, x);
    return 0;
}

/* Tells all requests that wait for an entry that its unit is pinned, or, if `error` is not 0, that
 * it could not be. */
static void wake(struct pin *p, struct pin_entry *x, int error, struct list *ended)
{
    struct pin_use *u = x->waiters, *next;
    x->waiters = NULL;
    for (; u != NULL; u = next) {
        struct pin_request *r = u->request;
        next = u->next;
        u->waits = false;
        if (error != 0) {
            u->entry = NULL;
            r->error = error;
        }
        if (--r->waiting == 0 && !r->gathering) {
            request_end(p, r, ended);
        }
    }
}

int pin_finish(struct pin *p, uint32_t node, uint64_t token, int error,
               const struct pin_range *pinned, uint32_t count, struct list *ended)
{
    struct pin_request *r = NULL;
    for (struct list *at = p->moves.next; at != &p->moves && r == NULL; at = at->next) {
        struct pin_request *one = container_of(at, struct pin_request, link);
        r = one->token == token && one->node == node ? one : NULL;
    }
    if (r == NULL || error > 0 || (error == 0 && count != r->claims)) {
        p->stats.refused++;
        return -EPROTO;
    }
    list_remove(&r->link);
    for (uint32_t i = 0; i < r->victim_count; i++) {
        p->pinned -= pin_is_self(p, node);
        /* a unit that is given up keeps its slot until the peer has answered */
        p->pools[node].used -= r->victims[i]->gone && !pin_is_self(p, node);
        table_remove(p, r->victims[i]);
    }
    r->victim_count = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        struct pin_use *u = &r->uses[i];
        struct pin_entry *x = u->entry;
        if (!u->fresh) {
            continue;
        }
        u->fresh = false;
        if (error == 0) {
            memcpy(x->handle, pinned[n++].handle, PIN_HANDLE);
            x->state = PINNED;
            entry_open(p, x);
            wake(p, x, 0, ended);
        } else {
            u->entry = NULL;
            wake(p, x, error, ended);
            entry_forget(p, x);
        }
    }
    r->claims = 0;
    r->sent = false;
    if (error != 0) {
        r->error = error;
    }
    if (--r->waiting == 0) {
        request_end(p, r, ended);
    }
    return 0;
}

bool pin_drain(struct pin *p, struct pin_range *range)
{
    for (; p->drained < p->capacity; p->drained++) {
        struct pin_entry *x = &p->entries[p->drained];
        bool there = x->state == PINNED || x->state == REAPED || (x->state == LEAVING && x->gone);
        if (there && entry_node(x) == p->config.self && !x->fixed &&
            word_uses(entry_word(x)) == 0) {
            word_shut(&x->word);
            pin_entry_range(x, range);
            x->state = PINNED;
            entry_forget(p, x);
            return true;
        }
    }
    p->drained = 0;
    return false;
}

struct pin_stats *pin_stats_of(struct pin *p)
{
    return &p->stats;
}

bool pin_winner(const struct pin *p, uint32_t node)
{
    return p->pools[node].winner != NULL;
}

const struct pin_stats *pin_stats(const struct pin *p)
{
    return &p->stats;
}

struct pin_load pin_load(const struct pin *p, uint32_t node)
{
    return (struct pin_load){p->pinned, p->pools[p->config.self].used, p->pools[node].granted,
                             p->pools[node].used, p->capacity};
}
