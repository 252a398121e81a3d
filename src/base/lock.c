/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow half of lock.h: spinning, sleeping, waking. */
#include "base/lock.h"

#define SPINS 40 /* pauses before a waiting thread sleeps: about the time of a system call */

bool lock_asymmetric;

void lock_setup(void)
{
    lock_asymmetric = membarrier_own_register() == 0 && membarrier_own() == 0;
}

void lock_wait(struct lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        cpu_pause();
        if (atomic_load_explicit(&l->held, memory_order_relaxed) == 0 && lock_try(l)) {
            return;
        }
    }
    atomic_fetch_add(&l->waiters, 1);
    if (lock_asymmetric) {
        membarrier_own();
    }
    while (!lock_try(l)) {
        futex_wait(&l->held, 1, -1);
    }
    atomic_fetch_sub(&l->waiters, 1);
}

void lock_wake(struct lock *l)
{
    futex_wake_one(&l->held);
}
