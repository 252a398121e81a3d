/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: rings in the program's memory. A full one overwrites its oldest
 * event and says so at the next get. With flow control the ring is longer than
 * what the program asked for: messages are refused when that much is in it, and the
 * events of what is under way then still find room. What the program itself sets off
 * meanwhile (..._OVERFLOW, LINK, SEND) makes it grow: there nothing is ever lost.
 */
#include "nic/nic.h"

#include <stdlib.h>

/* The place behind `at` in the ring: no division. */
static inline uint64_t next_place(const struct eq *eq, uint64_t at)
{
    return at + 1 == eq->size ? 0 : at + 1;
}

ptl_event_t *eq_place(struct eq *eq)
{
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    bool full = tail - head == eq->size;
    if (full && eq->size > eq->count) {
        full = eq_extend(eq, 2 * eq->size - eq->count) != 0;
    }
    if (full) {
        atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
        eq->take_at = next_place(eq, eq->take_at);
        eq->dropped = true;
        eq->ni->nic->board->events_lost++;
    }
    return &eq->ring[eq->put_at];
}

void eq_placed(struct eq *eq)
{
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_relaxed);
    eq->put_at = next_place(eq, eq->put_at);
    atomic_store_explicit(&eq->tail, tail + 1, memory_order_release);
    eq->ni->nic->news = true;
}

void eq_post(struct eq_ref ref, const ptl_event_t *event)
{
    if (eq_ref_alive(ref)) {
        *eq_place(ref.eq) = *event;
        eq_placed(ref.eq);
    }
}

/* Word by word, as it was stored: a wider load of an event that came just now would
 * wait for those stores to reach the cache. */
static inline void copy_event(ptl_event_t *to, const ptl_event_t *from)
{
    uint64_t *words = (uint64_t *)to;
#pragma GCC unroll 10
    for (size_t i = 0; i < sizeof(*to) / sizeof(*words); i++) {
        __atomic_store_n(&words[i], ((const uint64_t *)from)[i], __ATOMIC_RELAXED);
    }
}

_Static_assert(sizeof(ptl_event_t) % sizeof(uint64_t) == 0, "an event is whole words");

int eq_extend(struct eq *eq, uint64_t more)
{
    uint64_t size = eq->count + more;
    if (size <= eq->size) {
        return 0;
    }
    ptl_event_t *ring = size <= 2 * EQ_MAX_EVENTS ? calloc(size, sizeof(*ring)) : NULL;
    if (ring == NULL) {
        return -1;
    }
    uint64_t used = atomic_load_explicit(&eq->tail, memory_order_relaxed) -
                    atomic_load_explicit(&eq->head, memory_order_relaxed);
    for (uint64_t i = 0; i < used; i++) {
        ring[i] = eq->ring[eq->take_at];
        eq->take_at = next_place(eq, eq->take_at);
    }
    free(eq->ring);
    eq->ring = ring;
    eq->size = size;
    eq->take_at = 0;
    eq->put_at = used;
    return 0;
}

int eq_take(struct eq *eq, ptl_event_t *event)
{
    uint64_t head = atomic_load_explicit(&eq->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&eq->tail, memory_order_relaxed)) {
        return PTL_EQ_EMPTY;
    }
    copy_event(event, &eq->ring[eq->take_at]);
    eq->take_at = next_place(eq, eq->take_at);
    atomic_store_explicit(&eq->head, head + 1, memory_order_relaxed);
    if (eq->dropped) {
        eq->dropped = false;
        return PTL_EQ_DROPPED;
    }
    return PTL_OK;
}
