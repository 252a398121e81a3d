/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see context.h.
 *
 * - A context loops in hpu_ctx_main(): between two functions it stays switched out
 *   at the end of its loop, so to start the next one takes only a switch.
 * - Only the stack of a context that was given up is built anew, by the next hpu_ctx_get().
 * - A context may be suspended on thread A and resumed on thread B, and B may learn of it before
 *   A has left the stack. So A writes `parked` last, after it has left, and B waits for that.
 * - On a context, thread-local variables are read only in functions that do not
 *   switch, or as hpu_ctx_current() does: a compiler may keep their address across a switch,
 *   after which it can be another thread's.
 */
#include "hpu/context.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/sys.h"
#include "hpu/sanitize.h"
#include "hpu/switch_x86_64.h"
#include "hpu/watchdog.h"
#include "spin_handler.h"

#define PAGE ((size_t)4096)

_Noreturn void hpu_ctx_main(struct switch_point *point);

struct hpu_ctx {
    struct hpu_ctx_head head; /* first */
    /* where the context was switched out; sp is NULL: its stack was given up */
    struct switch_point point;
    struct switch_point thread; /* where the thread that runs the context was */
    struct switch_modes modes, thread_modes;
    enum hpu_ctx_exit exit;
    atomic_bool parked;
    bool cancelled;
    bool visited; /* it has run since its stack was built */
    unsigned slot;
    struct hpu_pool *pool;
    char *stack; /* lowest byte */
    size_t stack_size;

    /* State of the sanitizers. */
    void *fake_stack;
    const void *thread_stack;
    size_t thread_stack_size;
    void *fiber, *thread_fiber;
    unsigned valgrind_id;
};

struct hpu_pool {
    uint64_t free; /* a bit for each free context */
    struct hpu_watchdog *_Atomic watchdog;
    unsigned count;
    char *mapping;
    size_t mapping_length;
    struct hpu_ctx ctx[];
};

_Static_assert(PTL_NUM_HPUS == 64, "free contexts are the bits of one word");

/* hpu_ctx_current() names the variable in assembler code, which link-time optimisation does not
 * see. */
#if defined(__clang__)
#define NAMED_IN_ASSEMBLER __attribute__((used))
#else
#define NAMED_IN_ASSEMBLER __attribute__((used, externally_visible))
#endif
NAMED_IN_ASSEMBLER _Thread_local struct hpu_ctx *hpu_thread_ctx
    __attribute__((tls_model("initial-exec")));

void *hpu_ctx_stack(const struct hpu_ctx *ctx, size_t *size)
{
    *size = ctx->stack_size;
    return ctx->stack;
}

unsigned hpu_ctx_slot(const struct hpu_ctx *ctx)
{
    return ctx->slot;
}

void hpu_ctx_end(struct hpu_ctx *ctx)
{
    uint64_t turn = atomic_load_explicit(&ctx->head.guard.turn, memory_order_acquire);
    if ((turn & 1) != 0) {
        fault_end(&ctx->head.guard, turn);
    }
}

unsigned hpu_pool_contexts(const struct hpu_pool *pool)
{
    return pool->count;
}

struct fault_guard *hpu_pool_guard(struct hpu_pool *pool, unsigned i)
{
    return &pool->ctx[i].head.guard;
}

void hpu_pool_set_watchdog(struct hpu_pool *pool, struct hpu_watchdog *watchdog)
{
    atomic_store(&pool->watchdog, watchdog);
}

/* ---- Switching ---- */

/* Called on a thread: runs the context until it leaves. */
static enum hpu_ctx_exit enter(struct hpu_ctx *ctx)
{
    void *fake_stack = NULL;
    struct hpu_ctx *outer = hpu_thread_ctx;
    hpu_thread_ctx = ctx;
    struct fault_guard *outer_guard = fault_set_guard(&ctx->head.guard);
    ctx->visited = true;
    __atomic_store_n(&ctx->head.guard.thread, fault_thread_id(), __ATOMIC_RELAXED);
    fault_guard_turn(&ctx->head.guard);
    hpu_watchdog_note(atomic_load_explicit(&ctx->pool->watchdog, memory_order_relaxed));
    ctx->thread_fiber = fiber_current();
    modes_save(&ctx->thread_modes);
    modes_change(&ctx->thread_modes, &ctx->modes);
    asan_leave(&fake_stack, ctx->stack, ctx->stack_size);
    fiber_switch(ctx->fiber);
    switch_stacks(&ctx->thread, &ctx->point);
    asan_arrive(fake_stack, NULL, NULL);
    fault_guard_turn(&ctx->head.guard);
    fault_set_guard(outer_guard);
    hpu_thread_ctx = outer;
    enum hpu_ctx_exit exit = ctx->exit;
    if (exit == HPU_CTX_PARKED) {
        atomic_store_explicit(&ctx->parked, true, memory_order_release);
    }
    return exit;
}

/* Called on the context: switches back to the thread. */
static inline void leave(struct hpu_ctx *ctx, enum hpu_ctx_exit exit, bool for_good)
{
    ctx->exit = exit;
    modes_load(&ctx->thread_modes);
    asan_leave(for_good ? NULL : &ctx->fake_stack, ctx->thread_stack, ctx->thread_stack_size);
    fiber_switch(ctx->thread_fiber);
    switch_stacks(&ctx->point, &ctx->thread);
    asan_arrive(ctx->fake_stack, &ctx->thread_stack, &ctx->thread_stack_size);
}

void hpu_ctx_main(struct switch_point *point)
{
    struct hpu_ctx *ctx = container_of(point, struct hpu_ctx, point);
    asan_arrive(NULL, &ctx->thread_stack, &ctx->thread_stack_size);
    while (ctx->head.function != NULL) {
        ctx->head.function(ctx->head.arg);
        ctx->head.guard.armed = 0;
        ctx->modes = switch_modes_default; /* for the next function */
        leave(ctx, HPU_CTX_DONE, false);
    }
    leave(ctx, HPU_CTX_ABANDONED, true);
    __builtin_unreachable();
}

void hpu_ctx_abandon(struct hpu_ctx *ctx)
{
    ctx->head.guard.armed = 0;
    leave(ctx, HPU_CTX_ABANDONED, true);
    __builtin_unreachable();
}

/* A fault lands here, on the stack of the context that it happened on. The floating-point unit may
 * be in any state. */
static void on_fault(struct fault_guard *guard)
{
    __asm__ volatile("fninit");
    modes_load(&switch_modes_default);
    struct hpu_ctx *ctx = container_of(guard, struct hpu_ctx, head.guard);
    asan_forget(ctx->stack, ctx->stack_size);
    leave(ctx, guard->signal == FAULT_OVERDUE ? HPU_CTX_OVERDUE : HPU_CTX_FAULTED, true);
    __builtin_unreachable();
}

void hpu_ctx_suspend(struct hpu_ctx *ctx)
{
    modes_save(&ctx->modes);
    leave(ctx, HPU_CTX_PARKED, false);
    if (ctx->cancelled) {
        hpu_ctx_abandon(ctx);
    }
}

enum hpu_ctx_exit hpu_ctx_start(struct hpu_ctx *ctx, void (*function)(void *), void *arg)
{
    ctx->head.function = function;
    ctx->head.arg = arg;
    /* Without a signal stack the thread can still run handlers, but a stack overflow kills the
     * process. */
    (void)fault_thread_stack();
    return enter(ctx);
}

static void await_parked(struct hpu_ctx *ctx)
{
    for (unsigned turn = 0; !atomic_load_explicit(&ctx->parked, memory_order_acquire); turn++) {
        if (turn < 100) {
            cpu_pause();
        } else {
            sys_yield();
        }
    }
    atomic_store_explicit(&ctx->parked, false, memory_order_relaxed);
}

enum hpu_ctx_exit hpu_ctx_resume(struct hpu_ctx *ctx)
{
    (void)fault_thread_stack();
    await_parked(ctx);
    return enter(ctx);
}

void hpu_ctx_cancel(struct hpu_ctx *ctx)
{
    await_parked(ctx);
    ctx->cancelled = true;
    enter(ctx);
}

/* ---- The pool ---- */

static void build_stack(struct hpu_ctx *ctx)
{
    asan_forget(ctx->stack, ctx->stack_size);
    ctx->point = (struct switch_point){.sp = ctx->stack + ctx->stack_size, .ip = hpu_switch_begin};
    ctx->modes = switch_modes_default;
    ctx->fake_stack = NULL;
    ctx->cancelled = false;
    if (ctx->fiber != NULL) {
        fiber_destroy(ctx->fiber);
        ctx->fiber = NULL;
    }
}

struct hpu_pool *hpu_pool_create(unsigned max_contexts, size_t stack_size)
{
    if (max_contexts < 1 || max_contexts > PTL_NUM_HPUS || stack_size > SIZE_MAX / 128) {
        errno = EINVAL;
        return NULL;
    }
    stack_size = (stack_size + PAGE - 1) & ~(PAGE - 1);
    size_t stride = PAGE + stack_size;
    struct hpu_pool *pool = calloc(1, sizeof(*pool) + max_contexts * sizeof(struct hpu_ctx));
    if (pool == NULL) {
        return NULL;
    }
    pool->count = max_contexts;
    pool->mapping_length = max_contexts * stride + PAGE;
    pool->mapping = mmap(NULL, pool->mapping_length, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (pool->mapping == MAP_FAILED) {
        free(pool);
        return NULL;
    }
    for (unsigned i = 0; i < max_contexts; i++) {
        struct hpu_ctx *ctx = &pool->ctx[i];
        ctx->slot = i;
        ctx->pool = pool;
        ctx->stack = pool->mapping + i * stride + PAGE;
        ctx->stack_size = stack_size;
        ctx->head.guard.landing = on_fault;
        ctx->head.guard.stack = ctx->stack + stack_size;
        if (mprotect(ctx->stack, stack_size, PROT_READ | PROT_WRITE) != 0) {
            hpu_pool_destroy(pool);
            return NULL;
        }
        ctx->valgrind_id = valgrind_stack_register(ctx->stack, stack_size);
        pool->free |= UINT64_C(1) << i;
    }
    return pool;
}

void hpu_pool_destroy(struct hpu_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (unsigned i = 0; i < pool->count; i++) {
        struct hpu_ctx *ctx = &pool->ctx[i];
        if (!(pool->free >> i & 1)) {
            continue;
        }
        if (ctx->visited) {
            /* Lets the loop of hpu_ctx_main() end, so that ASan frees what it keeps for the
             * stack. */
            ctx->head.function = NULL;
            enter(ctx);
        }
        if (ctx->fiber != NULL) {
            fiber_destroy(ctx->fiber);
        }
        valgrind_stack_deregister(ctx->valgrind_id);
    }
    int error = errno;
    munmap(pool->mapping, pool->mapping_length);
    free(pool);
    errno = error;
}

unsigned hpu_pool_in_use(const struct hpu_pool *pool)
{
    return pool->count - (unsigned)__builtin_popcountll(pool->free);
}

struct hpu_ctx *hpu_ctx_get(struct hpu_pool *pool)
{
    return hpu_ctx_get_of(pool, ~UINT64_C(0));
}

struct hpu_ctx *hpu_ctx_get_of(struct hpu_pool *pool, uint64_t slots)
{
    uint64_t free = pool->free & slots;
    if (free == 0) {
        return NULL;
    }
    /* Takes the lowest free context, since its stack is the likeliest to be in the cache. */
    struct hpu_ctx *ctx = &pool->ctx[__builtin_ctzll(free)];
    pool->free &= ~(free & -free);
    if (ctx->point.sp == NULL) {
        build_stack(ctx);
        ctx->fiber = fiber_create();
    }
    return ctx;
}

void hpu_ctx_put(struct hpu_ctx *ctx)
{
    if (ctx->exit != HPU_CTX_DONE) {
        ctx->point.sp = NULL;
        ctx->visited = false;
    }
    ctx->pool->free |= UINT64_C(1) << ctx->slot;
}
