/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the pairs of bench/unpinned share: two processes exchange eight bytes for WARM_MS, as they
 * would who have just started, and for MEASURE_MS after that. Rank 0 prints half of the mean and of
 * the median time of a round trip in the second part, in microseconds.
 */
#ifndef BENCH_UNPINNED_PAIR_H
#define BENCH_UNPINNED_PAIR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_MS = 100, MEASURE_MS = 100, TRIPS_MOST = 2000000, LAST = 1 };

static inline int64_t pair_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int pair_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* `exchange` sends a word and returns with the one that came back; rank 1 answers by itself until
 * it has seen LAST. */
static inline void pair_measure(void (*exchange)(uint64_t word))
{
    uint32_t *trip = malloc(TRIPS_MOST * sizeof(*trip));
    int64_t begin = pair_now(), measure = begin + WARM_MS * INT64_C(1000000);
    int64_t end = measure + MEASURE_MS * INT64_C(1000000), before = begin, first = 0, last = 0;
    size_t trips = 0;
    while (before < end && trips < TRIPS_MOST) {
        exchange(0);
        int64_t now = pair_now();
        if (before >= measure) {
            first = first == 0 ? before : first;
            last = now;
            int64_t took = now - before;
            trip[trips++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
        }
        before = now;
    }
    exchange(LAST);
    if (trips == 0) {
        printf("%.3f %.3f\n", (double)MEASURE_MS * 1000, (double)MEASURE_MS * 1000);
    } else {
        double mean = (double)(last - first) / (double)trips;
        qsort(trip, trips, sizeof(*trip), pair_compare);
        printf("%.3f %.3f\n", mean / 2000, trip[trips / 2] / 2000.0);
    }
    free(trip);
}

#endif
