/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that waits 200 ms between two barriers, and uses 50 ms of the processor between
 * the second and the third one. A thread of its own does the same with barriers of one rank.
 */
#include <mpi.h>
#include <pthread.h>
#include <time.h>

static void work_and_wait(MPI_Comm comm)
{
    const struct timespec rest = {0, 200000000};
    struct timespec now, begin;
    MPI_Barrier(comm);
    nanosleep(&rest, NULL);
    MPI_Barrier(comm);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 50000000);
    MPI_Barrier(comm);
}

static void *thread(void *unused)
{
    work_and_wait(MPI_COMM_SELF);
    return unused;
}

int main(int argc, char **argv)
{
    int level;
    pthread_t other;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    work_and_wait(MPI_COMM_WORLD);
    if (level == MPI_THREAD_MULTIPLE && pthread_create(&other, NULL, thread, NULL) == 0) {
        pthread_join(other, NULL);
    }
    MPI_Finalize();
    return 0;
}
