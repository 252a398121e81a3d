/* SPDX-License-Identifier: BSD-3-Clause */
/* The slow halves of mutex.h. */
#include "base/mutex.h"

#include "base/forks.h"

/* looks at the word before a waiting thread sleeps: together about the time of a system call */
#define SPINS 100

bool (*mutex_pass)(void);

void mutex_wait(struct mutex *m)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t word = atomic_load_explicit(&m->word, memory_order_relaxed);
        if (word == 0 && atomic_compare_exchange_strong_explicit(
                             &m->word, &word, 1, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        cpu_pause();
    }
    while (mutex_pass != NULL && mutex_pass()) {
        if (mutex_try(m)) {
            return;
        }
    }
    /* A thread that has slept cannot know whether others still sleep: it takes the mutex in the
     * state AWAITED, so that giving it wakes one more. */
    while (atomic_exchange_explicit(&m->word, 2, memory_order_acquire) != 0) {
        futex_wait(&m->word, 2, -1);
    }
}

void condition_wait(struct condition *c, struct mutex *m)
{
    uint32_t signals = atomic_load_explicit(&c->signals, memory_order_relaxed);
    mutex_give(m);
    futex_wait(&c->signals, signals, -1);
    mutex_take(m);
}

void once_slowly(struct once *o, void (*function)(void))
{
    forks_take(&o->mutex);
    if (!atomic_load_explicit(&o->done, memory_order_relaxed)) {
        function();
        atomic_store_explicit(&o->done, true, memory_order_release);
    }
    forks_give(&o->mutex);
}
