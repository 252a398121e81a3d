/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target that sleeps, one that waits for nothing and one that computes: what it
 * takes to wake the first, and what the library takes from the others.
 */
#include "harness/wake.h"
#include "link.h"

#include <time.h>

enum { MESSAGES_PER_MS = 10 };

static struct link_count sleepy, sleepy_answers, idle, busy;
static struct wake_times times;
static double extra;

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- Waking ---- */

static int begin_wakes(const struct turn_work *work)
{
    times.count = 0;
    return 0;
}

static int wakes(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if (turn_rank() == 1) {
            if (link_wait(&sleepy, 1) != 0 ||
                !link_ok(link_answer(LINK_ANSWERS + BENCH_WAKE), "PtlPut")) {
                return -1;
            }
            continue;
        }
        wake_pause();
        double start = turn_now();
        if (!link_ok(link_put(work->size, 0, LINK_COUNTED, BENCH_WAKE), "PtlPut") ||
            link_wait(&sleepy_answers, 1) != 0) {
            return -1;
        }
        wake_note(&times, turn_now() - start);
    }
    return 0;
}

static int end_wakes(const struct turn_work *work, struct turn_result *result)
{
    result->extra = wake_median(&times);
    return 0;
}

/* ---- Idling: both ranks have nothing to do ---- */

static int idling(const struct turn_work *work, uint64_t milliseconds)
{
    double cpu = turn_cpu(), start = turn_now();
    if (turn_rank() == 0) {
        nap((double)milliseconds * 1e-3);
        return link_ok(link_put(work->size, 0, LINK_COUNTED, BENCH_IDLE), "PtlPut") ? 0 : -1;
    }
    if (link_wait(&idle, 1) != 0) {
        return -1;
    }
    extra = (turn_cpu() - cpu) / (turn_now() - start);
    return 0;
}

/* ---- Computing ---- */

static double thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Rank 1 makes no call of the library until the last message was sent and the
 * library's own thread had time for it. */
static int computing(const struct turn_work *work, uint64_t milliseconds)
{
    static uint64_t turns;
    uint64_t messages = milliseconds * MESSAGES_PER_MS;
    turns++;
    if (turn_rank() == 0) {
        for (uint64_t i = 0; i < messages; i++) {
            for (double until = turn_now() + 1e-3 / MESSAGES_PER_MS; turn_now() < until;) {
            }
            if (!link_ok(link_put(work->size, 0, LINK_COUNTED, BENCH_COMPUTING), "PtlPut")) {
                return -1;
            }
        }
        *turn_line(2) = turns;
        return 0;
    }
    double all = turn_cpu(), own = thread_cpu();
    ptl_ct_event_t value = {0, 0};
    while (*turn_line(2) != turns) {
    }
    extra = (turn_cpu() - all - (thread_cpu() - own)) / (double)messages;
    return link_wait(&busy, messages) != 0 || !link_ok(PtlCTGet(busy.ct, &value), "PtlCTGet") ? -1
                                                                                              : 0;
}

static int end_extra(const struct turn_work *work, struct turn_result *result)
{
    result->extra = extra;
    return 0;
}

/* ---- Memory: measured when the ranks met ---- */

static int nothing(const struct turn_work *work, uint64_t iterations)
{
    return 0;
}

static int end_memory(const struct turn_work *work, struct turn_result *result)
{
    result->extra = self.memory;
    return 0;
}

static int open_entries(void)
{
    return link_entry(LINK_COUNTED, BENCH_WAKE, 0, &sleepy, NULL) != 0 ||
                   link_entry(LINK_COUNTED, LINK_ANSWERS + BENCH_WAKE, 0, &sleepy_answers, NULL) !=
                       0 ||
                   link_entry(LINK_COUNTED, BENCH_IDLE, 0, &idle, NULL) != 0 ||
                   link_entry(LINK_COUNTED, BENCH_COMPUTING, 0, &busy, NULL) != 0
               ? -1
               : 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_WAKE, .begin = begin_wakes, .run = wakes, .end = end_wakes},
    {.bench = BENCH_IDLE, .run = idling, .end = end_extra},
    {.bench = BENCH_COMPUTING, .run = computing, .end = end_extra},
    {.bench = BENCH_MEMORY, .run = nothing, .end = end_memory},
};

const struct family family_rest = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
