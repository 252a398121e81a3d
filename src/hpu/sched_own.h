/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the scheduler, for its files: sched.c has queues, turns and what an HPU does,
 * sched_threads.c the threads. All of it is under the scheduler's lock, but for what an HPU has of
 * its own.
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
    bool was_suspended; /* the last call that it ran had been suspended: a new one has its turn */
    struct list suspended;   /* struct hpu_exec */
    unsigned lone;           /* times in a row that nothing but suspended ones were there */
    uint64_t slots;          /* of the pool */
    int64_t sample;          /* of its CPU clock */
    int64_t since_sample;    /* time that it has been charged for since the sample */
    _Atomic unsigned called; /* bumped when there is work: what a spinning HPU looks at */
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

/* sched_thread() is an HPU: `arg` is its struct hpu. */
void *sched_thread(void *arg);
/* sched_wake() wakes an HPU that may begin a call of `q`; `q` NULL: all of them. Lock held. */
void sched_wake(struct hpu_sched *s, const struct hpu_queue *q);

#endif
