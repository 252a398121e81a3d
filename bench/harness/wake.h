/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of all benches of wake-ups, so that they are comparable: how long rank 0 keeps
 * away until rank 1 is surely asleep, and the median of a turn. */
#ifndef BENCH_WAKE_H
#define BENCH_WAKE_H

#include <stdlib.h>

#include "turn.h"

#define WAKE_PAUSE 600e-6 /* seconds: five times what Pinwheel spins and yields by default */
enum { WAKE_MOST = 4096 };

struct wake_times {
    double seconds[WAKE_MOST];
    int count;
};

static inline int wake_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* wake_pause() spins, so that this side's core is awake. */
static inline void wake_pause(void)
{
    for (double until = turn_now() + WAKE_PAUSE; turn_now() < until;) {
    }
}

static inline void wake_note(struct wake_times *w, double seconds)
{
    if (w->count < WAKE_MOST) {
        w->seconds[w->count++] = seconds;
    }
}

static inline double wake_median(struct wake_times *w)
{
    qsort(w->seconds, (size_t)w->count, sizeof(w->seconds[0]), wake_compare);
    return w->count > 0 ? w->seconds[w->count / 2] : 0;
}

#endif
