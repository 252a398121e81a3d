/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The waiting events of one class, as a heap ordered by key. Classes and deputies are explained in
 * models/loggopsim.c.
 */
#ifndef SIM_WAITERS_H
#define SIM_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

struct waiter {
    uint64_t key;
    uint64_t ref;
};

struct waiters {
    uint32_t class;
    uint32_t count;
    uint32_t capacity;
    bool has_deputy;
    uint64_t deputy; /* the deputy's key */
    struct waiter *heap;
};

/* The classes of a rank that ever had a waiter, of which there are only a few. A zeroed struct has
 * none. */
struct classes {
    uint32_t count;
    struct waiters *waiters;
};

void classes_free(struct classes *c);

/* classes_find() returns the waiters of a class, or NULL if the class never had one. classes_make()
 * makes them if there are none, or returns NULL if memory is short; it may move those of other
 * classes. */
struct waiters *classes_find(struct classes *c, uint32_t class);
struct waiters *classes_make(struct classes *c, uint32_t class);

/* waiters_add() adds an event; -1 if memory is short. waiters_take() removes and returns the event
 * with the least key; there must be one. */
int waiters_add(struct waiters *w, struct waiter new);
struct waiter waiters_take(struct waiters *w);

#endif
