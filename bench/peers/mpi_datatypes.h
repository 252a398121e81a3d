/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peer_mpi has against the handler library: MPI's own way to the same result.
 *
 *   strided      4 MiB of bytes received as one MPI_Type_vector
 */
#ifndef BENCH_PEERS_MPI_DATATYPES_H
#define BENCH_PEERS_MPI_DATATYPES_H

#include "slots.h"

bool datatypes_whole(const struct turn_work *work);
int datatypes_begin(struct slots *slots, const struct turn_work *work);
int datatypes_run(const struct turn_work *work, uint64_t iterations);
int datatypes_end(const struct turn_work *work);

#endif
