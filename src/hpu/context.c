/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see context.h.
 *
 * - A context loops in hpu_ctx_main(): between two functions it stays switched out
 *   at the end of its loop, so starting the next one is a switch and nothing else.
 * - Only a stack that was given up is built anew, by the one who puts the context
 *   back.
 * - Suspended on thread A, resumed on thread B: whoever asked A to suspend may tell
 *   B before A has left the stack. `parked` is the last thing that A writes after
 *   leaving, and B waits for it.
 * - On a context, thread-local variables are read only in functions that do not
 *   switch: a compiler may keep their address across a switch, after which it can be
 *   another thread's.
 */
#include "hpu/context.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "base/list.h"
#include "base/sys.h"
#include "hpu/sanitize.h"
#include "spin_handler.h"

#define PAGE ((size_t)4096)

/* switch_x86_64.S */
void hpu_switch_in(void **save, void *to);
void hpu_switch_out(void **save, void *to);
void hpu_switch_begin(void);
_Noreturn void hpu_ctx_main(struct hpu_ctx *ctx);

struct hpu_ctx {
    void *sp;        /* where it was switched out; NULL: its stack was given up */
    void *thread_sp; /* where the thread that runs it was */
    struct fault_guard guard;
    void (*function)(void *);
    void *arg;
    enum hpu_ctx_exit exit;
    atomic_bool parked;
    bool cancelled;
    unsigned slot;
    struct hpu_pool *pool;
    char *stack; /* lowest byte */
    size_t stack_size;

    /* For the checking tools. */
    bool visited; /* it has run since its stack was built */
    void *fake_stack;
    const void *thread_stack;
    size_t thread_stack_size;
    void *fiber, *thread_fiber;
    unsigned valgrind_id;
};

struct hpu_pool {
    atomic_uint_least64_t free; /* a bit for each free context */
    unsigned count;
    char *mapping;
    size_t mapping_length;
    struct hpu_ctx ctx[];
};

_Static_assert(PTL_NUM_HPUS == 64, "free contexts are the bits of one word");

/* What hpu_switch_...() leaves on a stack. */
struct switch_frame {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t unused;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    void (*rip)(void);
};

_Static_assert(sizeof(struct switch_frame) == 64, "switch_x86_64.S pushes 64 bytes");

/* The ABI's values at the start of a process. */
#define MXCSR_DEFAULT 0x1f80
#define X87_CONTROL_DEFAULT 0x37f

static _Thread_local struct hpu_ctx *thread_ctx __attribute__((tls_model("initial-exec")));

__attribute__((noinline)) struct hpu_ctx *hpu_ctx_current(void)
{
    __asm__ volatile("");
    return thread_ctx;
}

void *hpu_ctx_arg(void (*function)(void *))
{
    struct hpu_ctx *ctx = hpu_ctx_current();
    return ctx != NULL && ctx->function == function ? ctx->arg : NULL;
}

unsigned hpu_ctx_slot(const struct hpu_ctx *ctx)
{
    return ctx->slot;
}

void hpu_ctx_set_expendable(struct hpu_ctx *ctx, int expendable)
{
    atomic_signal_fence(memory_order_seq_cst);
    ctx->guard.armed = expendable;
    atomic_signal_fence(memory_order_seq_cst);
}

/* ---- Switching ---- */

/* On the thread: runs the context until it leaves. */
static enum hpu_ctx_exit enter(struct hpu_ctx *ctx)
{
    void *fake_stack = NULL;
    struct hpu_ctx *outer = thread_ctx;
    thread_ctx = ctx;
    struct fault_guard *outer_guard = fault_set_guard(&ctx->guard);
    ctx->visited = true;
    ctx->thread_fiber = fiber_current();
    asan_leave(&fake_stack, ctx->stack, ctx->stack_size);
    fiber_switch(ctx->fiber);
    hpu_switch_in(&ctx->thread_sp, ctx->sp);
    asan_arrive(fake_stack, NULL, NULL);
    fault_set_guard(outer_guard);
    thread_ctx = outer;
    enum hpu_ctx_exit exit = ctx->exit;
    if (exit == HPU_CTX_PARKED) {
        atomic_store_explicit(&ctx->parked, true, memory_order_release);
    }
    return exit;
}

/* On the context: goes back to the thread. */
static void leave(struct hpu_ctx *ctx, enum hpu_ctx_exit exit, bool for_good)
{
    ctx->exit = exit;
    asan_leave(for_good ? NULL : &ctx->fake_stack, ctx->thread_stack, ctx->thread_stack_size);
    fiber_switch(ctx->thread_fiber);
    hpu_switch_out(&ctx->sp, ctx->thread_sp);
    asan_arrive(ctx->fake_stack, &ctx->thread_stack, &ctx->thread_stack_size);
}

void hpu_ctx_main(struct hpu_ctx *ctx)
{
    asan_arrive(NULL, &ctx->thread_stack, &ctx->thread_stack_size);
    while (ctx->function != NULL) {
        ctx->function(ctx->arg);
        ctx->guard.armed = 0;
        leave(ctx, HPU_CTX_DONE, false);
    }
    leave(ctx, HPU_CTX_ABANDONED, true);
    __builtin_unreachable();
}

void hpu_ctx_abandon(struct hpu_ctx *ctx)
{
    ctx->guard.armed = 0;
    leave(ctx, HPU_CTX_ABANDONED, true);
    __builtin_unreachable();
}

/* A fault lands here, on top of the stack that it happened on, with whatever state
 * of the floating-point unit. */
static void on_fault(struct fault_guard *guard)
{
    static const uint32_t mxcsr = MXCSR_DEFAULT;
    __asm__ volatile("fninit\n\tldmxcsr %0" : : "m"(mxcsr));
    struct hpu_ctx *ctx = container_of(guard, struct hpu_ctx, guard);
    asan_forget(ctx->stack, ctx->stack_size);
    leave(ctx, HPU_CTX_FAULTED, true);
    __builtin_unreachable();
}

void hpu_ctx_suspend(struct hpu_ctx *ctx)
{
    leave(ctx, HPU_CTX_PARKED, false);
    if (ctx->cancelled) {
        hpu_ctx_abandon(ctx);
    }
}

enum hpu_ctx_exit hpu_ctx_start(struct hpu_ctx *ctx, void (*function)(void *), void *arg)
{
    ctx->function = function;
    ctx->arg = arg;
    /* Without a signal stack a stack overflow kills the process, all else works. */
    (void)fault_thread_stack();
    return enter(ctx);
}

static void await_parked(struct hpu_ctx *ctx)
{
    for (unsigned turn = 0; !atomic_load_explicit(&ctx->parked, memory_order_acquire); turn++) {
        if (turn < 100) {
            cpu_pause();
        } else {
            sched_yield();
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
    /* Popped, the frame leaves the stack pointer at the top, a multiple of 16, as a
     * call wants it. */
    struct switch_frame *frame = (struct switch_frame *)(ctx->stack + ctx->stack_size) - 1;
    asan_forget(ctx->stack, ctx->stack_size);
    *frame = (struct switch_frame){
        .mxcsr = MXCSR_DEFAULT,
        .x87_control = X87_CONTROL_DEFAULT,
        .r12 = (uint64_t)(uintptr_t)ctx,
        .rip = hpu_switch_begin,
    };
    ctx->sp = frame;
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
        ctx->guard.landing = on_fault;
        ctx->guard.stack = ctx->stack + stack_size;
        if (mprotect(ctx->stack, stack_size, PROT_READ | PROT_WRITE) != 0) {
            hpu_pool_destroy(pool);
            return NULL;
        }
        ctx->valgrind_id = valgrind_stack_register(ctx->stack, stack_size);
        atomic_fetch_or(&pool->free, UINT64_C(1) << i);
    }
    return pool;
}

void hpu_pool_destroy(struct hpu_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    uint64_t free_bits = atomic_load(&pool->free);
    for (unsigned i = 0; i < pool->count; i++) {
        struct hpu_ctx *ctx = &pool->ctx[i];
        if (!(free_bits >> i & 1)) {
            continue;
        }
        if (ctx->visited) {
            /* Its loop ends, which gives ASan the chance to free what it keeps of it. */
            ctx->function = NULL;
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
    return pool->count - (unsigned)__builtin_popcountll(atomic_load(&pool->free));
}

struct hpu_ctx *hpu_ctx_get(struct hpu_pool *pool)
{
    /* The lowest one, whose stack is the warmest. */
    uint64_t bits = atomic_load_explicit(&pool->free, memory_order_relaxed);
    do {
        if (bits == 0) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &bits, bits & (bits - 1),
                                                    memory_order_acquire, memory_order_relaxed));
    struct hpu_ctx *ctx = &pool->ctx[__builtin_ctzll(bits)];
    if (ctx->sp == NULL) {
        build_stack(ctx);
        ctx->fiber = fiber_create();
    }
    return ctx;
}

void hpu_ctx_put(struct hpu_ctx *ctx)
{
    if (ctx->exit != HPU_CTX_DONE) {
        ctx->sp = NULL;
        ctx->visited = false;
    }
    atomic_fetch_or_explicit(&ctx->pool->free, UINT64_C(1) << ctx->slot, memory_order_release);
}
