/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of a program. One runs at a time (fabric/sim/tasks.c), from its creation at the time of
 * its creator until it has ended; TLS destructors run after that.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* A thread. It is freed by the thread that joins it, or at the end of one that was detached. */
struct thread {
    struct thread *next;
    struct sim_task own, *task; /* `task`: its own, or that of the clock, of the first one */
    pthread_t id;
    void *(*function)(void *);
    void *arg;
    bool over, detached;
};

static struct thread first;             /* the one that the process began with */
static struct thread *threads = &first; /* whoever has the clock has them */
static pthread_key_t at_end;            /* set in the first one only: the others end by end() */

static struct thread **find(pthread_t id)
{
    struct thread **at = &threads;
    while (*at != NULL && !pthread_equal((*at)->id, id)) {
        at = &(*at)->next;
    }
    return at;
}

static void forget(struct thread *t)
{
    struct thread **at = &threads;
    while (*at != NULL && *at != t) {
        at = &(*at)->next;
    }
    if (*at == t) {
        *at = t->next;
        if (t != &first) {
            free(t);
        }
    }
}

/* The thread returns, calls pthread_exit(), or is cancelled. */
static void end(void *thread)
{
    struct thread *t = thread;
    struct sim_clock *c = virtual_clock;
    virtual_untrap();
    virtual_self = NULL;
    t->over = true;
    sim_task_drop(c, t->task);
    if (t->detached) {
        forget(t);
    }
    sim_task_pass(c);
}

/* The first thread ends by pthread_exit() or is cancelled: nobody has called it, so the end of its
 * keys is what tells. The process goes on. */
static void end_first(void *thread)
{
    if (virtual_in()) {
        end(thread);
    }
}

void virtual_first_thread(void)
{
    first = (struct thread){.id = pthread_self(), .task = virtual_self};
    if (pthread_key_create(&at_end, end_first) == 0) {
        pthread_setspecific(at_end, &first);
    }
}

void virtual_forked_threads(void)
{
    while (threads != NULL && threads->task != virtual_self) {
        threads = threads->next;
    }
    if (threads != NULL) {
        threads->next = NULL;
    }
}

static void *run(void *thread)
{
    struct thread *t = thread;
    void *result;
    virtual_self = t->task;
    sim_task_enter(virtual_clock, t->task);
    virtual_trap();
    pthread_cleanup_push(end, t);
    result = t->function(t->arg);
    pthread_cleanup_pop(1);
    return result;
}

SHOWN int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes,
                         void *(*function)(void *), void *restrict arg)
{
    bool own = CALLED_BY_PORTALS();
    if (virtual_in() && !own) {
        return virtual_thread(id, attributes, function, arg);
    }
    virtual_strangers |= virtual_clock != NULL && !own;
    bool tsc = virtual_tsc_off();
    int rc = OPENLY(REAL(pthread_create)(id, attributes, function, arg));
    virtual_tsc_on(tsc);
    return rc;
}

int virtual_thread(pthread_t *id, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *arg)
{
    struct thread *t = calloc(1, sizeof(*t));
    int state = PTHREAD_CREATE_JOINABLE;
    if (t == NULL) {
        return EAGAIN;
    }
    if (attributes != NULL) {
        pthread_attr_getdetachstate(attributes, &state);
    }
    t->function = function;
    t->arg = arg;
    t->detached = state == PTHREAD_CREATE_DETACHED;
    t->task = &t->own;
    sim_task_begin(virtual_clock, t->task);
    t->next = threads;
    threads = t;
    int rc = OPENLY(REAL(pthread_create)(id, attributes, run, t));
    if (rc != 0) {
        sim_task_drop(virtual_clock, t->task);
        forget(t);
        return rc;
    }
    t->id = *id;
    return 0;
}

static bool is_over(void *thread)
{
    const struct thread *t = thread;
    return t->over;
}

static int join(pthread_t id, void **result, uint64_t until)
{
    struct thread *t = *find(id);
    if (t != NULL && virtual_await(is_over, t, until, NULL) == VIRTUAL_LATE) {
        return ETIMEDOUT;
    }
    while (t != NULL && !t->over) {
        virtual_await(is_over, t, until, NULL); /* a signal does not end it */
    }
    int rc = OPENLY(REAL(pthread_join)(id, result));
    if (rc == 0 && t != NULL) {
        forget(t);
    }
    return rc;
}

SHOWN int pthread_join(pthread_t id, void **result)
{
    return virtual_in() ? join(id, result, SIM_NEVER) : OPENLY(REAL(pthread_join)(id, result));
}

SHOWN int pthread_tryjoin_np(pthread_t id, void **result)
{
    struct thread *t = virtual_in() ? *find(id) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(pthread_tryjoin_np)(id, result));
    }
    if (!t->over) {
        virtual_look();
    }
    return t->over ? join(id, result, SIM_NEVER) : EBUSY;
}

SHOWN int pthread_timedjoin_np(pthread_t id, void **result, const struct timespec *t)
{
    return virtual_in() ? join(id, result, virtual_at(CLOCK_REALTIME, t))
                        : OPENLY(REAL(pthread_timedjoin_np)(id, result, t));
}

SHOWN int pthread_detach(pthread_t id)
{
    struct thread *t = virtual_in() ? *find(id) : NULL;
    int rc = OPENLY(REAL(pthread_detach)(id));
    if (t != NULL && t->over) {
        forget(t);
    } else if (t != NULL) {
        t->detached = true;
    }
    return rc;
}

/* Ends the wait of a thread for which there is a signal, or that is cancelled. */
static int interrupted(int rc, pthread_t id)
{
    struct thread *t = rc == 0 && virtual_in() ? *find(id) : NULL;
    if (t != NULL && !t->over) {
        sim_task_interrupt(virtual_clock, t->task);
    }
    return rc;
}

SHOWN int pthread_cancel(pthread_t id)
{
    return interrupted(OPENLY(REAL(pthread_cancel)(id)), id);
}

SHOWN int pthread_kill(pthread_t id, int signal)
{
    int rc = OPENLY(REAL(pthread_kill)(id, signal));
    return signal != 0 ? interrupted(rc, id) : rc;
}
