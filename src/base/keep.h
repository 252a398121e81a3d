/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of one type that is never given back: a struct of which threads may still hold an
 * address, and look at it without a lock, goes here when it has ended, and becomes the next one
 * of its type (invariant set 7). Each begins with a struct kept. Threads of one process only.
 */
#ifndef BASE_KEEP_H
#define BASE_KEEP_H

#include "base/mutex.h"

#include <stddef.h>

struct kept {
    struct kept *next;
};

/* All zero is one that has nothing. */
struct keep {
    struct mutex lock; /* by forks_take() */
    struct kept *first;
};

/* keep_take() is one that has ended, as it was left, or zeroed memory; or NULL. */
void *keep_take(struct keep *k, size_t size);
void keep_put(struct keep *k, void *object);

#endif
