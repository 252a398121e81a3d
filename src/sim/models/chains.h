/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains by (source, tag): a hash table with open addresses, linear probing and at
 * most three quarters of its slots in use. Keys whose chain ran empty go when the
 * table is rebuilt to grow. Its memory is of a slab, always the same. What is chained, and how, is
 * its owner's business.
 */
#ifndef SIM_CHAINS_H
#define SIM_CHAINS_H

#include "sim/util/slab.h"

#include <stdbool.h>
#include <stdint.h>

struct chain {
    uint64_t key;
    uint32_t head; /* index + 1; 0: ran empty */
    uint32_t tail;
};
_Static_assert(sizeof(struct chain) == 16, "four to a cache line");

struct chains {
    struct chain *slots;
    uint32_t mask;
    uint32_t used;
    uint32_t shift; /* of a product to the number of a group */
};

/* chains_init() makes an empty table with room for `keys`; -1 if memory is short. */
int chains_init(struct chains *c, struct slab *slab, uint32_t keys);
void chains_free(struct chains *c, struct slab *slab);

/* chains_make() gives the chain of a key, which the caller adds to at once; NULL if
 * memory is short. */
struct chain *chains_make(struct chains *c, struct slab *slab, uint32_t source, uint32_t tag);

/* A slot whose tail is 0 was never used: tails are index + 1 and stay. */
static inline bool never_used(const struct chain *s)
{
    return s->tail == 0;
}

static inline uint64_t chains_key(uint32_t source, uint32_t tag)
{
    return (uint64_t)source << 32 | tag;
}

/* Where the search for a key begins. Eight neighbouring sources have a group of neighbouring
 * slots, for ranks often come in order; multiples of the golden ratio spread groups evenly. */
static inline uint32_t chains_place(const struct chains *c, uint32_t source, uint32_t tag)
{
    uint64_t h = (source / 8) * UINT64_C(0x9E3779B97F4A7C15) + tag * UINT64_C(0xD1B54A32D192ED03);
    return (uint32_t)(h >> c->shift) * 8 + source % 8;
}

/* chains_find() gives the chain of a key, perhaps empty. A slot that was never used may look
 * like that of key 0, and is what a search for that ends with as well. */
static inline struct chain *chains_find(const struct chains *c, uint32_t source, uint32_t tag)
{
    uint64_t key = chains_key(source, tag);
    uint32_t i = chains_place(c, source, tag);
    while (c->slots[i].key != key && !never_used(&c->slots[i])) {
        i = (i + 1) & c->mask;
    }
    return &c->slots[i];
}

#endif
