/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table of chains by source and tag; see chains.h. */
#include "chains.h"

enum { CHAINS_LEAST = 64 };
#define CHAINS_MOST (UINT32_C(1) << 31)

/* Returns how many of the slots may be used: three quarters. */
static uint32_t most_used(uint32_t slots)
{
    return slots - slots / 4;
}

static int init_slots(struct chains *c, struct slab *slab, uint32_t slots)
{
    struct chain *empty = slab_take(slab, slots * sizeof(*empty));
    if (empty == NULL) {
        return -1;
    }
    uint32_t groups = slots / 8;
    *c = (struct chains){
        .slots = empty, .mask = slots - 1, .shift = 64 - (uint32_t)__builtin_ctz(groups)};
    return 0;
}

int chains_init(struct chains *c, struct slab *slab, uint32_t keys)
{
    uint32_t slots = CHAINS_LEAST;
    while (most_used(slots) <= keys && slots < CHAINS_MOST) {
        slots *= 2;
    }
    return init_slots(c, slab, slots);
}

void chains_free(struct chains *c, struct slab *slab)
{
    slab_give(slab, c->slots, (c->mask + (size_t)1) * sizeof(*c->slots));
    *c = (struct chains){0};
}

/* Rebuilds the table with at least four times as many slots as chains: a table that grows is likely
 * to grow on, and so its growths together move at most half as many chains as there are in the
 * end. */
static int chains_grow(struct chains *c, struct slab *slab)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i <= c->mask; i++) {
        live += c->slots[i].head != 0;
    }
    struct chains new;
    uint32_t slots = CHAINS_LEAST;
    while (slots / 4 < live && slots < CHAINS_MOST) {
        slots *= 2;
    }
    if (init_slots(&new, slab, slots) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i <= c->mask; i++) {
        const struct chain *s = &c->slots[i];
        if (s->head != 0) {
            *chains_find(&new, (uint32_t)(s->key >> 32), (uint32_t)s->key) = *s;
        }
    }
    new.used = live;
    chains_free(c, slab);
    *c = new;
    return 0;
}

struct chain *chains_make(struct chains *c, struct slab *slab, uint32_t source, uint32_t tag)
{
    struct chain *s = chains_find(c, source, tag);
    if (!never_used(s)) {
        return s;
    }
    if (c->used >= most_used(c->mask + 1)) {
        if (chains_grow(c, slab) != 0) {
            return NULL;
        }
        s = chains_find(c, source, tag);
    }
    c->used++;
    s->key = chains_key(source, tag);
    return s;
}
