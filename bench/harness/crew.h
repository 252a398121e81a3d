/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all benches of eight ranks have in common, so that they are comparable: an iteration
 * begins when all ranks have come, and takes until the last of them has what it waits for.
 *
 *      crew_begin ── all are there ──► ... the work ... ──► crew_end: the time of this rank
 *                                                           at rank 0: of the last one
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include "turn.h"

enum { CREW_LOOPS = 400000 /* that a rank computes before it looks: some 100 us */ };

struct crew_time {
    double start, total; /* of this iteration; of all, at rank 0 */
};

/* crew_compute() is what a rank does that has other things to do. */
static inline void crew_compute(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < CREW_LOOPS; i++) {
        __asm__ volatile("" : "+r"(sum));
        sum += i;
    }
}

static inline int crew_begin(struct crew_time *t)
{
    int rc = turn_gather(NULL, 0, NULL);
    t->start = turn_now();
    return rc;
}

static inline int crew_end(struct crew_time *t)
{
    double now = turn_now(), ends[TURN_RANKS];
    if (turn_gather(&now, sizeof(now), ends) != 0) {
        return -1;
    }
    for (int r = 0; r < turn_ranks(); r++) {
        now = ends[r] > now ? ends[r] : now;
    }
    t->total += now - t->start;
    return 0;
}

#endif
