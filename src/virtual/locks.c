/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes, conditions, semaphores, barriers and locks of readers and writers. What does not wait is
 * libc's; one that is taken is tried again when others have done something. A condition is waited
 * for on a list of the process: one that processes share may end its waits without a signal, as
 * POSIX allows.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

/* A libc's function that tries. */
struct attempt {
    int (*try)(void *);
    void *of;
    int rc;
};

static bool has_it(void *attempt)
{
    struct attempt *a = attempt;
    a->rc = a->try(a->of);
    return a->rc != EBUSY;
}

/* Tries until the thing is taken, or refused, or the time is over. Signals end no such wait. */
static int take(int (*try)(void *), void *of, uint64_t until)
{
    struct attempt a = {try, of, EBUSY};
    enum virtual_end end;
    if (has_it(&a)) {
        return a.rc;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while ((end = virtual_await(has_it, &a, until, NULL)) == VIRTUAL_SIGNAL) {
    }
    pthread_setcancelstate(cancel, NULL);
    return end == VIRTUAL_LATE ? ETIMEDOUT : a.rc;
}

/* Who gives something lets others go on: threads, and processes if these may share it. */
static int given(int rc, bool shared)
{
    if (rc == 0 && virtual_in()) {
        if (shared) {
            virtual_stir();
        } else {
            virtual_wake();
        }
    }
    return rc;
}

/* ---- mutexes ---- */

enum { KIND = 3, SHARED = 128 }; /* of glibc's __kind */

static int try_mutex(void *m)
{
    return OPENLY(REAL(pthread_mutex_trylock)(m));
}

/* The caller has it already, and asks to be told. */
static bool is_own(const pthread_mutex_t *m)
{
    return (m->__data.__kind & KIND) == PTHREAD_MUTEX_ERRORCHECK &&
           m->__data.__owner == (int)SYS_CALL(SYS_gettid);
}

SHOWN int pthread_mutex_lock(pthread_mutex_t *m)
{
    return virtual_in() && !is_own(m) ? take(try_mutex, m, SIM_NEVER)
                                      : OPENLY(REAL(pthread_mutex_lock)(m));
}

SHOWN int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *t)
{
    return virtual_in() && !is_own(m) ? take(try_mutex, m, virtual_at(clock, t))
                                      : OPENLY(REAL(pthread_mutex_clocklock)(m, clock, t));
}

SHOWN int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t)
{
    return virtual_in() && !is_own(m) ? take(try_mutex, m, virtual_at(CLOCK_REALTIME, t))
                                      : OPENLY(REAL(pthread_mutex_timedlock)(m, t));
}

SHOWN int pthread_mutex_unlock(pthread_mutex_t *m)
{
    bool shared = (m->__data.__kind & SHARED) != 0;
    return given(OPENLY(REAL(pthread_mutex_unlock)(m)), shared);
}

/* ---- conditions ---- */

/* A thread that waits for a condition or a barrier. */
struct waiter {
    struct waiter *next;
    const void *of;
    bool told;
    pthread_mutex_t *mutex;
};

static struct waiter
    *waiters; /* whoever has the clock has them; the first one has waited longest */

static void enlist(struct waiter *w)
{
    struct waiter **last = &waiters;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = w;
}

static void delist(const struct waiter *w)
{
    struct waiter **at = &waiters;
    while (*at != NULL && *at != w) {
        at = &(*at)->next;
    }
    if (*at == w) {
        *at = w->next;
    }
}

static bool was_told(void *waiter)
{
    const struct waiter *w = waiter;
    return w->told;
}

/* A condition that processes share: any look is an end. */
static bool looks_twice(void *waiter)
{
    struct waiter *w = waiter;
    bool again = w->told;
    w->told = true;
    return again;
}

static bool is_shared(const pthread_cond_t *c)
{
    return (c->__data.__wrefs & 1) != 0;
}

/* The end of a wait for a condition; also of one whose thread is cancelled. */
static void awake(void *waiter)
{
    struct waiter *w = waiter;
    delist(w);
    pthread_mutex_lock(w->mutex);
}

static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until)
{
    struct waiter w = {NULL, c, false, m};
    bool shared = is_shared(c);
    int rc = pthread_mutex_unlock(m);
    if (rc != 0) {
        return rc;
    }
    enum virtual_end end;
    enlist(&w);
    pthread_cleanup_push(awake, &w);
    while ((end = virtual_await(shared ? looks_twice : was_told, &w, until, NULL)) ==
           VIRTUAL_SIGNAL) {
    }
    pthread_cleanup_pop(1);
    return end == VIRTUAL_LATE ? ETIMEDOUT : 0;
}

SHOWN int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m)
{
    return virtual_in() ? wait_for(c, m, SIM_NEVER) : OPENLY(REAL(pthread_cond_wait)(c, m));
}

SHOWN int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                                 clockid_t clock, const struct timespec *restrict t)
{
    return virtual_in() ? wait_for(c, m, virtual_at(clock, t))
                        : OPENLY(REAL(pthread_cond_clockwait)(c, m, clock, t));
}

SHOWN int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                                 const struct timespec *restrict t)
{
    clockid_t clock = (c->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    return virtual_in() ? wait_for(c, m, virtual_at(clock, t))
                        : OPENLY(REAL(pthread_cond_timedwait)(c, m, t));
}

static void tell(const void *of, unsigned most)
{
    for (struct waiter *w = waiters; w != NULL && most != 0; w = w->next) {
        if (w->of == of && !w->told) {
            w->told = true;
            most--;
        }
    }
}

SHOWN int pthread_cond_signal(pthread_cond_t *c)
{
    if (virtual_in() && !is_shared(c)) {
        tell(c, 1);
    }
    return given(OPENLY(REAL(pthread_cond_signal)(c)), is_shared(c));
}

SHOWN int pthread_cond_broadcast(pthread_cond_t *c)
{
    if (virtual_in() && !is_shared(c)) {
        tell(c, (unsigned)-1);
    }
    return given(OPENLY(REAL(pthread_cond_broadcast)(c)), is_shared(c));
}

/* ---- semaphores ---- */

static int try_sem(void *s)
{
    int error = errno, rc = OPENLY(REAL(sem_trywait)(s)) == 0 ? 0 : errno == EAGAIN ? EBUSY : errno;
    errno = error;
    return rc;
}

static int take_sem(sem_t *s, uint64_t until)
{
    struct attempt a = {try_sem, s, EBUSY};
    enum virtual_end end = virtual_await(has_it, &a, until, NULL);
    int rc = end == VIRTUAL_SIGNAL ? EINTR : end == VIRTUAL_LATE ? ETIMEDOUT : a.rc;
    errno = rc != 0 ? rc : errno;
    return rc != 0 ? -1 : 0;
}

SHOWN int sem_wait(sem_t *s)
{
    return virtual_in() ? take_sem(s, SIM_NEVER) : OPENLY(REAL(sem_wait)(s));
}

SHOWN int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t)
{
    return virtual_in() ? take_sem(s, virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(sem_timedwait)(s, t));
}

SHOWN int sem_clockwait(sem_t *restrict s, clockid_t clock, const struct timespec *restrict t)
{
    return virtual_in() ? take_sem(s, virtual_at(clock, t))
                        : OPENLY(REAL(sem_clockwait)(s, clock, t));
}

SHOWN int sem_post(sem_t *s)
{
    return given(OPENLY(REAL(sem_post)(s)), true);
}

/* ---- spin locks ---- */

static int try_spin(void *l)
{
    return OPENLY(REAL(pthread_spin_trylock)(l));
}

SHOWN int pthread_spin_lock(pthread_spinlock_t *l)
{
    return virtual_in() ? take(try_spin, (void *)(uintptr_t)l, SIM_NEVER)
                        : OPENLY(REAL(pthread_spin_lock)(l));
}

SHOWN int pthread_spin_unlock(pthread_spinlock_t *l)
{
    return given(OPENLY(REAL(pthread_spin_unlock)(l)), true);
}

/* ---- barriers ---- */

/* The number of threads of a barrier, where glibc has it. */
static unsigned size_of(const pthread_barrier_t *b)
{
    return ((const unsigned *)(const void *)b)[2];
}

SHOWN int pthread_barrier_wait(pthread_barrier_t *b)
{
    if (!virtual_in()) {
        return OPENLY(REAL(pthread_barrier_wait)(b));
    }
    unsigned here = 1;
    for (const struct waiter *w = waiters; w != NULL; w = w->next) {
        here += w->of == b && !w->told;
    }
    if (here >= size_of(b)) {
        tell(b, (unsigned)-1);
        virtual_wake();
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    struct waiter w = {NULL, b, false, NULL};
    enlist(&w);
    while (virtual_await(was_told, &w, SIM_NEVER, NULL) == VIRTUAL_SIGNAL) {
    }
    delist(&w);
    return 0;
}

/* ---- readers and writers ---- */

static int try_read(void *l)
{
    return OPENLY(REAL(pthread_rwlock_tryrdlock)(l));
}

static int try_write(void *l)
{
    return OPENLY(REAL(pthread_rwlock_trywrlock)(l));
}

SHOWN int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    return virtual_in() ? take(try_read, l, SIM_NEVER) : OPENLY(REAL(pthread_rwlock_rdlock)(l));
}

SHOWN int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    return virtual_in() ? take(try_write, l, SIM_NEVER) : OPENLY(REAL(pthread_rwlock_wrlock)(l));
}

SHOWN int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l,
                                     const struct timespec *restrict t)
{
    return virtual_in() ? take(try_read, l, virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(pthread_rwlock_timedrdlock)(l, t));
}

SHOWN int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l,
                                     const struct timespec *restrict t)
{
    return virtual_in() ? take(try_write, l, virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(pthread_rwlock_timedwrlock)(l, t));
}

SHOWN int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    return given(OPENLY(REAL(pthread_rwlock_unlock)(l)), false);
}
