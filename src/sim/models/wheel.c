/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of events of later windows; see wheel.h. */
#include "wheel.h"

#include "sim/util/reserve.h"

#include <string.h>

int wheel_init(struct wheel *w, uint64_t events, uint64_t width)
{
    uint64_t capacity = events / WHEEL_BLOCK + 2 * WHEEL_LEVELS * WHEEL_BINS;
    memset(w, 0, sizeof(*w));
    if (capacity >= WHEEL_NONE / WHEEL_BLOCK) {
        capacity = WHEEL_NONE / WHEEL_BLOCK; /* the number of events in the wheel is limited then */
    }
    w->capacity = (uint32_t)capacity;
    /* Rounded up, so that width * scale >= 2^63: a time that is `width` later is at least a slot
     * later. */
    w->scale = width > 0 ? ((UINT64_C(1) << 63) + width - 1) / width : 0;
    w->free = WHEEL_NONE;
    w->events = sim_reserve(capacity * WHEEL_BLOCK * sizeof(*w->events));
    w->blocks = sim_reserve(capacity * sizeof(*w->blocks));
    for (int l = 0; l < WHEEL_LEVELS; l++) {
        for (int s = 0; s < WHEEL_BINS; s++) {
            w->bins[l][s].first = WHEEL_NONE;
        }
    }
    return w->events != NULL && w->blocks != NULL ? 0 : -1;
}

void wheel_free(struct wheel *w)
{
    sim_unreserve(w->events, (size_t)w->capacity * WHEEL_BLOCK * sizeof(*w->events));
    sim_unreserve(w->blocks, (size_t)w->capacity * sizeof(*w->blocks));
    w->events = NULL;
    w->blocks = NULL;
}

uint32_t wheel_block_new(struct wheel *w)
{
    uint32_t b = w->free;
    if (b != WHEEL_NONE) {
        w->free = w->blocks[b].next;
    } else if (w->used < w->capacity) {
        b = w->used++;
    } else {
        return WHEEL_NONE;
    }
    w->blocks[b] = (struct wheel_block){.next = WHEEL_NONE};
    return b;
}

void wheel_release(struct wheel *w, uint32_t first, uint32_t last)
{
    if (first != WHEEL_NONE) {
        w->blocks[last].next = w->free;
        w->free = first;
    }
}

bool wheel_next(const struct wheel *w, uint64_t *slot)
{
    for (int l = 0; l < WHEEL_LEVELS; l++) {
        if (w->filled[l] != 0) {
            *slot = w->bins[l][__builtin_ctzll(w->filled[l])].least;
            return true;
        }
    }
    return false;
}

static void empty_bin(struct wheel *w, int level, unsigned digit, uint32_t *first, uint32_t *last)
{
    struct wheel_bin *s = &w->bins[level][digit];
    *first = s->first;
    *last = s->last;
    s->first = WHEEL_NONE;
    w->filled[level] &= ~(UINT64_C(1) << digit);
}

int wheel_advance(struct wheel *w, uint64_t slot, uint32_t *first, uint32_t *last)
{
    w->current = slot;
    for (int level = WHEEL_LEVELS - 1; level > 0; level--) {
        unsigned digit = slot >> 6 * level & 63;
        if ((w->filled[level] >> digit & 1) == 0) {
            continue;
        }
        uint32_t from, end;
        empty_bin(w, level, digit, &from, &end);
        for (uint32_t b = from; b != WHEEL_NONE; b = w->blocks[b].next) {
            for (uint32_t i = 0; i < w->blocks[b].fill; i++) {
                const struct event *e = &w->events[(size_t)b * WHEEL_BLOCK + i];
                struct event *to = wheel_place(w, wheel_slot(w, e->time));
                if (to == NULL) {
                    return -1;
                }
                *to = *e;
            }
        }
        wheel_release(w, from, end);
    }
    empty_bin(w, 0, slot & 63, first, last);
    return 0;
}
