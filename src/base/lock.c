/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow half of lock.h: taking the bias away, spinning, sleeping, waking. */
#include "base/lock.h"

#include <sched.h>

#define SPINS 40      /* pauses before a waiting thread sleeps: about the time of a system call */
#define BIAS_AFTER 64 /* times in a row that earn the bias */

bool lock_asymmetric;

void lock_setup(void)
{
    lock_asymmetric = membarrier_own_register() == 0 && membarrier_own() == 0;
}

/* The lock is ours, by `held`. Who takes it often enough in a row gets the bias, and
 * has entered by it. */
static void taken(struct lock *l)
{
    uintptr_t self = lock_self();
    l->by_bias = false;
    if (l->last != self) {
        l->last = self;
        l->streak = 0;
    } else if (++l->streak >= BIAS_AFTER && lock_asymmetric &&
               atomic_load_explicit(&l->waiters, memory_order_relaxed) == 0) {
        l->streak = 0;
        l->by_bias = true;
        atomic_store_explicit(&l->inside, 1, memory_order_relaxed);
        atomic_store_explicit(&l->bias, self, memory_order_release);
        compiler_fence();
        /* Who began to wait just now may have missed the bias, and would not be woken. */
        if (atomic_load_explicit(&l->waiters, memory_order_relaxed) != 0 &&
            atomic_exchange(&l->bias, 0) == self) {
            l->by_bias = false;
            atomic_store_explicit(&l->inside, 0, memory_order_relaxed);
        }
    }
}

/* After the barrier the thread with the bias either has seen that it lost it, or we see
 * it inside. Sections are short, so we wait for its way out without sleeping. */
static bool take_bias_away(struct lock *l)
{
    if (atomic_load_explicit(&l->bias, memory_order_relaxed) == 0 ||
        atomic_exchange(&l->bias, 0) == 0) {
        return false; /* none, or another one was faster */
    }
    membarrier_own();
    for (int i = 0; atomic_load_explicit(&l->inside, memory_order_acquire) != 0; i++) {
        if (i < SPINS) {
            cpu_pause();
        } else {
            sched_yield();
        }
    }
    return true;
}

bool lock_retake(struct lock *l)
{
    uint32_t free = 0;
    if (atomic_compare_exchange_strong_explicit(&l->held, &free, 1, memory_order_acquire,
                                                memory_order_relaxed) ||
        take_bias_away(l)) {
        taken(l);
        return true;
    }
    return false;
}

void lock_wait(struct lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        if (lock_retake(l)) {
            return;
        }
        cpu_pause();
    }
    atomic_fetch_add(&l->waiters, 1);
    if (lock_asymmetric) {
        membarrier_own();
    }
    while (!lock_retake(l)) {
        futex_wait(&l->held, 1, -1);
    }
    atomic_fetch_sub(&l->waiters, 1);
}

void lock_wake(struct lock *l)
{
    futex_wake_one(&l->held);
}
