/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI as a subject, in two ways that differ in where one-sided reads go:
 *
 *   peer_openmpi            messages; MPI_Get from a window over memory of the program's own
 *   peer_openmpi allocated  only MPI_Get, from a window that MPI_Win_allocate made
 *
 * and likewise peer_mpich: one source, compiled once for each MPI. Started by the
 * MPI's own mpirun, with two ranks. Errors inside MPI end both ranks, by MPI's own
 * error handler, with its message.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slots.h"

enum { TAG = 1, TAG_ANSWER = 2 };

static struct slots slots;
static MPI_Win window; /* what rank 1 exposes: slots.from, or memory of the library's own */

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

/* Rank 1 waits inside MPI, which is the progress that some one-sided paths need. */
static int get(const struct turn_work *work, uint64_t iterations)
{
    int size = (int)work->size;
    if (turn_rank() == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    for (uint64_t i = 0; i < iterations; i++) {
        MPI_Get(slots.to, size, MPI_BYTE, 1, 0, size, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD);
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

static const struct turn_duty duties[] = {
    {BENCH_GET, slots_fit, begin, get, end}, /* first: the only one for `allocated` */
    {BENCH_LATENCY, slots_fit, begin, latency, end},
    {BENCH_RATE, slots_fit, begin, windows, end},
    {BENCH_BANDWIDTH, slots_fit, begin, windows, end},
};

/* Makes the window, and for an allocated one lets slots.from be its memory. */
static void open_window(bool allocated)
{
    if (allocated) {
        free(slots.from);
        MPI_Win_allocate((MPI_Aint)SLOTS_SPACE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &slots.from,
                         &window);
    } else {
        MPI_Win_create(slots.from, (MPI_Aint)SLOTS_SPACE, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &window);
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    bool allocated = argc == 2 && strcmp(argv[1], "allocated") == 0;
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2 || (argc > 1 && !allocated)) {
        fprintf(stderr, "usage: mpirun -n 2 ... %s [allocated]\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (turn_join(rank) < 0 || slots_new(&slots) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    open_window(allocated);
    int served = turn_serve(duties, allocated ? 1 : sizeof(duties) / sizeof(duties[0]));
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return served == 0 ? 0 : 1;
}
