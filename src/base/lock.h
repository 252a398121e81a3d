/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A biased lock, for short sections that one thread enters again and again. That thread takes and
 * gives it without an instruction that has a lock prefix, which would also keep the processor from
 * overlapping the instructions before and after it.
 *
 *   FREE        held 0
 *   HELD        held 1
 *   BIASED      held 1, bias = a thread, by_bias; that thread is in if its `inside` is 1
 *
 *   a thread has taken it BIAS_AFTER times in a row             HELD ──► BIASED
 *   its own entry:  inside = 1; (compiler barrier) bias still mine? in : out again
 *   another one:    bias = 0; membarrier; wait for inside == 0  BIASED ──► HELD, its own
 *
 * Each thread has an `inside` of its own: a thread that loses the bias while it enters may notice
 * that much later, when another thread has had the bias for long. Likewise unlocking: held = 0;
 * (compiler barrier) waiters? wake one. A thread that goes to sleep does: waiters++; membarrier;
 * held still 1? sleep. x86 may execute a store after a later load of another word. The order is
 * enforced by the thread that enters seldom, with membarrier(PRIVATE_EXPEDITED), so that the thread
 * with the bias needs no fence. Where the kernel has no such call there is no bias, and every
 * unlock has a fence. The lock is for threads of one process; it is not recursive and checks for no
 * errors.
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/branch.h"
#include "base/sys.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Up to 15 threads of a process can have a bias: slot 0 stands for no thread. */
#define LOCK_SLOTS 16u

struct lock {
    _Atomic uint32_t held;
    _Atomic uint32_t waiters;
    _Atomic uint32_t bias; /* the owner slot of the thread that has the bias; 0: none has */
    /* the next three are written by the thread that holds the lock */
    bool by_bias;    /* true if the holder has entered with the bias */
    uint32_t streak; /* how often in a row the thread `last` has taken the lock */
    uintptr_t last;  /* the thread that took the lock last, by the address of its lock_slot */
    /* one of each slot, written by the slot's thread only: it is in by the bias, or about to
     * enter */
    _Atomic uint8_t inside[LOCK_SLOTS];
};

/* The calling thread's owner slot, a number that no other living thread of the process has;
 * LOCK_SLOTS while it has none. */
extern __thread uint32_t lock_slot __attribute__((tls_model("initial-exec")));

/* Set by lock_setup() if membarrier() works: locks may have a bias, and unlocking needs no
 * fence. */
extern bool lock_asymmetric;

/* lock_setup() finds out whether membarrier() works, and sets lock_asymmetric. It is called before
 * threads use locks, and again in a forked child. */
void lock_setup(void);

/* lock_fork() is called in a forked child and frees the owner slots of the parent's other
 * threads. */
void lock_fork(void);

/* lock_take_slot() returns the owner slot of the calling thread, which gets a free one if it has
 * none; LOCK_SLOTS if there is none left. */
uint32_t lock_take_slot(void);

/* The slow halves. lock_wait() takes the lock, if need be sleeping. lock_give_held() gives a lock
 * that was not entered with the bias, and wakes a thread that sleeps for it. lock_retake() takes
 * the lock if no thread is in it, or from the thread that has the bias, without sleeping. */
void lock_wait(struct lock *l);
void lock_give_held(struct lock *l);
bool lock_retake(struct lock *l);

/* lock_enter_slot() takes the lock if the calling thread, whose owner slot is `slot`, has the bias;
 * lock_leave_slot() gives it again, also if another thread has taken the bias away meanwhile.
 * Between the two the lock is not given or taken by other functions. */
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
