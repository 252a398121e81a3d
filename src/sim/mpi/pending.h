/* SPDX-License-Identifier: BSD-3-Clause */
/* The pending requests in a trace of liballprof, found by their addresses. */
#ifndef SIM_MPI_PENDING_H
#define SIM_MPI_PENDING_H

#include "trace.h"

struct mpi_pending; /* a table; NULL: no request is pending */

/* mpi_pending_begin() numbers a new request at `address`, where it replaces an older one. False if
 * memory is short. */
bool mpi_pending_begin(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                       int64_t *request);

/* mpi_pending_complete() completes the pending ones among the `count` requests from `address` on,
 * and adds their numbers to the rank's last call. False if memory is short. */
bool mpi_pending_complete(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                          uint64_t count);

void mpi_pending_free(struct mpi_pending **table);

#endif
