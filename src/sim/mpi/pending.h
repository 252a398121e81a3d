/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of a trace of liballprof that have begun, by their addresses. */
#ifndef SIM_MPI_PENDING_H
#define SIM_MPI_PENDING_H

#include "trace.h"

struct mpi_pending; /* NULL: none has begun */

/* mpi_pending_begin() numbers a request; its address stands for the operation that was put there
 * last. False: memory is short. */
bool mpi_pending_begin(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                       int64_t *request);

/* mpi_pending_complete() adds to the rank's last call those of `count` requests from `address` on
 * that have begun. False: memory is short. */
bool mpi_pending_complete(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                          uint64_t count);

void mpi_pending_free(struct mpi_pending **table);

#endif
