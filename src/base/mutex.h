/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes, condition variables and functions that run once, made of futexes. A program with
 * user-level threads may define pthread_mutex_lock() and its like itself, and these functions would
 * not know the library's threads. The lock of a NIC is in lock.h.
 *
 *   FREE 0 ──take──► HELD 1 ──another one waits──► AWAITED 2 ──give──► FREE, one is woken
 *
 * A zeroed struct is a free mutex, a condition that no thread waits for, or a function that has not
 * run yet. In a forked child a mutex that the parent may have held is set to zero again, unless its
 * holder makes fork() wait (forks.h), as once() does.
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

/* In virtual time: lets other threads of the process go on, one of which has the mutex; false: time
 * cannot pass. NULL: there is none. */
extern bool (*mutex_pass)(void);

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

/* condition_wait() gives the mutex, sleeps until a thread calls condition_signal(), and takes the
 * mutex again. It may also return without a signal. */
struct condition {
    _Atomic uint32_t signals;
};

void condition_wait(struct condition *c, struct mutex *m);

/* Wakes one thread that waits; the caller holds the mutex. */
static inline void condition_signal(struct condition *c)
{
    atomic_fetch_add_explicit(&c->signals, 1, memory_order_relaxed);
    futex_wake_one(&c->signals);
}

struct once {
    struct mutex mutex;
    _Atomic bool done;
};

/* once() calls a function the first time. A thread that calls once() meanwhile waits until the
 * function has returned, and so does a thread that forks: a library that is half loaded cannot be
 * loaded again in the child. */
void once_slowly(struct once *o, void (*function)(void));

static inline void once(struct once *o, void (*function)(void))
{
    if (unlikely(!atomic_load_explicit(&o->done, memory_order_acquire))) {
        once_slowly(o, function);
    }
}

#endif
