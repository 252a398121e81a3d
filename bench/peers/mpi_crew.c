/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of peer_mpi; see mpi_crew.h. */
#include "mpi_crew.h"

#include "harness/crew.h"

#include <mpi.h>
#include <string.h>

enum { MOST = 1 << 20 };

static _Alignas(4096) double mine[MOST / sizeof(double)], all[MOST / sizeof(double)];
static struct crew_time timing;

static bool fits(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && turn_ranks() == TURN_RANKS && work->size > 0 &&
           work->size <= MOST && work->size % sizeof(double) == 0;
}

static int begin_broadcast(const struct turn_work *work)
{
    if (turn_rank() == 0) {
        turn_fill(all, work->size, work->size);
    } else {
        memset(all, 0, work->size);
    }
    return 0;
}

static int run_broadcast(const struct turn_work *work, uint64_t iterations)
{
    timing.total = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        if (crew_begin(&timing) != 0) {
            return -1;
        }
        if (turn_rank() != 0) {
            crew_compute();
        }
        MPI_Bcast(all, (int)work->size, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (crew_end(&timing) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_broadcast(const struct turn_work *work, struct turn_result *result)
{
    result->extra = timing.total / (double)work->count;
    return work->check ? turn_check(all, work->size, work->size) : 0;
}

static int begin_allreduce(const struct turn_work *work)
{
    for (uint64_t i = 0; i < work->size / sizeof(double); i++) {
        mine[i] = (double)(i % 100) + turn_rank();
    }
    return 0;
}

static int run_allreduce(const struct turn_work *work, uint64_t iterations)
{
    timing.total = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        if (crew_begin(&timing) != 0) {
            return -1;
        }
        MPI_Allreduce(mine, all, (int)(work->size / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
        if (crew_end(&timing) != 0) {
            return -1;
        }
    }
    return 0;
}

static int end_allreduce(const struct turn_work *work, struct turn_result *result)
{
    result->extra = timing.total / (double)work->count;
    for (uint64_t i = 0; work->check && i < work->size / sizeof(double); i++) {
        double wanted = TURN_RANKS * (double)(i % 100) + TURN_RANKS * (TURN_RANKS - 1) / 2.0;
        if (all[i] != wanted) {
            return turn_fail("element %lu of the sum is wrong", (unsigned long)i);
        }
    }
    return 0;
}

int crew_serve(void)
{
    static const struct turn_duty duties[] = {
        {BENCH_SPIN_BROADCAST, fits, begin_broadcast, run_broadcast, end_broadcast},
        {BENCH_SPIN_ALLREDUCE, fits, begin_allreduce, run_allreduce, end_allreduce},
    };
    return turn_serve(duties, sizeof(duties) / sizeof(duties[0]));
}
