/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that wait until a cpu or nic is free; see waiters.h. */
#include "waiters.h"

#include "base/array.h"
#include "base/heap.h"

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

#define BEFORE(a, b, of) ((a)->key < (b)->key)
HEAP_OF(waiters, struct waiter, 2, BEFORE)

int waiters_add(struct waiters *w, struct waiter new)
{
    if (!ARRAY_ROOM(w->heap, w->count, w->capacity, 16)) {
        return -1;
    }
    waiters_rise(w->heap, w->count++, &new, NULL);
    return 0;
}

struct waiter waiters_take(struct waiters *w)
{
    struct waiter first = w->heap[0], last = w->heap[--w->count];
    waiters_sink(w->heap, w->count, &last, NULL);
    return first;
}
