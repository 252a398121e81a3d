/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair over an MPI's own shared memory: messages of eight bytes; see pair.h. */
#include "pair.h"

#include <mpi.h>

static void exchange(uint64_t word)
{
    MPI_Send(&word, sizeof(word), MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&word, sizeof(word), MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank;
    uint64_t word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        pair_measure(exchange);
    } else {
        do {
            MPI_Recv(&word, sizeof(word), MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&word, sizeof(word), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } while (word != LAST);
    }
    MPI_Finalize();
    return 0;
}
