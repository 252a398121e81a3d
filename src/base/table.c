/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects named by handles; see table.h. */
#include "base/table.h"

#include <string.h>

#define LINE 64u /* objects are padded to whole cache lines */

_Static_assert(3 + HANDLE_NI_BITS + HANDLE_GENERATION_BITS + HANDLE_INDEX_BITS == 32,
               "a handle is 32 bits");

static void set_limit(struct table *t, uint32_t limit)
{
    t->limit = limit < HANDLE_MAX_INDEX ? limit : HANDLE_MAX_INDEX;
}

void table_init(struct table *t, enum handle_kind kind, unsigned ni, uint32_t limit, size_t stride)
{
    memset(t, 0, sizeof(*t));
    t->kind = kind;
    t->ni = ni;
    set_limit(t, limit);
    t->stride = (stride + LINE - 1) & ~(size_t)(LINE - 1);
}

void table_clear(struct table *t, uint32_t limit)
{
    for (uint32_t i = 0; i < t->opened; i++) {
        atomic_store_explicit(&table_at(t, i)->handle, 0, memory_order_release);
    }
    t->free_head = NULL;
    t->joined = 0;
    set_limit(t, limit);
}

void table_free(struct table *t)
{
    for (uint32_t i = 0; i < sizeof(t->chunks) / sizeof(t->chunks[0]); i++) {
        free(t->chunks[i]);
        t->chunks[i] = NULL;
    }
    t->opened = t->joined = 0;
    t->free_head = NULL;
}

/* Adds the next slots to the free list, which is empty, in the order of their indices: so the table
 * grows only when every slot is in use. Returns 0 or -1. */
int table_open(struct table *t)
{
    uint32_t first = t->joined;
    uint32_t count = first < t->limit ? t->limit - first : 0;
    if (count == 0) {
        return -1;
    }
    if (t->chunks[first / TABLE_CHUNK] == NULL) {
        char *chunk = aligned_alloc(LINE, TABLE_CHUNK * t->stride);
        if (chunk == NULL) {
            return -1;
        }
        memset(chunk, 0, TABLE_CHUNK * t->stride);
        t->chunks[first / TABLE_CHUNK] = chunk;
    }
    if (count > TABLE_STEP) {
        count = TABLE_STEP;
    }
    for (uint32_t i = first; i < first + count; i++) {
        struct table_slot *s = table_at(t, i);
        s->last = i < t->opened ? s->last : handle_make(t->kind, t->ni, 0, i);
        s->next_free = i + 1 < first + count ? table_at(t, i + 1) : NULL;
    }
    t->free_head = table_at(t, first);
    t->free_tail = table_at(t, first + count - 1);
    t->joined = first + count;
    if (t->joined > t->opened) {
        atomic_store_explicit(&t->opened, t->joined, memory_order_release);
    }
    return 0;
}

void *table_add(struct table *t)
{
    if (!table_ready(t)) {
        return NULL;
    }
    struct table_slot *s = t->free_head;
    memset((char *)s + sizeof(*s), 0, t->stride - sizeof(*s));
    return table_take(t);
}

void *table_next(const struct table *t, uint32_t *index)
{
    while (*index < t->opened) {
        struct table_slot *s = table_at(t, (*index)++);
        if (s->handle != 0) {
            return s;
        }
    }
    return NULL;
}
