/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of this folder share: how they are called, how they say what they found.
 *
 *     PROGRAM [--two-sided] [SIZE [ROUNDS]]
 *
 * Each does its work by MPI-3 windows, or with --two-sided by messages, and checks the result. The
 * last line of rank 0 is for scripts: "NAME windows|two-sided RANKS SIZE MICROSECONDS", the median
 * time of a round on the slowest rank. A result that is wrong is told by the rank that found it,
 * and makes the status 1.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 1000 };

struct job {
    const char *name, *unit;
    int rank, ranks;
    bool two_sided;
    long size;
    int rounds, timed;
    double begun, time[ROUNDS_MAX];
    bool wrong;
};

/* A bijection of 64-bit words that looks like chance (the finalizer of SplitMix64). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline _Noreturn void job_usage(const struct job *job, const char *why, const char *value)
{
    if (job->rank == 0) {
        fprintf(stderr, "%s: %s: %s\nusage: %s [--two-sided] [%s [ROUNDS]]\n", job->name, why,
                value, job->name, job->unit);
    }
    MPI_Finalize();
    exit(2);
}

/* A number of at least 1 and at most `most`. */
static inline long job_number(const struct job *job, const char *text, long most)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != '\0' || end == text || number < 1 || number > most) {
        job_usage(job, "no number that it can use", text);
    }
    return number;
}

/* `size`, `rounds`: what is taken where the command line names none. */
static inline void job_begin(struct job *job, int argc, char **argv, const char *name,
                             const char *unit, long size, int rounds)
{
    int place = 0;
    *job = (struct job){.name = name, .unit = unit, .size = size, .rounds = rounds};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job->ranks);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--two-sided") == 0) {
            job->two_sided = true;
        } else if (place == 0) {
            job->size = job_number(job, argv[i], 1 << 24);
            place++;
        } else if (place == 1) {
            job->rounds = (int)job_number(job, argv[i], ROUNDS_MAX);
            place++;
        } else {
            job_usage(job, "unknown word", argv[i]);
        }
    }
}

static inline void *job_alloc(const struct job *job, size_t size)
{
    void *memory = calloc(size != 0 ? size : 1, 1);
    if (memory == NULL) {
        fprintf(stderr, "%s: rank %d has no %zu bytes of memory\n", job->name, job->rank, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static inline void job_wrong(struct job *job, const char *what, long long found, long long wanted)
{
    fprintf(stderr, "%s: rank %d: %s: %lld, not %lld\n", job->name, job->rank, what, found, wanted);
    job->wrong = true;
}

/* All ranks begin a round together. */
static inline void job_round(struct job *job)
{
    MPI_Barrier(MPI_COMM_WORLD);
    job->begun = MPI_Wtime();
}

static inline void job_round_over(struct job *job)
{
    double took = MPI_Wtime() - job->begun, slowest;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    job->time[job->timed++] = slowest;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * Windows of passive target: opened once, closed at the end. Between rounds the owner writes its
 * memory, and makes that seen by window_seen() and the barrier of job_round(); after window_over()
 * it reads what all have done.
 */
static inline void *window_open(const struct job *job, size_t size, MPI_Win *win)
{
    void *memory;
    if (job->two_sided) {
        return job_alloc(job, size);
    }
    /* Whole pages: MPICH 4.0.2 looks for the others' parts at wrong addresses otherwise. */
    size = (size + 4095) & ~(size_t)4095;
    MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, *win);
    return memory;
}

static inline void window_seen(const struct job *job, MPI_Win win)
{
    if (!job->two_sided) {
        MPI_Win_sync(win);
    }
}

static inline void window_over(const struct job *job, MPI_Win win)
{
    if (!job->two_sided) {
        MPI_Win_flush_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(win);
    }
}

static inline void window_close(const struct job *job, void *memory, MPI_Win *win)
{
    if (job->two_sided) {
        free(memory);
    } else {
        MPI_Win_unlock_all(*win);
        MPI_Win_free(win);
    }
}

/* Prints, ends MPI; what main() returns. */
static inline int job_end(struct job *job)
{
    int wrong = job->wrong, anywhere;
    MPI_Allreduce(&wrong, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (job->rank == 0 && !anywhere && job->timed > 0) {
        qsort(job->time, (size_t)job->timed, sizeof(double), by_time);
        printf("%s %s %d %ld %.3f\n", job->name, job->two_sided ? "two-sided" : "windows",
               job->ranks, job->size, job->time[job->timed / 2] * 1e6);
    }
    MPI_Finalize();
    return anywhere;
}

#endif
