/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping and being woken by the kernel: a ping-pong in which each side sleeps in
 * a futex until the other wakes it, and the wake-up of a side that has slept long
 * by one that is awake, answered by a cache line.
 */
#include "harness/page.h"
#include "harness/wake.h"
#include "limits.h"

static uint64_t number; /* of the round trip; both ranks count */
static struct wake_times times;

/* A futex is 32 bits: the low half of a line. */
static _Atomic uint32_t *word_of(int rank)
{
    return (_Atomic uint32_t *)(uintptr_t)turn_line(rank);
}

static void ring(int rank, uint32_t value)
{
    atomic_store(word_of(rank), value);
    page_wake(word_of(rank));
}

static void sleep_until(int rank, uint32_t value)
{
    for (uint32_t seen; (seen = atomic_load(word_of(rank))) != value;) {
        page_sleep(word_of(rank), seen, 1000);
    }
}

static bool any_cores(const struct turn_work *work)
{
    return work->size <= 8;
}

static int trips(const struct turn_work *work, uint64_t iterations)
{
    int rank = turn_rank();
    for (uint64_t i = 0; i < iterations; i++) {
        uint32_t n = (uint32_t)++number;
        if (rank == 0) {
            ring(1, n);
        }
        sleep_until(rank, n);
        if (rank == 1) {
            ring(0, n);
        }
    }
    return 0;
}

static int begin_wakes(const struct turn_work *work)
{
    times.count = 0;
    return 0;
}

static int wakes(const struct turn_work *work, uint64_t iterations)
{
    volatile uint64_t *answer = turn_line(2);
    for (uint64_t i = 0; i < iterations; i++) {
        uint32_t n = (uint32_t)++number;
        if (turn_rank() == 1) {
            sleep_until(1, n);
            *answer = number;
            continue;
        }
        wake_pause();
        double start = turn_now();
        ring(1, n);
        while (*answer != number) {
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

static const struct turn_duty duties[] = {
    {.bench = BENCH_LATENCY, .supports = any_cores, .run = trips},
    {.bench = BENCH_WAKE, .begin = begin_wakes, .run = wakes, .end = end_wakes},
};

const struct limit limit_futex = {"futex", NULL, duties, 2};
