/* SPDX-License-Identifier: BSD-3-Clause */
/* Two cache lines between two processes; see raw.h. */
#include "harness/raw.h"
#include "limits.h"

static bool fits_line(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size <= 8;
}

static int trips(const struct turn_work *work, uint64_t iterations)
{
    static uint64_t number;
    int rank = turn_rank();
    pingpong_raw(turn_line(rank), turn_line(1 - rank), rank == 0, iterations, &number);
    return 0;
}

static const struct turn_duty duties[] = {
    {.bench = BENCH_LATENCY, .supports = fits_line, .run = trips},
};

const struct limit limit_raw = {"raw", NULL, duties, 1};
