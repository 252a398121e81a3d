/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the MPI programs of this folder share: named parts, data that can be told
 * from any other, and expectations that are counted and printed when they fail.
 *
 *   PROGRAM [PART]...      without names all parts run, one after another
 *
 * A program prints one line a part and ends with status 1 if any process saw an
 * expectation fail. An MPI call that fails ends the job, unless the part says
 * otherwise.
 */
#ifndef CLIENTS_CHECK_H
#define CLIENTS_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct part {
    const char *name;
    void (*run)(void);
};

/* Of MPI_COMM_WORLD; set before a part runs. */
extern int world_rank, world_size;

/* check_main runs the parts that are named, or all, and returns what main does. */
int check_main(int argc, char **argv, const struct part *parts, int count);

/* expect counts a failure unless `good`, and prints the first few of a process. */
bool expect(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* check_alloc returns `length` bytes with a guard behind them; check_free looks
 * at the guard, says what overwrote it, and frees. */
void *check_alloc(size_t length);
void check_free(void *buffer, const char *what);

/* fill writes bytes that depend on the seed and the place; filled says whether
 * they are there, and prints the first that is not. */
void fill(void *buffer, size_t length, uint64_t seed);
bool filled(const void *buffer, size_t length, uint64_t seed, const char *what);

/* unfill writes what no fill leaves behind by accident. */
void unfill(void *buffer, size_t length);

/* The sizes that transports handle differently: 0, around every power of two to
 * 4 MiB, and odd ones. Ends with SIZE_MAX. */
extern const size_t all_sizes[];
enum { LARGEST = 4 << 20 };

/* pause_ms sleeps without a call of MPI, so that what arrives meanwhile is unexpected. */
void pause_ms(int milliseconds);

#endif
