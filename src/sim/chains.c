/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains by source and tag; see chains.h. */
#include "chains.h"

#include "reserve.h"

#include <stdlib.h>

static bool is_large(uint32_t slots)
{
    return slots * sizeof(struct chain) >= SIM_LARGE;
}

int chains_init(struct chains *c, uint32_t slots)
{
    size_t bytes = slots * sizeof(struct chain);
    struct chain *empty = is_large(slots) ? sim_reserve(bytes) : calloc(1, bytes);
    if (empty == NULL) {
        return -1;
    }
    *c = (struct chains){.slots = empty, .mask = slots - 1};
    return 0;
}

void chains_free(struct chains *c)
{
    if (c->slots != NULL && is_large(c->mask + 1)) {
        sim_unreserve(c->slots, (c->mask + (size_t)1) * sizeof(*c->slots));
    } else {
        free(c->slots);
    }
    *c = (struct chains){0};
}

static int chains_grow(struct chains *c)
{
    uint32_t live = 0;
    for (uint32_t i = 0; i <= c->mask; i++) {
        live += c->slots[i].head != 0;
    }
    struct chains new;
    uint32_t slots = 64;
    while (slots < 2 * live && slots < UINT32_C(1) << 31) {
        slots *= 2;
    }
    if (chains_init(&new, slots) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i <= c->mask; i++) {
        if (c->slots[i].head != 0) {
            *chains_find(&new, c->slots[i].source, c->slots[i].tag) = c->slots[i];
        }
    }
    new.used = live;
    chains_free(c);
    *c = new;
    return 0;
}

struct chain *chains_make(struct chains *c, uint32_t source, uint32_t tag)
{
    struct chain *s = chains_find(c, source, tag);
    if (!never_used(s)) {
        return s;
    }
    if (c->used >= c->mask - c->mask / 4) {
        if (chains_grow(c) != 0) {
            return NULL;
        }
        s = chains_find(c, source, tag);
    }
    c->used++;
    s->source = source;
    s->tag = tag;
    return s;
}
