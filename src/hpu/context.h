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
 * A context belongs to the caller that got it from the pool, until that puts it back. Its slot is
 * a number below PTL_NUM_HPUS that no other context of the pool has. It may be suspended on one
 * thread and resumed on another. A pool has no lock of its own: the owner of the pool calls get and
 * put under a lock.
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
    HPU_CTX_DONE, /* the function returned */
    /* the function suspended itself; another thread may have resumed it already, and freed what it
     * uses */
    HPU_CTX_PARKED,
    HPU_CTX_ABANDONED, /* the function gave its context up by hpu_ctx_abandon() */
    HPU_CTX_FAULTED,   /* a fault happened in expendable code, and the context was given up */
    /* the context was given up in such code since its time was over (watchdog.h) */
    HPU_CTX_OVERDUE
};

/* hpu_pool_create() maps `max_contexts` (1 to PTL_NUM_HPUS) stacks of at least `stack_size` bytes,
 * with a guard page below and above each. NULL, with errno set, if it cannot. The kernel provides
 * memory as it is touched. */
struct hpu_pool *hpu_pool_create(unsigned max_contexts, size_t stack_size);

/* hpu_pool_destroy() unmaps the stacks; no context may be in use. NULL is legal. */
void hpu_pool_destroy(struct hpu_pool *pool);

/* hpu_pool_in_use() returns the number of contexts in use. */
unsigned hpu_pool_in_use(const struct hpu_pool *pool);

/* hpu_ctx_get() takes a free context, or returns NULL; hpu_ctx_get_of() takes one whose slot has
 * its bit set in `slots`. */
struct hpu_ctx *hpu_ctx_get(struct hpu_pool *pool);
struct hpu_ctx *hpu_ctx_get_of(struct hpu_pool *pool, uint64_t slots);

/* hpu_ctx_put() gives back a context that is not suspended. */
void hpu_ctx_put(struct hpu_ctx *ctx);

/* hpu_ctx_slot() returns the number of a context in its pool. */
unsigned hpu_ctx_slot(const struct hpu_ctx *ctx);

/* hpu_ctx_stack() returns the lowest byte of a context's stack, which has *size bytes;
 * hpu_ctx_guard() returns the guard, which describes the fault that gave the context up. */
void *hpu_ctx_stack(const struct hpu_ctx *ctx, size_t *size);
static inline const struct fault_guard *hpu_ctx_guard(const struct hpu_ctx *ctx);

/* hpu_ctx_start() runs function(arg) on the context until it returns, suspends
 * itself or is given up. */
enum hpu_ctx_exit hpu_ctx_start(struct hpu_ctx *ctx, void (*function)(void *), void *arg);

/* hpu_ctx_resume() continues a suspended context on the calling thread. If the thread on which it
 * was suspended has not left its stack yet, it waits for that. */
enum hpu_ctx_exit hpu_ctx_resume(struct hpu_ctx *ctx);

/* hpu_ctx_cancel() gives up a suspended context. */
void hpu_ctx_cancel(struct hpu_ctx *ctx);

/* ---- Called on a context ---- */

/* The first part of a context. The functions below read it in each call that a handler makes, so
 * they are inline. */
struct hpu_ctx_head {
    struct fault_guard guard;
    void (*function)(void *);
    void *arg;
};

static inline const struct fault_guard *hpu_ctx_guard(const struct hpu_ctx *ctx)
{
    return &((const struct hpu_ctx_head *)ctx)->guard;
}

/* hpu_ctx_current() returns the context that the calling code runs on, or NULL. It reads the
 * thread-local variable by assembler: the compiler would keep the variable's address across a
 * switch, after which the code may run on another thread. */
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

/* hpu_ctx_arg() returns the `arg` of the context that the calling code runs on, if that was started
 * with `function`; else NULL. */
static inline void *hpu_ctx_arg(void (*function)(void *))
{
    const struct hpu_ctx_head *head = (const struct hpu_ctx_head *)hpu_ctx_current();
    return head != NULL && head->function == function ? head->arg : NULL;
}

/* hpu_ctx_suspend() switches from the context back to its thread; it returns when the context is
 * resumed. */
void hpu_ctx_suspend(struct hpu_ctx *ctx);

/* hpu_ctx_abandon() gives up the context that the calling code runs on: all on its stack is
 * lost. */
_Noreturn void hpu_ctx_abandon(struct hpu_ctx *ctx);

/* hpu_ctx_set_expendable() sets whether a fault from now on gives up the context (1) or goes to the
 * signal handler that the program has installed (0). */
static inline void hpu_ctx_set_expendable(struct hpu_ctx *ctx, int expendable)
{
    atomic_signal_fence(memory_order_seq_cst);
    ((struct hpu_ctx_head *)ctx)->guard.armed = expendable;
    atomic_signal_fence(memory_order_seq_cst);
}

/* hpu_ctx_overdue() says whether the time of the function on the context is over. */
static inline bool hpu_ctx_overdue(const struct hpu_ctx *ctx)
{
    return fault_guard_overdue(&((const struct hpu_ctx_head *)ctx)->guard);
}

/* hpu_ctx_new_turn() gives the function on the context its whole time again. */
static inline void hpu_ctx_new_turn(struct hpu_ctx *ctx)
{
    fault_guard_next(&((struct hpu_ctx_head *)ctx)->guard);
}

/* hpu_ctx_end() ends the time of the function on the context, if one runs there. Any thread may
 * call it while the context cannot be put back. */
void hpu_ctx_end(struct hpu_ctx *ctx);

/* ---- For watchdog.c ---- */

struct hpu_watchdog;

/* hpu_pool_contexts() returns the number of contexts, hpu_pool_guard() the guard of the i-th one,
 * which the watchdog reads; its `turn` is odd while the context runs. */
unsigned hpu_pool_contexts(const struct hpu_pool *pool);
struct fault_guard *hpu_pool_guard(struct hpu_pool *pool, unsigned i);

/* hpu_pool_set_watchdog() sets the watchdog that is woken, if it sleeps, when a context starts or
 * is resumed; NULL: none. No context may be running. */
void hpu_pool_set_watchdog(struct hpu_pool *pool, struct hpu_watchdog *watchdog);

#endif
