/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs that are threads: they take handler calls from queues and run them.
 *
 *      hpu_sched_submit() ──► queue of an execution context ─┐           ┌─► ops->done()
 *      hpu_sched_submit() ──► queue of another one ──────────┴─► HPU i ──┤
 *                                                          ▲             └─ suspended ─┐
 *                                                          └── later, the same HPU ◄───┘
 *
 * An execution context is what the handlers of one entry have in common. Its calls begin
 * in the order in which they were submitted, and run in parallel: on any HPU, or on those
 * of its mask, and then no more of them at once than the mask has HPUs. The order of
 * header, payload and completion is the submitter's: it submits what may run now.
 *
 * Contexts share the HPUs by the time that their handlers take (deficit round robin): each
 * has a credit of QUANTUM_NS a round. A call is charged what the ones before took when it
 * begins, and what it took itself when it ends, so that a context whose handlers are slow
 * passes as many rounds as the others need to catch up.
 *
 * HPU i of n gives its handlers the slots i, i + n, i + 2n, ... of the pool. Every function
 * may be called by any thread; the lock is the scheduler's own and is held while no foreign
 * code runs. While it has HPUs, the pool is the scheduler's.
 */
#ifndef HPU_SCHED_H
#define HPU_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "hpu/exec.h"

struct hpu_sched;

/* The queue of an execution context. The scheduler's while calls of it are under way. */
struct hpu_queue {
    struct list ready; /* struct hpu_exec, in order */
    struct list turn;  /* of the scheduler, while `ready` is not empty */
    uint64_t mask;     /* HPUs, 0: all */
    unsigned waiting;  /* in `ready` */
    unsigned active;   /* begun and not ended */
    int64_t credit;    /* nanoseconds that it may use before it is another one's turn */
    int64_t expected;  /* time that a call of it takes, on average */
};

/* Functions of the NIC that an HPU's thread calls without a lock. */
struct hpu_sched_ops {
    void (*begin)(void *arg); /* first, on each thread */
    /* The call has ended and its context is given back. */
    void (*done)(void *arg, struct hpu_exec *exec, int code);
    /* All that the HPU has to do is suspended: what it waits for may need a push. */
    void (*idle)(void *arg);
};

/* hpu_sched_create() starts `hpus` threads (1 to PTL_NUM_HPUS). `cpus` is NULL or empty, or
 * a list as "2,3,6-7" of processors: HPU i runs on the i-th of them, in turn. Returns NULL
 * with errno set, EINVAL for a list that makes no sense or names what we may not use. */
struct hpu_sched *hpu_sched_create(struct hpu_pool *pool, unsigned hpus, const char *cpus,
                                   const struct hpu_sched_ops *ops, void *arg);

/* hpu_sched_stop() waits for handlers that run, and ends the threads. No call may be queued or
 * suspended. hpu_sched_destroy() does that, too, and frees the rest. NULL is legal for both. */
void hpu_sched_stop(struct hpu_sched *s);
void hpu_sched_destroy(struct hpu_sched *s);

unsigned hpu_sched_hpus(const struct hpu_sched *s);

/* hpu_queue_init() makes an empty queue. */
void hpu_queue_init(struct hpu_queue *q, uint64_t mask);

/* hpu_sched_submit() queues a call that hpu_exec_header() or one of its like has set up; it
 * is the scheduler's until done(). */
void hpu_sched_submit(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec);

/* hpu_sched_submit_first() queues, in done(), what is left of the call that has ended: before all
 * others, so that on one HPU the order stays what it was. */
void hpu_sched_submit_first(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec);

/* hpu_sched_withdraw() takes back a call that has not begun; false: it has. */
bool hpu_sched_withdraw(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_cancel() takes back a call that has not begun, or gives up one that is
 * suspended; done() is not called. False: it runs. */
bool hpu_sched_cancel(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_runs() says whether a call that was queued, and whose done() has not been called, is
 * with an HPU: neither queued nor suspended. hpu_sched_end() ends one that is, with TIMEOUT;
 * done() is called as ever. */
bool hpu_sched_runs(struct hpu_sched *s, const struct hpu_exec *exec);
void hpu_sched_end(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_pause() keeps HPUs from beginning or resuming calls until the matching
 * hpu_sched_resume(); those under way go on. */
void hpu_sched_pause(struct hpu_sched *s);
void hpu_sched_resume(struct hpu_sched *s);

/* hpu_queue_waiting() counts the calls of a queue that have not begun. */
unsigned hpu_queue_waiting(struct hpu_sched *s, const struct hpu_queue *q);

#endif
