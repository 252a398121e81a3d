/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of objects named by handles.
 *
 *   handle = | kind 3 | NI 5 | generation 6 | index 18 |
 *
 * Objects live in chunks that never move, so an object may be reached while the table grows. Each
 * begins with a struct table_slot that holds its own handle, or 0 when it is free: one compare
 * tells a good handle from a stale or foreign one. Free slots are used in the order in which they
 * were freed: so it takes long until a stale handle's generation comes round again, and equal
 * sequences of calls give equal handles. A table opens few slots at a time, so that a table with
 * few objects in use stays in the first-level cache. The lock of the table's owner guards all
 * functions but table_get().
 *
 * The memory of a slot stays a slot for as long as the table lives: table_clear() makes all handles
 * stale and keeps the memory, and the generations go on from where they were. So a thread that
 * looks up a handle without the lock always reads a slot (invariant set 7).
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/branch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum handle_kind {
    HANDLE_NI,
    HANDLE_EQ,
    HANDLE_CT,
    HANDLE_MD,
    HANDLE_LE,
    HANDLE_HPU,
    HANDLE_OP,                /* in packets: an operation in flight */
    HANDLE_TIMER = HANDLE_OP, /* in the program: a timer */
    HANDLE_NONE
};

#define HANDLE_INDEX_BITS 18
#define HANDLE_GENERATION_BITS 6
#define HANDLE_NI_BITS 5
/* the largest index, which no object gets */
#define HANDLE_MAX_INDEX ((1u << HANDLE_INDEX_BITS) - 1)
#define TABLE_CHUNK 256u
#define TABLE_STEP 32u /* slots that are opened at once; divides TABLE_CHUNK */

static inline uint32_t handle_make(enum handle_kind kind, unsigned ni, unsigned generation,
                                   uint32_t index)
{
    return ((uint32_t)kind << 29) | (ni << 24) | (generation << HANDLE_INDEX_BITS) | index;
}

/* handle_next() returns the handle that the slot of `handle` gets next: with the next generation;
 * generation 1 follows the last. */
static inline uint32_t handle_next(uint32_t handle)
{
    uint32_t one = 1u << HANDLE_INDEX_BITS;
    uint32_t all = ((1u << HANDLE_GENERATION_BITS) - 1) * one;
    return likely((handle & all) != all) ? handle + one : handle - all + one;
}

static inline enum handle_kind handle_kind(uint32_t handle)
{
    return (enum handle_kind)(handle >> 29);
}

static inline unsigned handle_ni(uint32_t handle)
{
    return (handle >> 24) & ((1u << HANDLE_NI_BITS) - 1);
}

static inline uint32_t handle_index(uint32_t handle)
{
    return handle & HANDLE_MAX_INDEX;
}

struct table_slot {
    _Atomic uint32_t handle; /* the object's handle; 0: the slot is free */
    /* the handle that the slot had last; before its first use one of generation 0 */
    uint32_t last;
    struct table_slot *next_free;
};

struct table {
    enum handle_kind kind;
    unsigned ni;
    uint32_t limit;          /* how many objects the table may have */
    _Atomic uint32_t opened; /* slots that were ever in use or in the free list */
    /* slots that were so since the table was last empty; the others of `opened` join again later */
    uint32_t joined;
    struct table_slot *free_head, *free_tail; /* the tail is valid only while there is a head */
    size_t stride;
    char *chunks[(HANDLE_MAX_INDEX + 1) / TABLE_CHUNK];
};

/* table_init() makes an empty table of at most `limit` objects of `stride`
 * bytes, each of which begins with a struct table_slot. */
void table_init(struct table *t, enum handle_kind kind, unsigned ni, uint32_t limit, size_t stride);

/* table_clear() makes the handles of all objects stale and keeps their memory; from then on the
 * table may have at most `limit` objects. */
void table_clear(struct table *t, uint32_t limit);

/* table_free() releases the memory of all objects. */
void table_free(struct table *t);

/* table_add() returns an object, zeroed but for its slot, with a new handle, or NULL when the
 * limit is reached or memory is short. */
void *table_add(struct table *t);

/* table_take() is a faster table_add() for a caller that has just seen table_ready() return true,
 * and that sets all fields of the object but its slot before another thread learns the handle.
 * table_ready() returns false when the limit is reached or memory is short. */
__attribute__((cold)) int table_open(struct table *t); /* opens more slots; 0 or -1 */
static inline bool table_ready(struct table *t)
{
    return likely(t->free_head != NULL) || table_open(t) == 0;
}
static inline void *table_take(struct table *t)
{
    struct table_slot *s = t->free_head;
    t->free_head = s->next_free;
    s->last = handle_next(s->last);
    atomic_store_explicit(&s->handle, s->last, memory_order_release);
    return s;
}

/* table_drop() makes the handle of `object` stale and keeps its memory for the
 * next table_add(). */
static inline void table_drop(struct table *t, void *object)
{
    struct table_slot *s = object;
    atomic_store_explicit(&s->handle, 0, memory_order_release);
    s->next_free = NULL;
    *(unlikely(t->free_head == NULL) ? &t->free_head : &t->free_tail->next_free) = s;
    t->free_tail = s;
}

static inline struct table_slot *table_at(const struct table *t, uint32_t index)
{
    return (struct table_slot *)(t->chunks[index / TABLE_CHUNK] +
                                 (index % TABLE_CHUNK) * t->stride);
}

/* table_get() returns the object that `handle` names, or NULL. */
static inline void *table_get(const struct table *t, uint32_t handle)
{
    uint32_t index = handle_index(handle);
    if (index >= atomic_load_explicit(&t->opened, memory_order_acquire)) {
        return NULL;
    }
    struct table_slot *s = table_at(t, index);
    return atomic_load_explicit(&s->handle, memory_order_acquire) == handle && handle != 0 ? s
                                                                                           : NULL;
}

/* TABLE_EACH() visits the objects in use; the loop may drop them. */
#define TABLE_EACH(type, item, table)                                                              \
    for (uint32_t at_ = 0, once_ = 1; once_ != 0; once_ = 0)                                       \
        for (type * item; (item = table_next(table, &at_)) != NULL;)

/* table_next() returns the object in use at or after *index and moves *index
 * behind it, or NULL at the end. */
void *table_next(const struct table *t, uint32_t *index);

#endif
