/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that forks while another of its threads is in the midst of the recording: the
 * child ends by exit(), which asks the recorder for what it has left to write. The other thread is
 * stopped in write(), which this program defines, until the child has ended. Then a child that is
 * made past fork(): what its parent has still to write is not the child's to write.
 */
#include <mpi.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static off_t recorded(void)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof(path), "%s/rank-0.trace", getenv("PINWHEEL_TRACE"));
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* Whether a raw child that ends by exit() leaves the recording as it is. */
static _Bool raw_child_writes_nothing(void)
{
    int status = -1;
    char byte = 0;
    MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* a line to be written */
    off_t before = recorded();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        alarm(CHILD_S);
        exit(0);
    }
    waitpid(child, &status, 0);
    if (status == 0 && before >= 0 && recorded() == before) {
        return 1;
    }
    fprintf(stderr, "a raw child: status %#x, the recording has %lld bytes, then %lld\n",
            (unsigned)status, (long long)before, (long long)recorded());
    return 0;
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
    if (!raw_child_writes_nothing()) {
        status = 1;
    }
    MPI_Finalize();
    if (status != 0) {
        fprintf(stderr, "the child ended with status %#x, not with 0\n", (unsigned)status);
    }
    return status != 0;
}
