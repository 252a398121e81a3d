/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table of chains by (source, tag), with open addressing, linear probing and at most three
 * quarters of its slots in use. Keys whose chain has become empty are removed when the table is
 * rebuilt to grow. Its memory comes from one slab. The owner of the table decides what the entries
 * of a chain are and how they are linked.
 */
#ifndef SIM_CHAINS_H
#define SIM_CHAINS_H

#include "sim/util/slab.h"

#include <stdbool.h>
#include <stdint.h>

struct chain {
    uint64_t key;
    uint32_t head; /* the first entry: index + 1; 0: the chain is empty */
    uint32_t tail;
};
_Static_assert(sizeof(struct chain) == 16, "four to a cache line");

struct chains {
    struct chain *slots;
    uint32_t mask;
    uint32_t used;
    uint32_t shift; /* how far a hash is shifted to get the number of a group of slots */
};

/* chains_init() makes an empty table with room for `keys` keys; -1 if memory is short. */
int chains_init(struct chains *c, struct slab *slab, uint32_t keys);
void chains_free(struct chains *c, struct slab *slab);

/* chains_make() returns the chain of a key, which is new if there was none, and to which the caller
 * must add an entry at once; NULL if memory is short. */
struct chain *chains_make(struct chains *c, struct slab *slab, uint32_t source, uint32_t tag);

/* True if the slot was never used. The tail of a used slot is an index + 1, and stays when the
 * chain becomes empty. */
static inline bool never_used(const struct chain *s)
{
    return s->tail == 0;
}

static inline uint64_t chains_key(uint32_t source, uint32_t tag)
{
    return (uint64_t)source << 32 | tag;
}

/* Returns the slot at which the search for a key begins. Eight consecutive sources share a group of
 * eight slots, since ranks often send in order; multiples of the golden ratio spread the groups
 * evenly. */
static inline uint32_t chains_place(const struct chains *c, uint32_t source, uint32_t tag)
{
    uint64_t h = (source / 8) * UINT64_C(0x9E3779B97F4A7C15) + tag * UINT64_C(0xD1B54A32D192ED03);
    return (uint32_t)(h >> c->shift) * 8 + source % 8;
}

/* chains_find() returns the chain of a key, which may be empty. For a key that is not there it
 * returns an unused slot, whose chain is empty, too; an unused slot has key 0, so that also the
 * search for key 0 ends there. */
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
