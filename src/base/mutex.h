/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes, conditions and what is done once, by futexes. A program may define pthread_mutex_lock()
 * and its like itself, for threads that are its own; threads of ours would be strangers there.
 * lock.h has the lock of a NIC.
 *
 *   FREE 0 ──take──► HELD 1 ──another one waits──► AWAITED 2 ──give──► FREE, one is woken
 *
 * All zero is a mutex that is free, a condition that nobody waits for, something not yet done.
 * In a forked child a mutex that the parent may have held is set to zero again, unless its holder
 * makes fork() wait (forks.h), as once() does.
 */
#ifndef BASE_MUTEX_H
#define BASE_MUTEX_H

#include "base/branch.h"
#include "base/sys.h"

#include <stdatomic.h>
#include <stdbool.h>

struct mutex {
    _Atomic uint32_t word;
};

/* mutex_wait() is the slow half: it spins for about the time of a system call, then it sleeps. */
void mutex_wait(struct mutex *m);

static inline bool mutex_try(struct mutex *m)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&m->word, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void mutex_take(struct mutex *m)
{
    if (unlikely(!mutex_try(m))) {
        mutex_wait(m);
    }
}

static inline void mutex_give(struct mutex *m)
{
    if (unlikely(atomic_exchange_explicit(&m->word, 0, memory_order_release) == 2)) {
        futex_wake_one(&m->word);
    }
}

/* condition_wait() gives the mutex, sleeps until a condition_signal() that comes after that, and
 * takes the mutex again. It may also return without any. */
struct condition {
    _Atomic uint32_t signals;
};

void condition_wait(struct condition *c, struct mutex *m);

/* Wakes one that waits; called with the mutex held. */
static inline void condition_signal(struct condition *c)
{
    atomic_fetch_add_explicit(&c->signals, 1, memory_order_relaxed);
    futex_wake_one(&c->signals);
}

struct once {
    struct mutex mutex;
    _Atomic bool done;
};

/* once() calls a function the first time; who comes meanwhile waits until it has returned, and so
 * does who forks: a library that is half loaded cannot be loaded again in the child. */
void once_slowly(struct once *o, void (*function)(void));

static inline void once(struct once *o, void (*function)(void))
{
    if (unlikely(!atomic_load_explicit(&o->done, memory_order_acquire))) {
        once_slowly(o, function);
    }
}

#endif
