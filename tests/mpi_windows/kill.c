/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that is killed, or stopped for a while, at a labelled point of the library of windows:
 *
 *      mpirun -n 3 kill FILE kill|stop LABEL:N
 *
 * All ranks go through fences, post-start-complete-wait, locks of all kinds, in rounds, on an
 * allocated and on a created window. Rank 0 is the victim when it passes LABEL for the N-th time.
 * Killed: some synchronisation of every other rank gives an error, and so does each one on that
 * window after it. Stopped: nothing fails. What a rank has seen is a line of FILE, since launchers
 * lose what is printed by jobs that end so; each rank has a lock of FILE to its end.
 */
#include <mpi.h>

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 12, STOPPED_MS = 400, WINDOWS = 2, LONGEST_S = 100 };

static const char *label = "";
static int at_pass, stops, file, rank, size;
/* of all ranks, in FILE.shared */
static struct shared {
    long long killed_ms;
    atomic_int over; /* ranks that have had an error */
} * shared;

void kill_point(const char *here);

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (write(file, text, (size_t)n) != n) {
        abort();
    }
}

/* What the library calls at its labelled points. */
void kill_point(const char *here)
{
    static atomic_int passed;
    if (strcmp(here, label) != 0 || atomic_fetch_add(&passed, 1) + 1 != at_pass) {
        return;
    }
    shared->killed_ms = now_ms();
    if (!stops) {
        raise(SIGKILL);
    }
    pid_t victim = getpid();
    if (_Fork() == 0) { /* more than once, in case it has come here before it is stopped */
        for (int i = 0; i < 50 && getppid() == victim; i++) {
            usleep(STOPPED_MS * 1000);
            kill(victim, SIGCONT);
        }
        _exit(0);
    }
    tell("stopped\n");
    raise(SIGSTOP);
}

/* ---- What ranks do ---- */

static MPI_Win windows[WINDOWS];
static MPI_Group all;
static int value = 7, result;

static int with_fence(MPI_Win win)
{
    int rc = MPI_Win_fence(0, win);
    rc = rc == 0 ? MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, rank, 1, MPI_INT, win) : rc;
    return rc == 0 ? MPI_Win_fence(MPI_MODE_NOSUCCEED, win) : rc;
}

/* In odd rounds MPI_Win_test() instead of MPI_Win_wait(). */
static int with_post(MPI_Win win, int round)
{
    int over = 0, rc = MPI_Win_post(all, 0, win);
    rc = rc == 0 ? MPI_Win_start(all, 0, win) : rc;
    rc = rc == 0 ? MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, rank, 1, MPI_INT, win) : rc;
    rc = rc == 0 ? MPI_Win_complete(win) : rc;
    while (rc == 0 && round % 2 == 1 && !over) {
        rc = MPI_Win_test(win, &over);
    }
    return rc == 0 && !over ? MPI_Win_wait(win) : rc;
}

static int with_lock(MPI_Win win, int type, int target)
{
    int rc = MPI_Win_lock(type, target, 0, win);
    if (rc == 0) {
        rc = MPI_Put(&value, 1, MPI_INT, target, rank, 1, MPI_INT, win);
        rc = rc == 0 ? MPI_Win_flush(target, win) : rc;
        int unlocked = MPI_Win_unlock(target, win);
        rc = rc == 0 ? unlocked : rc;
    }
    return rc;
}

static int with_locks(MPI_Win win)
{
    int rc = 0;
    for (int i = 0; i < size && rc == 0; i++) {
        rc = with_lock(win, MPI_LOCK_EXCLUSIVE, 1 % size); /* all want this one */
        rc = rc == 0 ? with_lock(win, MPI_LOCK_SHARED, (rank + i) % size) : rc;
    }
    rc = rc == 0 ? MPI_Win_lock_all(0, win) : rc;
    if (rc == 0) {
        rc = MPI_Fetch_and_op(&value, &result, MPI_INT, (rank + 1) % size, size, MPI_SUM, win);
        rc = rc == 0 ? MPI_Win_flush_all(win) : rc;
        int unlocked = MPI_Win_unlock_all(win);
        rc = rc == 0 ? unlocked : rc;
    }
    return rc;
}

/* One round on a window; the first error, and which call's it was. */
static int one_round(MPI_Win win, int round, const char **what)
{
    int rc;
    *what = "fence";
    rc = with_fence(win);
    if (rc == 0) {
        *what = "post";
        rc = with_post(win, round);
    }
    if (rc == 0) {
        *what = "locks";
        rc = with_locks(win);
    }
    return rc;
}

/* The victim is gone: each way to synchronise says so. */
static void all_fail(MPI_Win win)
{
    int over, rc[4];
    rc[0] = MPI_Win_fence(0, win);
    rc[1] = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 % size, 0, win);
    rc[2] = MPI_Win_lock_all(0, win);
    rc[3] = MPI_Win_post(all, 0, win);
    MPI_Win_test(win, &over);
    for (int i = 0; i < 4; i++) {
        if (rc[i] == MPI_SUCCESS) {
            tell("rank %d: call %d found nothing wrong with a window whose rank has ended\n", rank,
                 i);
        }
    }
}

static void *map_shared(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s.shared", name);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, 4096) == 0) {
        at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    return at;
}

/* Makes the windows; where that fails, the victim died in it. */
static int make(void)
{
    static int memory[64];
    int *base;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rc = MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                            &windows[0]);
    if (rc == 0) {
        MPI_Win_set_errhandler(windows[0], MPI_ERRORS_RETURN);
        rc = MPI_Win_fence(MPI_MODE_NOSUCCEED, windows[0]); /* the MPI would wait for the victim */
    }
    if (rc == 0) {
        rc = MPI_Win_allocate(sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                              &windows[1]);
    }
    if (rc == 0) {
        MPI_Win_set_errhandler(windows[1], MPI_ERRORS_RETURN);
    }
    return rc;
}

int main(int argc, char **argv)
{
    char *colon = argc == 4 ? strchr(argv[3], ':') : NULL;
    const char *what = "making a window";
    if (colon == NULL) {
        fprintf(stderr, "usage: mpirun -n 3 kill FILE kill|stop LABEL:N\n");
        return 2;
    }
    file = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    flock(file, LOCK_SH);
    alarm(LONGEST_S); /* the launcher may have gone before */
    shared = map_shared(argv[1]);
    stops = strcmp(argv[2], "stop") == 0;
    MPI_Init(&argc, &argv);
    signal(SIGUSR1, SIG_IGN); /* by which MPICH's launcher tells that a rank has ended */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    at_pass = atoi(colon + 1);
    *colon = '\0';
    /* what others pass while windows are made the MPI would wait for behind them */
    bool makes = strcmp(argv[3], "mpi-creates") == 0 || strcmp(argv[3], "mpi-words") == 0;
    label = rank == 0 && makes ? argv[3] : "";
    int rc = make(), which = 0;
    label = rank == 0 ? argv[3] : "";
    for (int i = 0; i < ROUNDS * WINDOWS && rc == 0; i++) {
        which = i % WINDOWS;
        rc = one_round(windows[which], i / WINDOWS, &what);
    }
    for (int i = 0; i < WINDOWS && rc == 0; i++) {
        what = "free";
        rc = MPI_Win_free(&windows[i]);
    }
    if (rc != 0 && !stops) {
        tell("rank %d: an error in %s after %lld ms\n", rank, what, now_ms() - shared->killed_ms);
        if (strcmp(what, "making a window") != 0 && strcmp(what, "free") != 0) {
            all_fail(windows[which]);
        }
        atomic_fetch_add(&shared->over, 1); /* launchers end the job with a second rank */
        while (atomic_load(&shared->over) < size - 1) {
            usleep(1000);
        }
        _exit(0); /* MPI_Finalize() would wait for the victim */
    }
    tell("rank %d: %s\n", rank, rc == 0 ? "all rounds" : what);
    MPI_Group_free(&all);
    MPI_Finalize();
    return rc != 0;
}
