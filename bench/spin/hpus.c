/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs that are threads, with handlers of work->size microseconds of computing.
 *
 *   invoke   rank 0 starts handlers of two contexts by PtlHandlersInvoke(), half of them
 *            each, and sleeps until all have ended
 *            hpus     two HPUs, a core each
 *            one      one HPU
 *   fair     rank 1 keeps a few handlers of a slow context waiting at its one HPU, while
 *            rank 0 now and then sends a message for a fast context, whose handler answers;
 *            extra: seconds until the answer, the median or the 95th percentile of a turn
 *            hpu      two contexts
 *            fifo     the messages go to the slow context's queue, as if there were no other
 *
 * What a handler has to do stands in its message. Computing is a loop of additions, timed
 * once, so that a thread that has to share its core takes longer for it.
 */
#include "jobs.h"

#include "spin_handler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AT_ONCE = 128, /* invocations under way: what PINWHEEL_HPU_QUEUE allows */
    BACKLOG = 8,   /* of the slow context, in `fair` */
    CONTEXTS = 2,  /* match bits SPIN_BITS, SPIN_BITS + SECOND */
    SECOND = 100,
    SLOW_ENDED = 0, /* user counter: of the slow handlers of `fair` */
    PINGS_MOST = 4096
};

struct order {
    uint64_t loops;
    uint64_t answer; /* 1: send an empty put to the other rank */
};

struct answer_state {
    ptl_process_t client;
};

static ptl_handle_me_t context[CONTEXTS];
static struct link_count ended[CONTEXTS];
static bool counters;
static uint64_t invoked; /* by `fair`, so far */
static double loops_per_us;
static double times[PINGS_MOST];
static uint64_t time_count;

/* ---- On the HPU ---- */

__handler static uint64_t compute(uint64_t loops)
{
    uint64_t sum = loops;
    for (uint64_t i = 0; i < loops; i++) {
        __asm__ volatile("" : "+r"(sum));
        sum += i;
    }
    return sum;
}

__handler static int work_handler(const ptl_payload_t p, void *state)
{
    const struct order *order = (const struct order *)p.base;
    const struct answer_state *s = state;
    compute(order->loops);
    if (order->answer == 0) {
        PtlHandlerCounterAdd(SLOW_ENDED, 1);
    }
    if (order->answer != 0 && PtlHandlerPutFromDevice(order, 0, PTL_NO_ACK_REQ, s->client,
                                                      SPIN_ANSWER, 0, NULL, 0) != PTL_OK) {
        return FAIL;
    }
    return SUCCESS;
}
PTL_HANDLER(work_handler);

/* ---- Entries ---- */

static void calibrate(void)
{
    enum { LOOPS = 2000000 };
    double best = 1;
    for (int i = 0; i < 5; i++) {
        double start = turn_now();
        compute(LOOPS);
        double took = turn_now() - start;
        best = took < best ? took : best;
    }
    loops_per_us = LOOPS / best / 1e6;
}

static struct order order_of(uint64_t us, bool answer)
{
    if (loops_per_us == 0) {
        calibrate();
    }
    return (struct order){.loops = (uint64_t)((double)us * loops_per_us), .answer = answer};
}

static int make_counters(void)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if ((!counters && link_counter(&ended[i]) != 0) || spin_settle(&ended[i]) != 0) {
            return -1;
        }
    }
    counters = true;
    return 0;
}

static int append_contexts(void)
{
    static struct answer_state state;
    state.client = self.peer;
    const ptl_handlers_t handlers = {.payload_handler = work_handler,
                                     .hpu_mem = PTL_HPU_MEM_NONE,
                                     .hpu_initial_state = &state,
                                     .hpu_initial_length = sizeof(state)};
    if (make_counters() != 0) {
        return -1;
    }
    for (int i = 0; i < CONTEXTS; i++) {
        if (spin_entry(LINK_COUNTED, 0, (ptl_match_bits_t)(SPIN_BITS + i * SECOND), 0, spin.to,
                       SPIN_TO, &ended[i], &handlers, &context[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int unlink_contexts(void)
{
    return spin_take_out(&context[0]) != 0 || spin_take_out(&context[1]) != 0 ? -1 : 0;
}

/* ---- invoke ---- */

static int begin_invoke(const struct turn_work *work)
{
    return turn_rank() == 0 && append_contexts() != 0 ? -1 : spin_ready();
}

static int invoke_all(const struct order *order)
{
    for (int i = 0; i < AT_ONCE; i++) {
        int code = PtlHandlersInvoke(context[i % CONTEXTS], order, sizeof(*order));
        if (!link_ok(code, "PtlHandlersInvoke")) {
            return -1;
        }
    }
    return link_wait(&ended[0], AT_ONCE / CONTEXTS) != 0 ||
                   link_wait(&ended[1], AT_ONCE / CONTEXTS) != 0
               ? -1
               : 0;
}

static int run_invoke(const struct turn_work *work, uint64_t iterations)
{
    struct order order = order_of(work->size, false);
    for (uint64_t i = 0; turn_rank() == 0 && i < iterations; i++) {
        if (invoke_all(&order) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_invoke(const struct turn_work *work, struct turn_result *result)
{
    return turn_rank() == 0 ? unlink_contexts() : 0;
}

/* ---- fair ---- */

static int begin_fair(const struct turn_work *work)
{
    int rc = turn_rank() == 0 ? spin_append_answer(0) : append_contexts();
    time_count = 0;
    return rc != 0 ? rc : spin_ready();
}

/* Between 100 and 355 us, so that it meets the slow handlers at any point. */
static void pause_some(uint64_t i)
{
    struct timespec t = {.tv_nsec = 100000 + (long)(i * 2654435761u >> 8 & 255) * 1000};
    nanosleep(&t, NULL);
}

static int ping(uint64_t iterations)
{
    struct order order = order_of(0, true);
    ptl_match_bits_t bits = spin.way == WAY_FIFO ? SPIN_BITS : SPIN_BITS + SECOND;
    memcpy(spin.from, &order, sizeof(order));
    for (uint64_t i = 0; i < iterations; i++) {
        pause_some(i);
        double start = turn_now();
        int code = PtlPut(spin.md, 0, sizeof(order), PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, bits,
                          0, NULL, 0);
        if (!link_ok(code, "PtlPut") || link_wait(&spin.answered, 1) != 0) {
            return -1;
        }
        if (time_count < PINGS_MOST) {
            times[time_count++] = turn_now() - start;
        }
    }
    return spin_say();
}

/* Of the slow handlers that were started, how many have not ended; -1: turn_fail() was called. */
static long under_way(void)
{
    ptl_spin_counter_t slow;
    return link_ok(PtlSpinCounter(self.ni, SLOW_ENDED, &slow), "PtlSpinCounter")
               ? (long)(invoked - slow.count)
               : -1;
}

static int add_slow(const struct order *order)
{
    long now = under_way();
    for (; now >= 0 && now < BACKLOG; now++, invoked++) {
        if (!link_ok(PtlHandlersInvoke(context[0], order, sizeof(*order)), "PtlHandlersInvoke")) {
            return -1;
        }
    }
    return now < 0 ? -1 : 0;
}

/* Keeps BACKLOG slow calls waiting until the other rank has said that it is over. */
static int keep_busy(uint64_t us)
{
    struct order order = order_of(us, false);
    ptl_ct_event_t over;
    spin.over.expected++;
    do {
        if (add_slow(&order) != 0 || link_wait(&ended[0], 1) != 0 ||
            !link_ok(PtlCTGet(spin.over.ct, &over), "PtlCTGet")) {
            return -1;
        }
    } while (over.success < spin.over.expected);
    while (under_way() > 0) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return make_counters();
}

static int run_fair(const struct turn_work *work, uint64_t iterations)
{
    return turn_rank() == 0 ? ping(iterations)
           : work->size > 0 ? keep_busy(work->size)
                            : spin_hear();
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int end_fair(const struct turn_work *work, struct turn_result *result)
{
    if (turn_rank() == 0) {
        qsort(times, time_count, sizeof(times[0]), compare);
        uint64_t at = work->bench == BENCH_SPIN_FAIR ? time_count / 2 : time_count * 19 / 20;
        result->extra = times[at];
        return spin_unlink();
    }
    return unlink_contexts();
}

/* ---- What the ways do ---- */

static bool invokes(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && (spin.way == WAY_HPUS || spin.way == WAY_ONE);
}

static bool fair(const struct turn_work *work)
{
    return spin_on(work) && (spin.way == WAY_HPU || spin.way == WAY_FIFO);
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_INVOKE, invokes, begin_invoke, run_invoke, end_invoke},
    {BENCH_SPIN_FAIR, fair, begin_fair, run_fair, end_fair},
    {BENCH_SPIN_FAIR_WORST, fair, begin_fair, run_fair, end_fair},
};

const struct spin_family spin_threads = {
    duties, 3, 1u << WAY_HPUS | 1u << WAY_HPU | 1u << WAY_ONE | 1u << WAY_FIFO};
