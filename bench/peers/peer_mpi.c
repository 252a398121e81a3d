/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI as a subject, in ways that differ in whose memory one-sided operations are for,
 * and in what carries messages:
 *
 *   peer_openmpi            messages; windows over memory of the program's own
 *   peer_openmpi allocated  one-sided only, on windows that MPI_Win_allocate made
 *   peer_openmpi portals4   as the first, and fails unless Portals carries them
 *   peer_openmpi crew       collectives, by eight ranks
 *
 * and likewise peer_mpich: one source, compiled once for each MPI. Started by the
 * MPI's own mpirun, with two ranks or eight. Errors inside MPI end both ranks, by MPI's own
 * error handler, with its message.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "mpi_crew.h"
#include "mpi_datatypes.h"
#include "mpi_onesided.h"
#include "mpi_portals.h"
#include "slots.h"

enum { TAG = 1, TAG_ANSWER = 2 };

static struct slots slots;

static int latency(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size, other = 1 - turn_rank();
    for (uint64_t i = 0; i < iterations; i++) {
        if (turn_rank() == 0) {
            MPI_Send(slots.from, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
            MPI_Recv(slots.to, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(slots.to, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(slots.from, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        }
    }
    return 0;
}

static void send_window(int size, int messages)
{
    MPI_Request requests[TURN_WINDOW_RATE];
    for (int i = 0; i < messages; i++) {
        MPI_Isend(slots_from(&slots, (uint64_t)i), size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(int size, int messages)
{
    MPI_Request requests[TURN_WINDOW_RATE];
    for (int i = 0; i < messages; i++) {
        MPI_Irecv(slots_to(&slots, (uint64_t)i), size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
}

static int windows(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size;
    int messages = work->bench == BENCH_RATE ? TURN_WINDOW_RATE : TURN_WINDOW_BANDWIDTH;
    for (uint64_t i = 0; i < iterations; i++) {
        if (turn_rank() == 0) {
            send_window(size, messages);
        } else {
            receive_window(size, messages);
        }
    }
    return 0;
}

/* A message, and an empty one back. */
static int answered(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size;
    for (uint64_t i = 0; i < iterations; i++) {
        if (turn_rank() == 0) {
            MPI_Send(slots.from, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(slots.to, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
        }
    }
    return 0;
}

static int begin(const struct turn_work *work)
{
    return slots_begin(&slots, work);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    return slots_end(&slots, work);
}

static int begin_strided(const struct turn_work *work)
{
    return datatypes_begin(&slots, work);
}

static int end_strided(const struct turn_work *work, struct turn_result *result)
{
    return datatypes_end(work);
}

static const struct turn_duty duties[] = {
    {BENCH_GET, slots_fit, begin, onesided_get, end},
    {BENCH_PUT, slots_fit, begin, onesided_put, end},
    {.bench = BENCH_FETCH_ADD, .supports = onesided_word, .run = onesided_fetch_add},
    {.bench = BENCH_SWAP_IF, .supports = onesided_word, .run = onesided_swap_if},
    {BENCH_ADD, onesided_word, NULL, onesided_add, onesided_added},
    {BENCH_SPIN_ACCUMULATE, onesided_doubles, onesided_accumulate_begin, onesided_accumulate,
     onesided_accumulate_end},
    {BENCH_LATENCY, slots_fit, begin, latency, end},
    {BENCH_RATE, slots_fit, begin, windows, end},
    {BENCH_BANDWIDTH, slots_fit, begin, windows, end},
    {BENCH_SPIN_RENDEZVOUS, slots_fit, begin, answered, end},
    {BENCH_SPIN_STRIDED, datatypes_whole, begin_strided, datatypes_run, end_strided},
};

enum { ONE_SIDED = 6, ALL = sizeof(duties) / sizeof(duties[0]) };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    bool allocated = argc == 2 && strcmp(argv[1], "allocated") == 0;
    bool portals = argc == 2 && strcmp(argv[1], "portals4") == 0;
    bool crew = argc == 2 && strcmp(argv[1], "crew") == 0;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != (crew ? TURN_RANKS : 2) || (argc > 1 && !allocated && !portals && !crew)) {
        fprintf(stderr, "usage: mpirun -n 2 ... %s [allocated | portals4], or -n %d ... crew\n",
                argv[0], TURN_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (turn_join(rank) < 0 || (!crew && slots_new(&slots) != 0)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (crew) {
        int served = crew_serve();
        MPI_Finalize();
        return served == 0 ? 0 : 1;
    }
    onesided_open(&slots, allocated);
    if (portals && portals_carries() != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int served = turn_serve(duties, allocated ? ONE_SIDED : ALL);
    onesided_close();
    MPI_Finalize();
    return served == 0 ? 0 : 1;
}
