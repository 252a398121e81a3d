/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of one class that wait, as a heap by key; see loggopsim.c for what
 * classes and deputies are.
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
    uint64_t deputy; /* its key */
    struct waiter *heap;
};

/* The classes of a rank that ever had a waiter: a handful. All bytes 0: none. */
struct classes {
    uint32_t count;
    struct waiters *waiters;
};

void classes_free(struct classes *c);

/* classes_find() gives the waiters of a class, or NULL; classes_make() makes them
 * if need be, or returns NULL if memory is short. They move when others are made. */
struct waiters *classes_find(struct classes *c, uint32_t class);
struct waiters *classes_make(struct classes *c, uint32_t class);

/* waiters_add() adds an event; -1 if memory is short. waiters_take() takes the one
 * with the least key; there must be one. */
int waiters_add(struct waiters *w, struct waiter new);
struct waiter waiters_take(struct waiters *w);

#endif
