/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of one type that is never given back to malloc(). A struct goes here when its life ends
 * although threads may still hold its address and read it without a lock; its memory becomes the
 * next struct of the same type, so these threads always read a struct of that type (invariant set
 * 7). Each such struct begins with a struct kept. The threads are those of one process.
 */
#ifndef BASE_KEEP_H
#define BASE_KEEP_H

#include "base/mutex.h"

#include <stddef.h>

struct kept {
    struct kept *next;
};

/* A zeroed struct keep holds no memory. */
struct keep {
    struct mutex lock; /* taken by forks_take() */
    struct kept *first;
};

/* keep_take() returns the memory of a struct that keep_put() was given before, with the contents
 * that it had then, but for its struct kept; or else new zeroed memory; NULL if memory is short.
 * keep_put() keeps a struct that nobody uses any more. */
void *keep_take(struct keep *k, size_t size);
void keep_put(struct keep *k, void *object);

#endif
