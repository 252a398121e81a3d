/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock for short sections that one thread enters again and again: that thread
 * takes and gives it without a locked instruction, which would also keep what comes
 * before and after from overlapping.
 *
 *   FREE        held 0
 *   HELD        held 1
 *   BIASED      held 1, bias = a thread, by_bias; that thread is in if its `inside` is 1
 *
 *   a thread has taken it BIAS_AFTER times in a row             HELD ──► BIASED
 *   its own entry:  inside = 1; (compiler barrier) bias still mine? in : out again
 *   another one:    bias = 0; membarrier; wait for inside == 0  BIASED ──► HELD, its own
 *
 * Each thread has an `inside` of its own: one that has lost the bias on its way in may
 * find that out much later, when the next one has had it for long.
 * Likewise unlocking: held = 0; (compiler barrier) waiters? wake one. A thread that
 * goes to sleep does: waiters++; membarrier; held still 1? sleep. A store and a later
 * load of another word may pass each other on x86, so whoever comes seldom pays for
 * the order of both with membarrier(PRIVATE_EXPEDITED). Where the kernel has no such
 * barrier there is no bias, and every unlock has a fence. Threads of one process only;
 * not recursive; no error checks.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/branch.h"
#include "base/sys.h"

#include <stdatomic.h>
#include <stdbool.h>

/* One more than the threads of a process that can have a bias: slot 0 is nobody's. */
#define LOCK_SLOTS 16u

struct lock {
    _Atomic uint32_t held;
    _Atomic uint32_t waiters;
    _Atomic uint32_t bias; /* the owner slot of a thread, 0: none */
    /* written by who holds it */
    bool by_bias;    /* it is held by entering with the bias */
    uint32_t streak; /* how often it was taken in a row by ... */
    uintptr_t last;  /* ... this thread */
    /* by slot, written by that thread only */
    _Atomic uint8_t inside[LOCK_SLOTS];
};

/* The calling thread's owner slot, a number that no other living thread has; LOCK_SLOTS as
 * long as it has none. */
extern __thread uint32_t lock_slot __attribute__((tls_model("initial-exec")));

/* Set by lock_setup() when whoever comes seldom pays for the order. */
extern bool lock_asymmetric;

/* lock_setup() finds out which way the process orders its locks. Call it before
 * threads use locks; again in a forked child. */
void lock_setup(void);

/* lock_fork() is for a forked child: the slots of the threads that are not there are free. */
void lock_fork(void);

/* The slow halves: lock_wait() takes the lock, lock_give_held() gives it where it was not entered
 * with the bias, and wakes who sleeps for it, lock_retake() takes it if nobody is in it, or from
 * the thread that has the bias. */
void lock_wait(struct lock *l);
void lock_give_held(struct lock *l);
bool lock_retake(struct lock *l);

/* lock_enter_slot() takes the lock if the calling thread, whose slot it is, has the bias;
 * lock_leave_slot() then gives it, even if the bias was taken away meanwhile. In between it is
 * not to be given and taken otherwise. */
static inline bool lock_enter_slot(struct lock *l, uint32_t slot)
{
    if (unlikely(atomic_load_explicit(&l->bias, memory_order_relaxed) != slot)) {
        return false;
    }
    atomic_store_explicit(&l->inside[slot], 1, memory_order_relaxed);
    compiler_fence();
    if (likely(atomic_load_explicit(&l->bias, memory_order_relaxed) == slot)) {
        return true;
    }
    atomic_store_explicit(&l->inside[slot], 0, memory_order_release);
    return false;
}

static inline void lock_leave_slot(struct lock *l, uint32_t slot)
{
    atomic_store_explicit(&l->inside[slot], 0, memory_order_release);
}

static inline bool lock_enter_biased(struct lock *l)
{
    return lock_enter_slot(l, lock_slot);
}

static inline bool lock_try(struct lock *l)
{
    return lock_enter_biased(l) || lock_retake(l);
}

static inline void lock_take(struct lock *l)
{
    if (unlikely(!lock_enter_biased(l))) {
        lock_wait(l);
    }
}

static inline void lock_give(struct lock *l)
{
    if (likely(l->by_bias)) {
        lock_leave_slot(l, lock_slot);
    } else {
        lock_give_held(l);
    }
}

#endif
