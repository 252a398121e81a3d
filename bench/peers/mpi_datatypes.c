/* SPDX-License-Identifier: BSD-3-Clause */
/* Strided datatypes of peer_mpi; see mpi_datatypes.h. */
#include "mpi_datatypes.h"

#include <mpi.h>
#include <string.h>

enum { MESSAGE = 4 << 20, TAG = 4, TAG_ANSWER = 5 };

static struct slots *memory;
static MPI_Datatype vector;

bool datatypes_whole(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size > 0 && MESSAGE % work->size == 0;
}

int datatypes_begin(struct slots *slots, const struct turn_work *work)
{
    int block = (int)work->size;
    memory = slots;
    MPI_Type_vector(MESSAGE / block, block, 2 * block, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    turn_fill(slots->from, MESSAGE, work->size);
    memset(slots->to, 0, (size_t)2 * MESSAGE);
    char nothing;
    return turn_exchange("", 0, &nothing, sizeof(nothing)) < 0 ? -1 : 0;
}

int datatypes_run(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        if (turn_rank() == 0) {
            MPI_Send(memory->from, MESSAGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(memory->to, 1, vector, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_ANSWER, MPI_COMM_WORLD);
        }
    }
    return 0;
}

int datatypes_end(const struct turn_work *work)
{
    static char found[MESSAGE];
    uint64_t block = work->size;
    MPI_Type_free(&vector);
    if (turn_rank() == 0 || !work->check) {
        return 0;
    }
    for (uint64_t i = 0; i < MESSAGE / block; i++) {
        memcpy(found + i * block, memory->to + 2 * i * block, block);
    }
    return turn_check(found, MESSAGE, block);
}
