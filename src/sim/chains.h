/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains by (source, tag): a hash table with open addresses, linear probing and at
 * most three quarters of its slots in use. Keys whose chain ran empty go when the
 * table is rebuilt to grow. What is chained, and how, is its owner's business.
 */
#ifndef SIM_CHAINS_H
#define SIM_CHAINS_H

#include <stdbool.h>
#include <stdint.h>

struct chain {
    uint32_t source;
    uint32_t tag;
    uint32_t head; /* index + 1; 0: ran empty */
    uint32_t tail;
};
struct chains {
    struct chain *slots;
    uint32_t mask;
    uint32_t used;
};

/* chains_init() makes an empty table; `slots` is a power of two. -1 if memory is short. */
int chains_init(struct chains *c, uint32_t slots);
void chains_free(struct chains *c);

/* chains_make() gives the chain of a key, which the caller adds to at once; NULL if
 * memory is short. */
struct chain *chains_make(struct chains *c, uint32_t source, uint32_t tag);

/* A slot whose tail is 0 was never used: tails are index + 1 and stay. */
static inline bool never_used(const struct chain *s)
{
    return s->tail == 0;
}

/* Eight neighbouring sources have neighbouring slots: ranks often come in order. */
static inline uint32_t chains_hash(uint32_t source, uint32_t tag)
{
    uint64_t h = (uint64_t)(source / 8) * 0x9E3779B97F4A7C15u + (uint64_t)tag * 0xD1B54A32D192ED03u;
    return (uint32_t)((h ^ h >> 32) * 0x9E3779B97F4A7C15u >> 32) * 8 + source % 8;
}

/* chains_find() gives the chain of a key, perhaps empty. */
static inline struct chain *chains_find(const struct chains *c, uint32_t source, uint32_t tag)
{
    uint32_t i = chains_hash(source, tag) & c->mask;
    while (!never_used(&c->slots[i]) && (c->slots[i].source != source || c->slots[i].tag != tag)) {
        i = (i + 1) & c->mask;
    }
    return &c->slots[i];
}

#endif
