/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Future events, sorted by slot. A slot is an interval of time; its number grows with time. Events
 * of the same slot are in no order.
 *
 * A radix heap with digits of six bits. An event stands at the level of the
 * highest digit in which its slot differs from the current one, in the bin of that
 * digit; so it moves down at most once for each level, and an empty stretch of
 * time costs nothing.
 *
 *     level 0:  the current 64 slots                bin = slot % 64
 *     level 1:  of the current 64 * 64 the others   bin = slot / 64 % 64   ...
 *
 * A bin is a chain of blocks of events. A block that becomes free is the next to be used, while it
 * is still in the cache.
 */
#ifndef SIM_WHEEL_H
#define SIM_WHEEL_H

#include "event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEEL_BLOCK = 128, WHEEL_LEVELS = 11, WHEEL_BINS = 64 };
#define WHEEL_NONE UINT32_MAX

/* Block number n has the events from index n * WHEEL_BLOCK on. */
struct wheel_block {
    uint32_t next;
    uint32_t fill;
};

struct wheel_bin {
    uint32_t first; /* the first block; WHEEL_NONE: the bin is empty */
    uint32_t last;
    uint64_t least; /* the least slot of its events */
};

struct wheel {
    struct event *events;
    struct wheel_block *blocks;
    uint32_t free; /* chain of free blocks: the first */
    uint32_t used; /* blocks that were ever in use */
    uint32_t capacity;
    uint64_t current;
    uint64_t scale;                /* slots in 2^63 ps */
    uint64_t filled[WHEEL_LEVELS]; /* by level: a bit for each bin that has events */
    struct wheel_bin bins[WHEEL_LEVELS][WHEEL_BINS];
};

/* wheel_init() makes an empty wheel that stands at slot 0, with address space for `events` events
 * at a time. Returns 0, or -1 with errno set. A slot is `width` ps long or slightly less, so that
 * two times with a difference of n * width are at least n slots apart. With width 0 there is only
 * one slot. */
int wheel_init(struct wheel *w, uint64_t events, uint64_t width);
void wheel_free(struct wheel *w);

/* wheel_block_new() returns an empty block, or WHEEL_NONE if there is no room. */
uint32_t wheel_block_new(struct wheel *w);

/* wheel_release() frees a chain of blocks. */
void wheel_release(struct wheel *w, uint32_t first, uint32_t last);

/* wheel_next() finds the least slot that has events; false if there are no events. */
bool wheel_next(const struct wheel *w, uint64_t *slot);

/* wheel_advance() makes `slot` the current one and takes its events out: *first gets a chain of
 * blocks, which the caller gives to wheel_release(), or WHEEL_NONE. There must be no event before
 * `slot`. Returns -1 if there is no room. */
int wheel_advance(struct wheel *w, uint64_t slot, uint32_t *first, uint32_t *last);

/* wheel_slot() returns the slot of a time below 2^63. */
static inline uint64_t wheel_slot(const struct wheel *w, uint64_t time)
{
    return (uint64_t)((unsigned __int128)time * w->scale >> 63);
}

/* wheel_end() returns the time at which `slot` ends; UINT64_MAX if it is the last slot. */
static inline uint64_t wheel_end(const struct wheel *w, uint64_t slot)
{
    if (w->scale == 0) {
        return UINT64_MAX;
    }
    unsigned __int128 end = (((unsigned __int128)slot + 1) << 63) + w->scale - 1;
    end /= w->scale;
    return end < UINT64_MAX ? (uint64_t)end : UINT64_MAX;
}

/* wheel_place() returns the place for a new event of `slot`, which is later than the current slot;
 * NULL if there is no room. */
static inline struct event *wheel_place(struct wheel *w, uint64_t slot)
{
    uint64_t differs = slot ^ w->current;
    unsigned level = (63u - (unsigned)__builtin_clzll(differs | 1)) / 6;
    unsigned digit = slot >> 6 * level & 63;
    struct wheel_bin *b = &w->bins[level][digit];
    if (b->first == WHEEL_NONE) {
        b->first = b->last = wheel_block_new(w);
        b->least = slot;
        w->filled[level] |= UINT64_C(1) << digit;
    } else if (w->blocks[b->last].fill == WHEEL_BLOCK) {
        uint32_t new = wheel_block_new(w);
        w->blocks[b->last].next = new;
        b->last = new;
    }
    if (b->last == WHEEL_NONE) {
        return NULL;
    }
    b->least = slot < b->least ? slot : b->least;
    return &w->events[(size_t)b->last * WHEEL_BLOCK + w->blocks[b->last].fill++];
}

#endif
