/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs that are threads: they take handler calls from queues and run them.
 *
 *      hpu_sched_submit() ──► queue of an execution context ─┐           ┌─► ops->done()
 *      hpu_sched_submit() ──► queue of another one ──────────┴─► HPU i ──┤
 *                                                          ▲             └─ suspended ─┐
 *                                                          └── later, the same HPU ◄───┘
 *
 * An execution context is shared by the handlers of one entry. Its calls begin in the order in
 * which they were submitted, and run in parallel: on any HPU; or on those of its mask, and then no
 * more of them at once than the mask has HPUs. The caller keeps the order of header, payload and
 * completion handlers: it submits only calls that may run now.
 *
 * Contexts share the HPUs by the time that their handlers take (deficit round robin): each has a
 * credit of QUANTUM_NS a round. When a call begins, its context is charged the average of earlier
 * calls; when it ends, the difference to its own time. So a context with slow handlers misses as
 * many rounds as the others need to catch up.
 *
 * HPU i of n gives its handlers the slots i, i + n, i + 2n, ... of the pool. Any thread may call
 * these functions. The scheduler has a lock of its own, which it releases while handlers or
 * functions of the NIC run. While it exists only the scheduler uses the pool.
 */
#ifndef HPU_SCHED_H
#define HPU_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "hpu/exec.h"

struct hpu_sched;

/* The queue of an execution context. The scheduler owns it while calls of it are queued or
 * running. */
struct hpu_queue {
    struct list ready; /* struct hpu_exec, in order */
    struct list turn;  /* in the scheduler's list of queues, while `ready` is not empty */
    uint64_t mask;     /* HPUs that may run its calls; 0: all */
    unsigned waiting;  /* calls in `ready` */
    unsigned active;   /* calls that have begun and not ended */
    int64_t credit;    /* nanoseconds that its calls may use before other queues' turn */
    int64_t expected;  /* average time of its calls */
};

/* Functions of the NIC that an HPU's thread calls without a lock. */
struct hpu_sched_ops {
    void (*begin)(void *arg); /* called first on each thread */
    /* A call has ended, and its context was given back. */
    void (*done)(void *arg, struct hpu_exec *exec, int code);
    /* The HPU has only suspended handlers: the NIC may have to make progress for them. */
    void (*idle)(void *arg);
};

/* hpu_sched_create() starts `hpus` threads (1 to PTL_NUM_HPUS). `cpus` is NULL or empty, or a list
 * of processors, as "2,3,6-7": the HPUs are bound to them in turn. NULL with errno set if it
 * cannot; EINVAL for a list that is malformed, or has processors that the process may not use. */
struct hpu_sched *hpu_sched_create(struct hpu_pool *pool, unsigned hpus, const char *cpus,
                                   const struct hpu_sched_ops *ops, void *arg);

/* What an HPU in virtual time was taken for: a call from its begin, or from where it went on, to
 * its end, or to where it was suspended. */
struct hpu_took {
    const struct hpu_exec *exec;
    unsigned hpu;
    bool begins;        /* this is the begin of the call */
    uint64_t waited;    /* if it begins: how long it waited for an HPU, in ps */
    unsigned waiting;   /* if it begins: calls that waited then, itself included */
    uint64_t shortage;  /* ps that ended then, in which a call always waited */
    uint64_t begin, ps; /* when, and for how long, the HPU was taken */
};

/* The time of HPUs that are no threads: those of a simulated NIC, in picoseconds. at() has
 * something happen at a time, now or later, without the scheduler's lock; false: memory is short.
 * at_new() does so with memory of `size` bytes, which the caller fills, and which is freed then;
 * NULL: memory is short. A call of a handler takes the cycles of its device code, or `native`
 * before native code runs; a suspended one, and native code's look at nothing, takes `look`. dma()
 * has the DMA engine take so many bytes, to the host or from it, and returns when it has them. */
struct hpu_sched_time {
    uint64_t (*now)(void *arg);
    bool (*at)(void *arg, uint64_t time, void (*happen)(void *), void *what);
    void *(*at_new)(void *arg, uint64_t time, void (*happen)(void *), size_t size);
    uint64_t (*dma)(void *arg, uint64_t bytes, bool to_host);
    void *arg;
    uint64_t native, look, dma_latency;
    unsigned clock_mhz;
    void (*took)(void *arg, const struct hpu_took *t); /* for counting */
    /* A call begins or goes on now that was queued, or could go on, at a time, with the lead() of
     * then: how much sooner what happens would happen with one HPU more. */
    void (*begins)(void *arg, unsigned hpu, uint64_t queued, uint64_t lead);
    uint64_t (*lead)(void *arg);
    /* Of HPUs that several schedulers share (NULL: none are): take() takes one for who has waited
     * since a time; false: another one has it, or is to have it first. give() gives it back.
     * wants() tells since when calls wait for each (UINT64_MAX: none does), and returns those that
     * are free for them, as bits; hpu_sched_freed() is called when others become so. */
    bool (*take)(void *arg, unsigned hpu, uint64_t since);
    void (*give)(void *arg, unsigned hpu);
    uint64_t (*wants)(void *arg, const uint64_t *since);
};

/* hpu_sched_create_virtual() makes HPUs in virtual time, which must outlive them; no thread is
 * started. */
struct hpu_sched *hpu_sched_create_virtual(struct hpu_pool *pool, unsigned hpus,
                                           const struct hpu_sched_time *time,
                                           const struct hpu_sched_ops *ops, void *arg);
/* hpu_sched_fault() takes an HPU out, for ever: the calls that run or are suspended there end as by
 * a fault, and so do those that no HPU which is left may run, now and from then on. */
void hpu_sched_fault(struct hpu_sched *s, unsigned hpu);
void hpu_sched_freed(struct hpu_sched *s);
const struct hpu_sched_time *hpu_sched_time_of(const struct hpu_sched *s);

/* Called on the context of a call that runs there. hpu_sched_point() returns when the clock has
 * come to the cycles that the call's device code has taken: what others do before is done then.
 * hpu_sched_until() returns at a time; the HPU is taken, and device code is charged, until then. */
void hpu_sched_point(struct hpu_exec *exec);
void hpu_sched_until(struct hpu_exec *exec, uint64_t time);

/* hpu_sched_stop() waits for the handlers that run, and ends the threads; no call may be queued or
 * suspended. hpu_sched_destroy() does so, too, and frees the scheduler. NULL is legal for both. */
void hpu_sched_stop(struct hpu_sched *s);
void hpu_sched_destroy(struct hpu_sched *s);

unsigned hpu_sched_hpus(const struct hpu_sched *s);

/* hpu_queue_init() makes an empty queue. */
void hpu_queue_init(struct hpu_queue *q, uint64_t mask);

/* hpu_sched_submit() queues a call that hpu_exec_header(), _payload() or _completion() has set up.
 * The scheduler owns the call until done(). */
void hpu_sched_submit(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec);

/* hpu_sched_submit_first() is for done(): it queues the rest of a call that has ended before all
 * other calls, so that on a single HPU their order is kept. */
void hpu_sched_submit_first(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec);

/* hpu_sched_withdraw() takes back a call that has not begun; false: it has begun. */
bool hpu_sched_withdraw(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_cancel() takes back a call that has not begun, or gives up one that is suspended,
 * without a call of done(). False: an HPU runs it. */
bool hpu_sched_cancel(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_runs() says whether an HPU runs a call now: it is neither queued, nor suspended, nor
 * was done() called. hpu_sched_end() ends such a call with TIMEOUT; done() is called as for
 * others. */
bool hpu_sched_runs(struct hpu_sched *s, const struct hpu_exec *exec);
void hpu_sched_end(struct hpu_sched *s, struct hpu_exec *exec);

/* hpu_sched_pause() keeps HPUs from beginning or resuming calls until the matching
 * hpu_sched_resume(). Calls that run go on. */
void hpu_sched_pause(struct hpu_sched *s);
void hpu_sched_resume(struct hpu_sched *s);

/* hpu_queue_waiting() returns the number of calls of a queue that have not begun. */
unsigned hpu_queue_waiting(struct hpu_sched *s, const struct hpu_queue *q);

#endif
