/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a schedule cannot finish, in words.
 *
 * A run leaves a frontier: receives without a message, rendezvous sends without a
 * receive, messages that nobody took. What waits behind it follows from the
 * schedule. From each operation that waits one can ask what it waits for, and what
 * that waits for in turn; the walk ends in a cycle or at an operation whose
 * partner does not exist. One of each is told, with all its operations.
 */
#ifndef SIM_STUCK_H
#define SIM_STUCK_H

#include "sim/models/engine.h"

#include <stdio.h>

/* stuck_explain() writes to `to` which operations wait and why. It returns -1 if
 * memory is short. */
int stuck_explain(struct goal *g, const struct sim_output *out, FILE *to);

/* stuck_print_operation() writes "rank 3, operation 7 (l8, line 12 of x.goal): recv
 * of 8 bytes from rank 2, tag 1", as far as is known. */
void stuck_print_operation(struct goal *g, uint32_t rank, uint32_t op, FILE *to);

#endif
