/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the scheduler, shared by its files: sched.c has the queues, their turns and the work
 * of an HPU; sched_threads.c has the threads. The scheduler's lock guards all of it but the fields
 * that only the HPU itself uses.
 */
#ifndef HPU_SCHED_OWN_H
#define HPU_SCHED_OWN_H

#include "hpu/sched.h"

#include "base/mutex.h"
#include "base/thread.h"

#include <stdatomic.h>

struct hpu {
    struct hpu_sched *sched;
    unsigned number;
    pthread_t thread;
    struct condition work;
    bool asleep, spinning;
    /* the last call that it ran was a suspended one: next it begins a new one */
    bool was_suspended;
    struct list suspended;   /* struct hpu_exec */
    unsigned lone;           /* calls in a row that were suspended ones, with no new one to begin */
    uint64_t slots;          /* its slots of the pool, as bits */
    int64_t sample;          /* reading of its CPU clock */
    int64_t since_sample;    /* time that was charged since that reading */
    _Atomic unsigned called; /* incremented when there is work; a spinning HPU watches it */
    struct {
        bool due;              /* it is about to look for work */
        bool out;              /* it has failed */
        bool held;             /* it was taken, of those that are shared */
        uint64_t denied;       /* since when its suspended calls wait for it; 0: they do not */
        struct hpu_exec *exec; /* that it runs; NULL: none */
        int code;              /* that its call has given */
        struct hpu_took took;  /* by that call */
        uint64_t cycles;       /* that it had taken when it began or went on, at took.begin */
        uint64_t until;        /* it is in the midst of something that takes until then; 0: not */
    } at;                      /* in virtual time: sched_virtual.c */
};

struct hpu_sched {
    struct mutex lock;
    const struct hpu_sched_time *time; /* virtual; NULL: HPUs are threads */
    struct hpu_pool *pool;
    const struct hpu_sched_ops *ops;
    void *arg;
    struct list turn; /* struct hpu_queue */
    unsigned paused;
    bool stop;
    unsigned hpus, started;
    uint64_t short_since; /* in virtual time: when calls began to wait, if any does */
    struct hpu hpu[];
};

/* sched_next() is the call that an HPU runs next, or NULL. sched_ran() notes that it has run, for
 * so many ns, and what hpu_exec_run() gave; it lets go of the lock while the call's end is told. */
struct hpu_exec *sched_next(struct hpu *h);
void sched_ran(struct hpu *h, struct hpu_exec *exec, int code, int64_t took);
/* sched_new() makes a scheduler whose HPUs have not begun; NULL: no memory. */
struct hpu_sched *sched_new(struct hpu_pool *pool, unsigned hpus, const struct hpu_sched_ops *ops,
                            void *arg);
/* sched_may_run() says whether an HPU may begin a call of a queue; sched_wake_virtual() is
 * sched_wake() in virtual time. */
bool sched_may_run(const struct hpu_queue *q, unsigned hpu);
void sched_wake_virtual(struct hpu_sched *s, const struct hpu_queue *q);
/* sched_waits_virtual() notes, in virtual time, that a call is about to be queued. */
void sched_waits_virtual(struct hpu_sched *s, struct hpu_exec *exec);
/* sched_thread() is the thread of an HPU: `arg` is its struct hpu. */
void *sched_thread(void *arg);
/* sched_wake() wakes one HPU that may begin a call of `q`, or all if `q` is NULL; lock held. */
void sched_wake(struct hpu_sched *s, const struct hpu_queue *q);

#endif
