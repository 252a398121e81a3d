/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share: the clock, in seconds, and medians. */
#ifndef BENCH_RMA_TIMES_H
#define BENCH_RMA_TIMES_H

#include <stdlib.h>
#include <time.h>

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the values. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

#endif
