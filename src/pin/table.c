/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of entries: found by node and address, without the lock too.
 *
 * Entries never move in memory. A link is 2 * the index of an entry + which of the entry's two
 * `next` continues the chain + 1; 0 ends a chain. A thread that walks a chain without the lock may
 * get into another chain, when another thread gives an entry a new identity meanwhile. So it takes
 * a bounded number of steps, may miss an entry that is there, and takes an entry only if
 * word_take() has checked it.
 */
#include "pin/engine.h"

#include <string.h>

enum { STEPS = 32 };

static uint64_t chain_of(const struct pin *p, uint32_t node, uint64_t grain)
{
    uint64_t h = (grain + (uint64_t)node * 0xd1342543de82ef95u) * 0x9e3779b97f4a7c15u;
    return h >> p->shift;
}

static struct pin_entry *entry_at(const struct pin *p, uint32_t link)
{
    return &p->entries[(link - 1) / 2];
}

struct pin_entry *pin_take(struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                           uint32_t *generation)
{
    uint64_t chain = chain_of(p, node, addr >> p->grain);
    _Atomic uint32_t *chains = atomic_load_explicit(&p->hits, memory_order_relaxed);
    uint32_t link = atomic_load_explicit(&chains[chain], memory_order_acquire);
    for (unsigned steps = 0; link != 0 && steps < STEPS; steps++) {
        struct pin_entry *x = entry_at(p, link);
        if (word_take(&x->word, node, addr, len, generation)) {
            return x;
        }
        link = atomic_load_explicit(&x->next[(link - 1) % 2], memory_order_acquire);
    }
    return NULL;
}

/* Returns how many grains of addresses the range touches: 1 or 2. */
static unsigned grains(const struct pin *p, uint64_t addr, uint64_t len)
{
    return addr >> p->grain == (addr + (len - 1)) >> p->grain ? 1 : 2;
}

struct pin_entry *table_add(struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                            enum pin_state state)
{
    struct pin_entry *x = p->free;
    if (x == NULL) {
        return NULL;
    }
    p->free = x->free;
    word_name(&x->word, node, addr, len);
    x->state = (uint8_t)state;
    x->place = 0;
    x->peers = 0;
    x->charged = x->fixed = x->gone = x->told = false;
    x->waiters = NULL;
    x->owner = NULL;
    memset(x->handle, 0, sizeof(x->handle));
    for (unsigned k = 0; k < grains(p, addr, len); k++) {
        _Atomic uint32_t *head = &p->chains[chain_of(p, node, (addr >> p->grain) + k)];
        atomic_store_explicit(&x->next[k], atomic_load_explicit(head, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(head, (uint32_t)(x - p->entries) * 2 + k + 1, memory_order_release);
    }
    return x;
}

void table_remove(struct pin *p, struct pin_entry *x)
{
    gone_remove(p, x);
    uint64_t addr = entry_addr(x);
    for (unsigned k = 0; k < grains(p, addr, entry_len(x)); k++) {
        uint32_t own = (uint32_t)(x - p->entries) * 2 + k + 1;
        _Atomic uint32_t *at = &p->chains[chain_of(p, entry_node(x), (addr >> p->grain) + k)];
        uint32_t link;
        while ((link = atomic_load_explicit(at, memory_order_relaxed)) != own) {
            at = &entry_at(p, link)->next[(link - 1) % 2];
        }
        atomic_store_explicit(at, atomic_load_explicit(&x->next[k], memory_order_relaxed),
                              memory_order_release);
    }
    x->state = FREE;
    x->free = p->free;
    p->free = x;
}

/* Returns the entry that follows *link in the chain of the grain, and moves *link on; NULL at the
 * end. */
static struct pin_entry *walk(const struct pin *p, uint32_t node, uint64_t grain, uint32_t *link)
{
    uint32_t now = *link == 0 ? atomic_load_explicit(&p->chains[chain_of(p, node, grain)],
                                                     memory_order_relaxed)
                              : atomic_load_explicit(&entry_at(p, *link)->next[(*link - 1) % 2],
                                                     memory_order_relaxed);
    *link = now;
    return now == 0 ? NULL : entry_at(p, now);
}

struct pin_entry *table_find(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len)
{
    struct pin_entry *found = NULL, *x;
    uint32_t link = 0;
    while ((x = walk(p, node, addr >> p->grain, &link)) != NULL) {
        uint64_t at = entry_addr(x);
        if (entry_node(x) == node && addr >= at && addr - at < entry_len(x) &&
            len <= entry_len(x) - (addr - at)) {
            if (x->state == PINNED) {
                return x;
            }
            if (found == NULL || x->state == PENDING) {
                found = x;
            }
        }
    }
    return found;
}

struct pin_entry *table_exact(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len)
{
    struct pin_entry *x;
    uint32_t link = 0;
    while ((x = walk(p, node, addr >> p->grain, &link)) != NULL) {
        if (entry_node(x) == node && entry_addr(x) == addr && entry_len(x) == len) {
            return x;
        }
    }
    return NULL;
}

static bool touches(const struct pin_entry *x, uint32_t node, uint64_t addr, uint64_t len)
{
    return entry_node(x) == node && entry_addr(x) <= addr + (len - 1) &&
           addr <= entry_addr(x) + (entry_len(x) - 1);
}

struct pin_entry *table_over(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len,
                             struct table_cursor *c)
{
    uint64_t first = addr >> p->grain, grains = ((addr + (len - 1)) >> p->grain) - first + 1;
    if (grains > p->capacity) {
        while (c->at < p->capacity) {
            struct pin_entry *x = &p->entries[c->at++];
            if (x->state != FREE && touches(x, node, addr, len)) {
                return x;
            }
        }
        return NULL;
    }
    for (; c->at < grains; c->at++) {
        struct pin_entry *x;
        while ((x = walk(p, node, first + c->at, &c->link)) != NULL) {
            if (touches(x, node, addr, len)) {
                return x;
            }
        }
    }
    return NULL;
}

bool table_gone(const struct pin *p, uint32_t node, uint64_t addr, uint64_t len)
{
    struct table_cursor cursor = {0};
    struct pin_entry *x = NULL;
    if (p->gone_count > 0) {
        while ((x = table_over(p, node, addr, len, &cursor)) != NULL && !x->gone) {
        }
    }
    return x != NULL;
}

/* Widens the range by a pinned region that overlaps or touches it, unless the result is too long;
 * true if the range has become longer. */
static bool wider(const struct pin *p, const struct pin_entry *x, uint32_t node, uint64_t *addr,
                  uint64_t *len)
{
    uint64_t at = entry_addr(x), end = at + entry_len(x);
    if (entry_node(x) != node || x->state != PINNED || x->gone || at > *addr + *len ||
        end < *addr) {
        return false;
    }
    uint64_t low = at < *addr ? at : *addr, high = end > *addr + *len ? end : *addr + *len;
    if (high - low > p->config.region_most || high - low == *len) {
        return false;
    }
    *addr = low;
    *len = high - low;
    return true;
}

/* Widens the range by pinned regions that overlap or touch it, as long as the result may be one
 * region. */
void table_widen(struct pin *p, uint32_t node, uint64_t *addr, uint64_t *len)
{
    bool again = true;
    while (again) {
        again = false;
        uint64_t first = *addr == 0 ? 0 : (*addr - 1) >> p->grain;
        uint64_t last = (*addr + *len) >> p->grain;
        for (uint64_t grain = first; grain <= last && !again; grain++) {
            struct pin_entry *x;
            uint32_t link = 0;
            while (!again && (x = walk(p, node, grain, &link)) != NULL) {
                again = wider(p, x, node, addr, len);
            }
        }
    }
}

void pin_entry_parts(const struct pin_entry *x, uint64_t *addr, uint64_t *len, uint8_t *handle)
{
    *addr = entry_addr(x);
    *len = entry_len(x);
    memcpy(handle, x->handle, PIN_HANDLE);
}

void pin_entry_range(const struct pin_entry *x, struct pin_range *range)
{
    pin_entry_parts(x, &range->addr, &range->len, range->handle);
}
