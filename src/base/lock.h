/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for short sections that are rarely fought over: one locked instruction
 * to take it, none to give it back.
 *
 *   unlock   held = 0;   (compiler barrier)   load waiters ── not 0: wake one
 *   wait     waiters++;  membarrier;          held still 1? sleep
 *
 * A store and a later load of another word may pass each other on x86, so the
 * sleeper pays for the order of both sides with membarrier(PRIVATE_EXPEDITED):
 * either it sees held == 0, or whoever unlocks sees it waiting. Where the kernel
 * has no such barrier, every unlock pays with a fence. Threads of one process
 * only; not recursive; no error checks.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/sys.h"

#include <stdatomic.h>
#include <stdbool.h>

struct lock {
    _Atomic uint32_t held;
    _Atomic uint32_t waiters;
};

/* Set by lock_setup() when sleepers pay for the order. */
extern bool lock_asymmetric;

/* lock_setup() finds out which way the process orders its unlocks. Call it before
 * threads use locks; again in a forked child. */
void lock_setup(void);

/* lock_wait() and lock_wake() are the slow halves of lock() and unlock(). */
void lock_wait(struct lock *l);
void lock_wake(struct lock *l);

static inline bool lock_try(struct lock *l)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&l->held, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void lock_take(struct lock *l)
{
    if (!lock_try(l)) {
        lock_wait(l);
    }
}

static inline void lock_give(struct lock *l)
{
    atomic_store_explicit(&l->held, 0, memory_order_release);
    if (lock_asymmetric) {
        compiler_fence();
    } else {
        full_fence();
    }
    if (atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0) {
        lock_wake(l);
    }
}

#endif
