/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: stacks on which handlers run, and the switch between them and the
 * threads that run them.
 *
 *      pool = one mapping      | guard | stack 0 | guard | stack 1 | guard | ...
 *
 *      IDLE ──start──► RUNNING ──function returns──► IDLE
 *                      │  ▲  └──abandon, fault─────► BROKEN ──put──► IDLE, built anew
 *                 suspend  resume
 *                      ▼  │
 *                     PARKED ──cancel──► BROKEN
 *
 * A context belongs to whoever got it from the pool, until it is put back; its
 * slot is a number below PTL_NUM_HPUS that no other context in use has. It may be
 * suspended on one thread and resumed on another. A pool has no lock of its own: of
 * the threads that share one, its owner lets in one at a time to get and put.
 */
#ifndef HPU_CONTEXT_H
#define HPU_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct hpu_pool;
struct hpu_ctx;

/* Why hpu_ctx_start() and hpu_ctx_resume() returned. */
enum hpu_ctx_exit {
    HPU_CTX_DONE,      /* the function returned */
    HPU_CTX_PARKED,    /* it suspended itself; touch nothing that its new owner may have freed */
    HPU_CTX_ABANDONED, /* it was given up by hpu_ctx_abandon() */
    HPU_CTX_FAULTED,   /* it was given up by a fault in code that may be given up */
    HPU_CTX_OVERDUE    /* it was given up there because its time was over (watchdog.h) */
};

/* hpu_pool_create() maps `max_contexts` (1 to PTL_NUM_HPUS) stacks of at least
 * `stack_size` bytes, with a page that faults below and above each. It returns
 * NULL with errno set when that cannot be. Memory is used when it is touched. */
struct hpu_pool *hpu_pool_create(unsigned max_contexts, size_t stack_size);

/* hpu_pool_destroy() unmaps the stacks; no context may be in use. NULL is legal. */
void hpu_pool_destroy(struct hpu_pool *pool);

/* hpu_pool_in_use() counts the contexts in use. */
unsigned hpu_pool_in_use(const struct hpu_pool *pool);

/* hpu_ctx_get() takes a free context, or returns NULL; hpu_ctx_get_of() one whose slot is a
 * bit of `slots`. */
struct hpu_ctx *hpu_ctx_get(struct hpu_pool *pool);
struct hpu_ctx *hpu_ctx_get_of(struct hpu_pool *pool, uint64_t slots);

/* hpu_ctx_put() gives back a context that is not suspended. */
void hpu_ctx_put(struct hpu_ctx *ctx);

/* hpu_ctx_slot() is its number in the pool. */
unsigned hpu_ctx_slot(const struct hpu_ctx *ctx);

/* hpu_ctx_stack() is the lowest byte of its stack, *size bytes long; hpu_ctx_guard() tells of the
 * fault that gave it up. */
void *hpu_ctx_stack(const struct hpu_ctx *ctx, size_t *size);
static inline const struct fault_guard *hpu_ctx_guard(const struct hpu_ctx *ctx);

/* hpu_ctx_start() runs function(arg) on the context until it returns, suspends
 * itself or is given up. */
enum hpu_ctx_exit hpu_ctx_start(struct hpu_ctx *ctx, void (*function)(void *), void *arg);

/* hpu_ctx_resume() continues a context that suspended itself, on this thread. It
 * waits for the moment until the context has left the thread it suspended on. */
enum hpu_ctx_exit hpu_ctx_resume(struct hpu_ctx *ctx);

/* hpu_ctx_cancel() gives up a context that suspended itself. */
void hpu_ctx_cancel(struct hpu_ctx *ctx);

/* ---- On a context ---- */

/* Handlers ask for these in every call that they make: hence inline. What they look at is the
 * first part of a context. */
struct hpu_ctx_head {
    struct fault_guard guard;
    void (*function)(void *);
    void *arg;
};

static inline const struct fault_guard *hpu_ctx_guard(const struct hpu_ctx *ctx)
{
    return &((const struct hpu_ctx_head *)ctx)->guard;
}

/* hpu_ctx_current() is the context this code runs on, or NULL. It is read here and now, through
 * the thread that this is now: a compiler would keep the address of a thread's variable across a
 * switch that leads to another one. */
extern _Thread_local struct hpu_ctx *hpu_thread_ctx __attribute__((tls_model("initial-exec")));
static inline struct hpu_ctx *hpu_ctx_current(void)
{
    struct hpu_ctx *ctx;
    __asm__ volatile("movq hpu_thread_ctx@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"
                     : "=r"(ctx)
                     :
                     : "memory");
    return ctx;
}

/* hpu_ctx_arg() is the `arg` of the context this code runs on if it was started
 * with `function`, else NULL. */
static inline void *hpu_ctx_arg(void (*function)(void *))
{
    const struct hpu_ctx_head *head = (const struct hpu_ctx_head *)hpu_ctx_current();
    return head != NULL && head->function == function ? head->arg : NULL;
}

/* hpu_ctx_suspend() leaves the thread and returns when the context is resumed. */
void hpu_ctx_suspend(struct hpu_ctx *ctx);

/* hpu_ctx_abandon() leaves the thread for good. What is on the stack is lost. */
_Noreturn void hpu_ctx_abandon(struct hpu_ctx *ctx);

/* hpu_ctx_set_expendable() says whether a fault from here on gives up the
 * context (1) or is passed to the handler that the program installed (0). */
static inline void hpu_ctx_set_expendable(struct hpu_ctx *ctx, int expendable)
{
    atomic_signal_fence(memory_order_seq_cst);
    ((struct hpu_ctx_head *)ctx)->guard.armed = expendable;
    atomic_signal_fence(memory_order_seq_cst);
}

/* hpu_ctx_overdue() says whether the time of what runs on the context is over. */
static inline bool hpu_ctx_overdue(const struct hpu_ctx *ctx)
{
    return fault_guard_overdue(&((const struct hpu_ctx_head *)ctx)->guard);
}

/* hpu_ctx_new_turn() says that what runs on the context has its whole time again. */
static inline void hpu_ctx_new_turn(struct hpu_ctx *ctx)
{
    fault_guard_next(&((struct hpu_ctx_head *)ctx)->guard);
}

/* hpu_ctx_end() says that the time of what runs on the context is over, if anything does. It may
 * be called by any thread while the context cannot be put back. */
void hpu_ctx_end(struct hpu_ctx *ctx);

/* ---- For watchdog.c ---- */

struct hpu_watchdog;

/* hpu_pool_contexts() counts the contexts, hpu_pool_guard() is what the i-th one's thread is
 * watched by; its `turn` is odd while the context runs. */
unsigned hpu_pool_contexts(const struct hpu_pool *pool);
struct fault_guard *hpu_pool_guard(struct hpu_pool *pool, unsigned i);

/* hpu_pool_set_watchdog() says who is to be told when a context starts or is resumed while it
 * sleeps; NULL: nobody. No context may be running. */
void hpu_pool_set_watchdog(struct hpu_pool *pool, struct hpu_watchdog *watchdog);

#endif
