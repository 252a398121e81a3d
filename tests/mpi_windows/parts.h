/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of this folder share: parts, chosen by name on the command line, each of which
 * all ranks run and which fail by BAD(). At the end of each all ranks add up what was bad.
 */
#ifndef PARTS_H
#define PARTS_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int rank, size;
extern long bad;

#define BAD(condition, ...)                                                                        \
    do {                                                                                           \
        if (condition) {                                                                           \
            fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, rank, #condition);         \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)

/* The class of the error that a call gave; errors are returned. */
static inline int class_of(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static inline int next(void)
{
    return (rank + 1) % size;
}

static inline int before(void)
{
    return (rank + size - 1) % size;
}

struct part {
    const char *name;
    void (*run)(void);
};

/* Runs those that are named, or all; MPI_Finalize() is the caller's. The exit status. */
static inline int parts_run(const struct part *parts, int count, int argc, char **argv)
{
    long all = 0;
    for (int i = 0; i < count; i++) {
        int wanted = argc < 2;
        for (int k = 1; k < argc; k++) {
            wanted |= strcmp(argv[k], parts[i].name) == 0;
        }
        if (wanted) {
            long sum = 0;
            bad = 0;
            parts[i].run();
            MPI_Allreduce(&bad, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            if (rank == 0) {
                printf("%-16s %s\n", parts[i].name, sum == 0 ? "ok" : "WRONG");
                fflush(stdout);
            }
            all += sum;
        }
    }
    return all == 0 ? 0 : 1;
}

#endif
