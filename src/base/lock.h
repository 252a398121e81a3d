/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for short sections that one thread enters again and again: that thread
 * takes and gives it without a locked instruction, which would also keep what comes
 * before and after from overlapping.
 *
 *   FREE        held 0
 *   HELD        held 1
 *   BIASED      held 1, bias = a thread, by_bias; that thread is in if `inside` is 1
 *
 *   a thread has taken it BIAS_AFTER times in a row             HELD ──► BIASED
 *   its own entry:  inside = 1; (compiler barrier) bias still mine? in : out again
 *   another one:    bias = 0; membarrier; wait for inside == 0  BIASED ──► HELD, its own
 *
 * Likewise unlocking: held = 0; (compiler barrier) waiters? wake one. A thread that
 * goes to sleep does: waiters++; membarrier; held still 1? sleep. A store and a later
 * load of another word may pass each other on x86, so whoever comes seldom pays for
 * the order of both with membarrier(PRIVATE_EXPEDITED). Where the kernel has no such
 * barrier there is no bias, and every unlock has a fence. Threads of one process only;
 * not recursive; no error checks.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/sys.h"

#include <stdatomic.h>
#include <stdbool.h>

struct lock {
    _Atomic uint32_t held;
    _Atomic uint32_t waiters;
    _Atomic uintptr_t bias;  /* lock_self() of a thread, 0: none */
    _Atomic uint32_t inside; /* written by that thread only */
    /* written by who holds it */
    bool by_bias; /* it is held by entering with the bias */
    uint32_t streak;
    uintptr_t last; /* who took it the last `streak` times */
};

/* Set by lock_setup() when whoever comes seldom pays for the order. */
extern bool lock_asymmetric;

/* lock_setup() finds out which way the process orders its locks. Call it before
 * threads use locks; again in a forked child. */
void lock_setup(void);

/* The slow halves: lock_wait() takes the lock, lock_wake() wakes who sleeps for it,
 * lock_retake() takes it if nobody is in it, or from the thread that has the bias. */
void lock_wait(struct lock *l);
void lock_wake(struct lock *l);
bool lock_retake(struct lock *l);

/* lock_self() names the calling thread among the living ones. */
static inline uintptr_t lock_self(void)
{
    uintptr_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
}

static inline bool lock_enter_biased(struct lock *l)
{
    uintptr_t self = lock_self();
    if (atomic_load_explicit(&l->bias, memory_order_relaxed) != self) {
        return false;
    }
    atomic_store_explicit(&l->inside, 1, memory_order_relaxed);
    compiler_fence();
    if (atomic_load_explicit(&l->bias, memory_order_relaxed) == self) {
        return true;
    }
    atomic_store_explicit(&l->inside, 0, memory_order_release);
    return false;
}

static inline bool lock_try(struct lock *l)
{
    return lock_enter_biased(l) || lock_retake(l);
}

static inline void lock_take(struct lock *l)
{
    if (!lock_enter_biased(l)) {
        lock_wait(l);
    }
}

static inline void lock_give(struct lock *l)
{
    if (l->by_bias) {
        atomic_store_explicit(&l->inside, 0, memory_order_release);
        return;
    }
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
