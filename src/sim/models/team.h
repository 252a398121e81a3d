/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A barrier for a few threads that meet often: a waiting thread first spins, then yields its core
 * again and again.
 */
#ifndef SIM_TEAM_H
#define SIM_TEAM_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

enum { TEAM_LOOKS = 2000 };

struct team {
    uint32_t size;
    _Atomic uint32_t arrived;
    _Atomic uint32_t round;
};

/* team_meet() returns when all threads of the team have called it; each then sees all that the
 * others wrote before. */
static inline void team_meet(struct team *t)
{
    uint32_t round = atomic_load_explicit(&t->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == t->size) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&t->round, round + 1, memory_order_release);
        return;
    }
    for (int looks = 0; atomic_load_explicit(&t->round, memory_order_acquire) == round; looks++) {
        if (looks > TEAM_LOOKS) {
            sched_yield();
        } else {
            __builtin_ia32_pause();
        }
    }
}

#endif
