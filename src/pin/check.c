/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks whether the engine's tables agree with each other; for tests and for debugging. */
#include "pin/engine.h"

#include <stdio.h>

#define WRONG(...) return snprintf(text, length, __VA_ARGS__), -EUCLEAN

static int check_entry(const struct pin *p, const struct pin_entry *x, char *text, size_t length)
{
    uint64_t word = entry_word(x);
    bool self = pin_is_self(p, entry_node(x)), hit = (word & WORD_HIT) != 0;
    unsigned long long addr = entry_addr(x);
    if (hit && x->state != PINNED) {
        WRONG("%#llx can be hit in state %d", addr, x->state);
    }
    if (hit != (x->place != 0) && !x->fixed) {
        WRONG("%#llx: hit %d, place %u", addr, hit, x->place);
    }
    if (x->place != 0 && (x->place > p->pools[entry_node(x)].listed ||
                          p->pools[entry_node(x)].fifo[x->place - 1].entry != x)) {
        WRONG("%#llx is not at its place in the FIFO", addr);
    }
    if (x->waiters != NULL && x->state != PENDING) {
        WRONG("%#llx is waited for in state %d", addr, x->state);
    }
    if (x->state == PINNED && self && !x->charged && (x->peers == 0 || word_uses(word) != 0)) {
        WRONG("%#llx is pinned for nobody, or used and not charged", addr);
    }
    if (x->gone && (hit || x->state == CLAIMED || x->state == REAPED || x->place != 0)) {
        WRONG("%#llx was forgotten, and is in state %d, hit %d", addr, x->state, hit);
    }
    if (x->state == PINNED && !x->gone && !hit && word_uses(word) == 0 && (!self || x->charged)) {
        WRONG("%#llx is idle and cannot be hit", addr);
    }
    if ((x->state == REAPED || x->state == LEAVING) && word_uses(word) != 0) {
        WRONG("%#llx is in use in state %d", addr, x->state);
    }
    return 0;
}

int pin_check(const struct pin *p, char *text, size_t length)
{
    const struct pin_config *c = &p->config;
    uint64_t pinned = 0, leaving = 0, charged = 0, grants = 0, granted = 0, used = 0, slots = 0,
             gone = 0;
    for (uint32_t i = 0; i < p->capacity; i++) {
        const struct pin_entry *x = &p->entries[i];
        if (x->state == FREE) {
            continue;
        }
        gone += x->gone;
        if (entry_node(x) >= c->nodes) {
            grants++;
            continue;
        }
        int rc = check_entry(p, x, text, length);
        if (rc != 0) {
            return rc;
        }
        if (pin_is_self(p, entry_node(x))) {
            pinned += x->state != CLAIMED;
            leaving += x->state == LEAVING;
            charged += x->charged;
        } else {
            slots += x->state == PENDING || x->state == PINNED || x->state == REAPED ||
                     (x->state == LEAVING && x->gone);
        }
    }
    for (uint32_t node = 0; node < c->nodes; node++) {
        const struct pin_pool *pool = &p->pools[node];
        granted += pool->granted;
        used += node == c->self ? 0 : pool->used - pool->reserved;
        if (pool->used > pool->limit || pool->granted > c->f) {
            WRONG("node %u has %llu slots of %llu, and %llu here", node,
                  (unsigned long long)pool->used, (unsigned long long)pool->limit,
                  (unsigned long long)pool->granted);
        }
    }
    if (gone != p->gone_count) {
        WRONG("%llu units were forgotten, not %llu", (unsigned long long)gone,
              (unsigned long long)p->gone_count);
    }
    const struct pin_pool *own = &p->pools[c->self];
    /* A move unpins the units that leave before it pins those that replace them, so these may count
     * above the bound. */
    if (pinned != p->pinned || pinned - leaving > c->remote + c->victims ||
        charged != own->used - own->reserved || grants != granted || used != slots) {
        WRONG("pinned %llu is %llu, charged %llu is %llu, granted %llu is %llu, used %llu is %llu",
              (unsigned long long)p->pinned, (unsigned long long)pinned,
              (unsigned long long)(own->used - own->reserved), (unsigned long long)charged,
              (unsigned long long)granted, (unsigned long long)grants, (unsigned long long)used,
              (unsigned long long)slots);
    }
    return 0;
}
