/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: switching, suspending on one thread and resuming on another, the pool. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cmocka.h>

#include "hpu/context.h"
#include "spin_handler.h"

#define STACK ((size_t)65536)

static void count_one(void *arg)
{
    ++*(int *)arg;
}

static void runs_to_the_end(void **state)
{
    (void)state;
    int count = 0;
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    assert_non_null(pool);
    struct hpu_ctx *ctx = hpu_ctx_get(pool);
    assert_null(hpu_ctx_current());
    for (int i = 1; i <= 1000; i++) {
        assert_int_equal(hpu_ctx_start(ctx, count_one, &count), HPU_CTX_DONE);
        assert_int_equal(count, i);
    }
    hpu_ctx_put(ctx);
    hpu_pool_destroy(pool);
    hpu_pool_destroy(NULL);
}

static void pool_hands_out_each_slot_once(void **state)
{
    (void)state;
    struct hpu_ctx *ctx[PTL_NUM_HPUS];
    uint64_t seen = 0;
    struct hpu_pool *pool = hpu_pool_create(PTL_NUM_HPUS, STACK);
    assert_non_null(pool);
    for (unsigned i = 0; i < PTL_NUM_HPUS; i++) {
        ctx[i] = hpu_ctx_get(pool);
        assert_non_null(ctx[i]);
        seen |= UINT64_C(1) << hpu_ctx_slot(ctx[i]);
        assert_int_equal(hpu_pool_in_use(pool), i + 1);
    }
    assert_true(seen == UINT64_MAX);
    assert_null(hpu_ctx_get(pool));
    hpu_ctx_put(ctx[17]);
    assert_ptr_equal(hpu_ctx_get(pool), ctx[17]);
    for (unsigned i = 0; i < PTL_NUM_HPUS; i++) {
        hpu_ctx_put(ctx[i]);
    }
    assert_int_equal(hpu_pool_in_use(pool), 0);
    hpu_pool_destroy(pool);

    errno = 0;
    assert_null(hpu_pool_create(0, STACK));
    assert_int_equal(errno, EINVAL);
    assert_null(hpu_pool_create(PTL_NUM_HPUS + 1, STACK));
    assert_null(hpu_pool_create(1, SIZE_MAX));
}

struct job {
    struct hpu_ctx *ctx;
    int turns, done;
    double value;
};

/* Keeps locals in registers across its suspensions. */
static void suspend_often(void *arg)
{
    struct job *job = arg;
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    double x = 0.5;
    for (int i = 0; i < job->turns; i++) {
        hpu_ctx_suspend(job->ctx);
        a += 1, b += a, c ^= b, d += c, e ^= d, f += e;
        x += 1;
        job->done++;
    }
    uint64_t a2 = 1, b2 = 2, c2 = 3, d2 = 4, e2 = 5, f2 = 6;
    for (int i = 0; i < job->turns; i++) {
        a2 += 1, b2 += a2, c2 ^= b2, d2 += c2, e2 ^= d2, f2 += e2;
    }
    job->value = f == f2 ? x : -1;
}

static void hundred_thousand_switches(void **state)
{
    (void)state;
    struct hpu_pool *pool = hpu_pool_create(3, STACK);
    struct job jobs[3];
    const int turns = 35000;
    for (int i = 0; i < 3; i++) {
        jobs[i] = (struct job){.ctx = hpu_ctx_get(pool), .turns = turns};
        assert_int_equal(hpu_ctx_start(jobs[i].ctx, suspend_often, &jobs[i]), HPU_CTX_PARKED);
    }
    for (int turn = 1; turn <= turns; turn++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(hpu_ctx_resume(jobs[i].ctx),
                             turn == turns ? HPU_CTX_DONE : HPU_CTX_PARKED);
            assert_int_equal(jobs[i].done, turn);
        }
    }
    for (int i = 0; i < 3; i++) {
        assert_true(jobs[i].value == turns + 0.5);
        hpu_ctx_put(jobs[i].ctx);
    }
    hpu_pool_destroy(pool);
}

enum { TO_NEAREST, DOWN, UP };

/* Rounding of both floating-point units; -1: they differ. */
static int rounding(void)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    int sse = (int)_MM_GET_ROUNDING_MODE() >> 13;
    return sse == (x87 >> 10 & 3) ? sse : -1;
}

static void set_rounding(int mode)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    x87 = (uint16_t)((x87 & ~0xc00) | mode << 10);
    __asm__ volatile("fldcw %0" : : "m"(x87));
    _MM_SET_ROUNDING_MODE((unsigned)mode << 13);
}

static void round_up(void *arg)
{
    struct hpu_ctx *ctx = hpu_ctx_current();
    int *seen = arg;
    seen[0] = rounding();
    set_rounding(UP);
    hpu_ctx_suspend(ctx);
    seen[1] = rounding();
    set_rounding(TO_NEAREST);
}

static void rounding_mode_belongs_to_the_context(void **state)
{
    (void)state;
    int seen[2] = {-1, -1};
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    struct hpu_ctx *ctx = hpu_ctx_get(pool);
    set_rounding(DOWN);
    assert_int_equal(hpu_ctx_start(ctx, round_up, seen), HPU_CTX_PARKED);
    assert_int_equal(rounding(), DOWN);
    assert_int_equal(seen[0], TO_NEAREST);
    assert_int_equal(hpu_ctx_resume(ctx), HPU_CTX_DONE);
    assert_int_equal(seen[1], UP);
    assert_int_equal(rounding(), DOWN);
    set_rounding(TO_NEAREST);
    hpu_ctx_put(ctx);
    hpu_pool_destroy(pool);
}

static void note_and_round_up(void *arg)
{
    *(int *)arg = rounding();
    set_rounding(UP);
}

static void suspend_and_round_up(void *arg)
{
    hpu_ctx_suspend(hpu_ctx_current());
    note_and_round_up(arg);
}

/* Neither the thread nor the next function on the context sees what it leaves behind. */
static void rounding_mode_is_not_left_behind(void **state)
{
    (void)state;
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    struct hpu_ctx *ctx = hpu_ctx_get(pool);
    for (int mode = TO_NEAREST; mode <= UP; mode++) {
        int seen = -1;
        set_rounding(mode);
        assert_int_equal(hpu_ctx_start(ctx, note_and_round_up, &seen), HPU_CTX_DONE);
        assert_int_equal(seen, TO_NEAREST);
        assert_int_equal(rounding(), mode);
        seen = -1;
        assert_int_equal(hpu_ctx_start(ctx, suspend_and_round_up, &seen), HPU_CTX_PARKED);
        assert_int_equal(rounding(), mode);
        assert_int_equal(hpu_ctx_resume(ctx), HPU_CTX_DONE);
        assert_int_equal(seen, TO_NEAREST);
        assert_int_equal(rounding(), mode);
    }
    set_rounding(TO_NEAREST);
    hpu_ctx_put(ctx);
    hpu_pool_destroy(pool);
}

/* Misaligned, the compiler's aligned stores to the local would fault. */
static void use_most_of_the_stack(void *arg)
{
    volatile _Alignas(16) char room[STACK * 3 / 4];
    for (size_t i = 0; i < sizeof(room); i += 64) {
        room[i] = 1;
    }
    *(uintptr_t *)arg = (uintptr_t)room % 16;
}

static void stack_is_aligned_and_as_large_as_asked(void **state)
{
    (void)state;
    uintptr_t misalignment = 1;
    struct hpu_pool *pool = hpu_pool_create(2, STACK);
    struct hpu_ctx *ctx[2] = {hpu_ctx_get(pool), hpu_ctx_get(pool)};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hpu_ctx_start(ctx[i % 2], use_most_of_the_stack, &misalignment),
                         HPU_CTX_DONE);
        assert_int_equal(misalignment, 0);
    }
    hpu_ctx_put(ctx[0]);
    hpu_ctx_put(ctx[1]);
    hpu_pool_destroy(pool);
}

static int abandon_below(int depth)
{
    volatile char frame[200];
    frame[depth] = 1;
    if (depth == 0) {
        hpu_ctx_abandon(hpu_ctx_current());
    }
    return depth > 0 ? abandon_below(depth - 1) + frame[depth] : 0;
}

static void abandon_deep(void *arg)
{
    *(int *)arg = abandon_below(50) + 1; /* never */
}

static void suspend_once(void *arg)
{
    hpu_ctx_suspend(hpu_ctx_current());
    *(int *)arg = 1;
}

static void abandoned_and_cancelled_contexts_are_reused(void **state)
{
    (void)state;
    int reached = 0, count = 0;
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    for (int i = 1; i <= 100; i++) {
        struct hpu_ctx *ctx = hpu_ctx_get(pool);
        assert_non_null(ctx);
        if (i % 2 == 0) {
            assert_int_equal(hpu_ctx_start(ctx, abandon_deep, &reached), HPU_CTX_ABANDONED);
        } else {
            assert_int_equal(hpu_ctx_start(ctx, suspend_once, &reached), HPU_CTX_PARKED);
            hpu_ctx_cancel(ctx);
        }
        assert_int_equal(reached, 0);
        hpu_ctx_put(ctx);
        ctx = hpu_ctx_get(pool);
        assert_int_equal(hpu_ctx_start(ctx, count_one, &count), HPU_CTX_DONE);
        assert_int_equal(count, i);
        hpu_ctx_put(ctx);
    }
    hpu_pool_destroy(pool);
}

struct outer {
    struct hpu_pool *pool;
    int seen;
};

static void start_another(void *arg)
{
    struct outer *outer = arg;
    struct hpu_ctx *self = hpu_ctx_current(), *inner = hpu_ctx_get(outer->pool);
    if (hpu_ctx_start(inner, suspend_once, &outer->seen) == HPU_CTX_PARKED &&
        hpu_ctx_current() == self && hpu_ctx_arg(start_another) == arg &&
        hpu_ctx_arg(suspend_once) == NULL && hpu_ctx_resume(inner) == HPU_CTX_DONE) {
        outer->seen++;
    }
    hpu_ctx_put(inner);
}

static void a_context_may_run_another(void **state)
{
    (void)state;
    struct hpu_pool *pool = hpu_pool_create(2, STACK);
    struct outer outer = {.pool = pool};
    struct hpu_ctx *ctx = hpu_ctx_get(pool);
    assert_int_equal(hpu_ctx_start(ctx, start_another, &outer), HPU_CTX_DONE);
    assert_int_equal(outer.seen, 2);
    assert_null(hpu_ctx_arg(start_another));
    hpu_ctx_put(ctx);
    hpu_pool_destroy(pool);
}

/* ---- Two threads ---- */

/* The context announces itself before it suspends, so that the other thread may try
 * to resume it while it still runs here. */
struct relay {
    _Atomic(struct hpu_ctx *) next; /* about to be suspended: to be resumed by anyone */
    atomic_bool stop;
    int laps;
    int bad;
};

static void run_laps(void *arg)
{
    struct relay *relay = arg;
    struct hpu_ctx *ctx = hpu_ctx_current();
    for (int i = 0; i < 20000; i++) {
        relay->laps++;
        atomic_store_explicit(&relay->next, ctx, memory_order_release);
        hpu_ctx_suspend(ctx);
        if (hpu_ctx_current() != ctx) {
            relay->bad++;
        }
    }
    atomic_store(&relay->stop, true);
}

static void *resume_whatever_comes(void *arg)
{
    struct relay *relay = arg;
    while (!atomic_load(&relay->stop)) {
        struct hpu_ctx *ctx = atomic_exchange_explicit(&relay->next, NULL, memory_order_acquire);
        if (ctx != NULL) {
            hpu_ctx_resume(ctx);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void suspended_here_resumed_there(void **state)
{
    (void)state;
    struct relay relay = {.laps = 0};
    pthread_t threads[2];
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    struct hpu_ctx *ctx = hpu_ctx_get(pool);
    assert_int_equal(hpu_ctx_start(ctx, run_laps, &relay), HPU_CTX_PARKED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, resume_whatever_comes, &relay), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(relay.laps, 20000);
    assert_int_equal(relay.bad, 0);
    hpu_ctx_put(ctx);
    hpu_pool_destroy(pool);
}

struct early {
    struct hpu_ctx *ctx;
    atomic_bool announced, arrived;
    int laps;
};

/* Leaves its thread long after another has begun to resume it. */
static void announce_and_linger(void *arg)
{
    struct early *early = arg;
    for (int i = 0; i < 20; i++) {
        early->laps++;
        atomic_store(&early->arrived, false);
        atomic_store(&early->announced, true);
        while (!atomic_load(&early->arrived)) {
            sched_yield();
        }
        usleep(200);
        hpu_ctx_suspend(early->ctx);
    }
    early->laps = -early->laps;
    atomic_store(&early->announced, true);
}

static void *resume_when_announced(void *arg)
{
    struct early *early = arg;
    enum hpu_ctx_exit last = HPU_CTX_PARKED;
    for (;;) {
        while (!atomic_exchange(&early->announced, false)) {
            sched_yield();
        }
        if (early->laps < 0) {
            atomic_store(&early->announced, true);
            break;
        }
        atomic_store(&early->arrived, true);
        last = hpu_ctx_resume(early->ctx);
    }
    return last == HPU_CTX_DONE ? arg : NULL;
}

static void resumed_before_it_has_left(void **state)
{
    (void)state;
    pthread_t threads[2];
    int ended = 0;
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    struct early early = {.ctx = hpu_ctx_get(pool)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, resume_when_announced, &early), 0);
    }
    assert_int_equal(hpu_ctx_start(early.ctx, announce_and_linger, &early), HPU_CTX_PARKED);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ended += result != NULL;
    }
    assert_int_equal(early.laps, -20);
    assert_int_equal(ended, 1);
    hpu_ctx_put(early.ctx);
    hpu_pool_destroy(pool);
}

static void *resume_to_the_end(void *arg)
{
    struct job *job = arg;
    assert_int_equal(hpu_ctx_resume(job->ctx), HPU_CTX_DONE);
    return NULL;
}

/* Each context changes threads for certain. */
static void handed_over(void **state)
{
    (void)state;
    struct hpu_pool *pool = hpu_pool_create(1, STACK);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        struct job job = {.ctx = hpu_ctx_get(pool), .turns = 1};
        assert_int_equal(hpu_ctx_start(job.ctx, suspend_often, &job), HPU_CTX_PARKED);
        assert_int_equal(pthread_create(&thread, NULL, resume_to_the_end, &job), 0);
        pthread_join(thread, NULL);
        assert_true(job.value == 1.5);
        hpu_ctx_put(job.ctx);
    }
    hpu_pool_destroy(pool);
}

struct crowd {
    struct hpu_pool *pool;
    pthread_mutex_t lock; /* of the pool */
    atomic_int inside[4];
    atomic_int clashes, empty;
};

static void occupy(void *arg)
{
    struct crowd *crowd = arg;
    unsigned slot = hpu_ctx_slot(hpu_ctx_current());
    if (atomic_fetch_add(&crowd->inside[slot], 1) != 0) {
        atomic_fetch_add(&crowd->clashes, 1);
    }
    atomic_fetch_sub(&crowd->inside[slot], 1);
}

static void *take_and_give(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&crowd->lock);
        struct hpu_ctx *ctx = hpu_ctx_get(crowd->pool);
        pthread_mutex_unlock(&crowd->lock);
        if (ctx == NULL) {
            atomic_fetch_add(&crowd->empty, 1);
            continue;
        }
        hpu_ctx_start(ctx, occupy, crowd);
        pthread_mutex_lock(&crowd->lock);
        hpu_ctx_put(ctx);
        pthread_mutex_unlock(&crowd->lock);
    }
    return NULL;
}

static void threads_share_a_pool(void **state)
{
    (void)state;
    struct crowd crowd = {.pool = hpu_pool_create(2, STACK), .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &crowd), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(crowd.clashes, 0);
    assert_int_equal(hpu_pool_in_use(crowd.pool), 0);
    hpu_pool_destroy(crowd.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_to_the_end),
        cmocka_unit_test(pool_hands_out_each_slot_once),
        cmocka_unit_test(hundred_thousand_switches),
        cmocka_unit_test(rounding_mode_belongs_to_the_context),
        cmocka_unit_test(rounding_mode_is_not_left_behind),
        cmocka_unit_test(stack_is_aligned_and_as_large_as_asked),
        cmocka_unit_test(abandoned_and_cancelled_contexts_are_reused),
        cmocka_unit_test(a_context_may_run_another),
        cmocka_unit_test(suspended_here_resumed_there),
        cmocka_unit_test(resumed_before_it_has_left),
        cmocka_unit_test(handed_over),
        cmocka_unit_test(threads_share_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
