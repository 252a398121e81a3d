/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of Open MPI on simulated NICs, one case at a time (mpi.sh):
 *
 *      alltoall BYTES     each rank sends each a block of its own
 *      clock              what MPI_Wtime says of a barrier, in ns
 *      late               rank 1 calls MPI_Init long after the others, in real time
 *      never              rank 1 ends without MPI_Init
 *      dies CODE          rank 1 exits with a code while the others are in MPI_Init
 *      killed             rank 1 is killed there
 *      leaves             rank 1 exits without MPI_Finalize
 *      abort CODE         rank 1 calls MPI_Abort
 *      spawn              rank 0 asks for one process more
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int alltoall(size_t bytes)
{
    size_t all = bytes * (size_t)size;
    unsigned char *out = malloc(all), *in = calloc(1, all);
    int wrong = 0;
    for (int r = 0; r < size; r++) {
        memset(out + (size_t)r * bytes, rank * 7 + r, bytes);
    }
    MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; i++) {
        wrong |= in[i] != (unsigned char)((int)(i / bytes) * 7 + rank);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s\n", wrong ? "wrong" : "right");
    }
    free(out);
    free(in);
    return wrong;
}

static void spawn(void)
{
    MPI_Comm other;
    int code = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 0) {
        int rc = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other,
                                &code);
        printf("%s\n", rc == MPI_SUCCESS ? "spawned" : "refused");
    }
}

/* What happens before MPI_Init, or in its place. */
static void before(const char *name, int number)
{
    const char *rank_text = getenv("PMIX_RANK");
    if (rank_text == NULL || strcmp(rank_text, "1") != 0) {
        return;
    }
    if (strcmp(name, "late") == 0) {
        usleep(300000);
    } else if (strcmp(name, "never") == 0) {
        exit(0);
    } else if (strcmp(name, "dies") == 0) {
        usleep(300000);
        exit(number);
    } else if (strcmp(name, "killed") == 0) {
        usleep(300000);
        raise(SIGKILL);
    }
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0, wrong = 0;
    before(name, number);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(name, "alltoall") == 0 || strcmp(name, "late") == 0) {
        wrong = alltoall(number > 0 ? (size_t)number : 1);
    } else if (strcmp(name, "clock") == 0) {
        double begin = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        printf("%d %.0f\n", rank, (MPI_Wtime() - begin) * 1e9);
    } else if (strcmp(name, "leaves") == 0 && rank == 1) {
        exit(0);
    } else if (strcmp(name, "abort") == 0 && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, number);
    } else if (strcmp(name, "spawn") == 0) {
        spawn();
    }
    MPI_Finalize();
    return wrong;
}
