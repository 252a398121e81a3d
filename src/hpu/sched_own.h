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
};

struct hpu_sched {
    struct mutex lock;
    struct hpu_pool *pool;
    const struct hpu_sched_ops *ops;
    void *arg;
    struct list turn; /* struct hpu_queue */
    unsigned paused;
    bool stop;
    unsigned hpus, started;
    struct hpu hpu[];
};

/* sched_thread() is the thread of an HPU: `arg` is its struct hpu. */
void *sched_thread(void *arg);
/* sched_wake() wakes one HPU that may begin a call of `q`, or all if `q` is NULL; lock held. */
void sched_wake(struct hpu_sched *s, const struct hpu_queue *q);

#endif
