/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that forks while another of its threads is in the midst of the recording: the
 * child ends by exit(), which asks the recorder for what it has left to write. The other thread is
 * stopped in write(), which this program defines, until the child has ended.
 */
#include <mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_S = 20 };

static _Atomic _Bool there, goes_on;
static __thread _Bool is_other;

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *from, size_t length)
{
    if (is_other && fd > STDERR_FILENO) {
        atomic_store(&there, 1);
        while (!atomic_load(&goes_on)) {
            sleep_a_little();
        }
    }
    return syscall(SYS_write, fd, from, length);
}

static void *call_on_and_on(void *arg)
{
    is_other = 1;
    while (!atomic_load(&goes_on)) {
        MPI_Send(arg, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other;
    char byte = 0;
    int level, status = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level != MPI_THREAD_MULTIPLE || getenv("PINWHEEL_TRACE") == NULL ||
        pthread_create(&other, NULL, call_on_and_on, &byte) != 0) {
        fprintf(stderr, "needs MPI_THREAD_MULTIPLE, a thread, and to be recorded\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    while (!atomic_load(&there)) {
        sleep_a_little();
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_S);
        exit(0);
    }
    waitpid(child, &status, 0);
    atomic_store(&goes_on, 1);
    pthread_join(other, NULL);
    MPI_Finalize();
    if (status != 0) {
        fprintf(stderr, "the child ended with status %#x, not with 0\n", (unsigned)status);
    }
    return status != 0;
}
