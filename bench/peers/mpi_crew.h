/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives of peer_mpi, by eight ranks: MPI_Bcast by ranks of which all but the root
 * compute first (crew.h), MPI_Allreduce of doubles.
 */
#ifndef BENCH_PEERS_MPI_CREW_H
#define BENCH_PEERS_MPI_CREW_H

/* crew_serve() takes turns until the plan is done: 0 or -1, as turn_serve(). */
int crew_serve(void);

#endif
