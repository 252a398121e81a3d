/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks on a grid, and recordings whose pattern is the same at each size of it.
 *
 * A rank's place in a dimension is first, last or between, and its class is its place in all of
 * them. A program is regular if, at two recorded sizes, all ranks of a class make the same calls in
 * the same order, with the same tags, and peers that are as far away in each dimension (round the
 * borders). Then a rank of a third size does what a rank of its class does. Sizes of messages may
 * differ; those of collectives may not, since nobody knows how they grow.
 */
#ifndef SIM_MPI_GRID_H
#define SIM_MPI_GRID_H

#include "trace.h"

enum { MPI_DIMENSIONS_MOST = 4 };

/* Ranks are numbered as MPI_Cart_create does it: the last dimension first. */
struct mpi_grid {
    int dimensions;
    uint32_t size[MPI_DIMENSIONS_MOST];
};

struct mpi_regular {
    struct mpi_grid small, large, wanted; /* two that were recorded; that of the schedule */
};

/* mpi_regular_read() reads "3x3x3,4x4x4,8x8x8": at least 3 ranks in each dimension, the first two
 * different in each in which the third is another than the second. Returns 0, or -1 with `error`
 * set. */
int mpi_regular_read(struct mpi_regular *r, const char *text, struct goal_error *error);
uint64_t mpi_grid_ranks(const struct mpi_grid *g);

/* mpi_grid_like() is the rank of `large` that does what a rank of `wanted` does; of those between,
 * each takes its turn. mpi_grid_move() is where the peer of a rank of `from` is for a rank `at` of
 * another grid. */
uint32_t mpi_grid_like(const struct mpi_grid *large, const struct mpi_grid *wanted, uint32_t rank);
uint32_t mpi_grid_move(const struct mpi_grid *from, uint32_t rank, uint32_t peer,
                       const struct mpi_grid *to, uint32_t at);

/* mpi_regular_check() holds two surveyed recordings against each other; -1, with `error` the first
 * call that is not regular. */
int mpi_regular_check(struct mpi_trace *small, struct mpi_trace *large, const struct mpi_regular *r,
                      struct goal_error *error);

#endif
