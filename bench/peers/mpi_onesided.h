/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication of peer_mpi: rank 0 reads, writes and changes what rank 1
 * exposes in three windows, in one epoch (MPI_Win_lock_all) for the whole run; every
 * operation is followed by its flush.
 *
 *   reads    slots.from of rank 1, for MPI_Get
 *   writes   slots.to of rank 1, for MPI_Put
 *   words    one word of 8 bytes for each kind of atomic
 */
#ifndef BENCH_PEERS_MPI_ONESIDED_H
#define BENCH_PEERS_MPI_ONESIDED_H

#include <stdbool.h>

#include "slots.h"

/* onesided_open() makes the windows; with `allocated` their memory is MPI's, by
 * MPI_Win_allocate, and so is that of the slots from then on. */
void onesided_open(struct slots *slots, bool allocated);
void onesided_close(void);

/* The works; see enum turn_bench. */
int onesided_get(const struct turn_work *work, uint64_t iterations);
int onesided_put(const struct turn_work *work, uint64_t iterations);
int onesided_fetch_add(const struct turn_work *work, uint64_t iterations);
int onesided_swap_if(const struct turn_work *work, uint64_t iterations);
int onesided_accumulate_begin(const struct turn_work *work);
int onesided_accumulate(const struct turn_work *work, uint64_t iterations);
int onesided_accumulate_end(const struct turn_work *work, struct turn_result *result);
int onesided_add(const struct turn_work *work, uint64_t iterations);

/* onesided_added() compares what the turns of onesided_add() have added up to. */
int onesided_added(const struct turn_work *work, struct turn_result *result);

/* onesided_doubles() tells whether a work is a vector of doubles that fits. */
bool onesided_doubles(const struct turn_work *work);

/* onesided_word() tells whether a work is one of the atomics, of 8 bytes. */
bool onesided_word(const struct turn_work *work);

#endif
