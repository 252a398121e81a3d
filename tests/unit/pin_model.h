/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model of memory and of threads, for code that is checked load by load and store by store.
 *
 * The memory is that of C11's release and acquire: each location has its stores in one order; each
 * store has a view, which store of each location is the oldest that may be seen by who acquires it;
 * a read-modify-write takes the last store and hands on the view of the store that it replaces. A
 * store always becomes the last of its location, and no load sees a store of the future: what only
 * happens without these two is not looked for. Memory that is pinned is a location of which every
 * use must see the last store, and every store must come after all uses: else it is a race.
 *
 * Threads are contexts that stop at each access. All choices (who goes on, which store a load sees)
 * are tried, depth first, from the beginning each time; what has been reached once, with the same
 * memory, views and loaded values, is not gone through again.
 */
#ifndef TESTS_PIN_MODEL_H
#define TESTS_PIN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum order { order_relaxed, order_acquire, order_release, order_acq_rel };
uint64_t model_load(const void *at, enum order order, const char *who);
void model_store(void *at, uint64_t value, enum order order, const char *who);
int model_cas(void *at, uint64_t *seen, uint64_t value, enum order order, const char *who);

/* The lock; and memory that is pinned: which range, by its address, or 0. */
void model_lock(void);
void model_unlock(void);
void model_use(uint64_t addr);
void model_pin(uint64_t addr);

/* model_last() is the last store of a place, whoever may see it; model_note() says what is wrong.
 */
uint64_t model_last(const void *at);
void model_note(const char *what);

/* What is weakened to relaxed: the accesses of a function that have this order. */
extern const char *model_weak_function;
extern enum order model_weak_order;

struct model_place {
    const void *address;
    uint64_t value; /* in the beginning */
};
struct model {
    const struct model_place *places;
    unsigned count;
    uint64_t pinned; /* in the beginning */
    void (*script[3])(void);
    void (*end)(void); /* looks at the memory when all have ended */
};

/* model_explore() tries everything; NULL, or what went wrong. */
const char *model_explore(const struct model *model);

#endif
