/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that wait; see waiters.h. */
#include "waiters.h"

#include <stdlib.h>

void classes_free(struct classes *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        free(c->waiters[i].heap);
    }
    free(c->waiters);
}

struct waiters *classes_find(struct classes *c, uint32_t class)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->waiters[i].class == class) {
            return &c->waiters[i];
        }
    }
    return NULL;
}

struct waiters *classes_make(struct classes *c, uint32_t class)
{
    struct waiters *w = classes_find(c, class);
    if (w != NULL) {
        return w;
    }
    w = realloc(c->waiters, (c->count + 1) * sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    c->waiters = w;
    w[c->count] = (struct waiters){.class = class};
    return &w[c->count++];
}

int waiters_add(struct waiters *w, struct waiter new)
{
    if (w->count == w->capacity) {
        uint32_t capacity = w->capacity > 0 ? 2 * w->capacity : 16;
        struct waiter *heap = realloc(w->heap, capacity * sizeof(*heap));
        if (heap == NULL) {
            return -1;
        }
        w->heap = heap;
        w->capacity = capacity;
    }
    uint32_t i = w->count++;
    while (i > 0 && new.key < w->heap[(i - 1) / 2].key) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = new;
    return 0;
}

struct waiter waiters_take(struct waiters *w)
{
    struct waiter first = w->heap[0], last = w->heap[--w->count];
    uint32_t i = 0;
    for (uint32_t child = 1; child < w->count; child = 2 * i + 1) {
        if (child + 1 < w->count && w->heap[child + 1].key < w->heap[child].key) {
            child++;
        }
        if (last.key < w->heap[child].key) {
            break;
        }
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}
