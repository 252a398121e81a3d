/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a schedule cannot finish, in words.
 *
 * A run that cannot finish ends with operations left over: receives without a message, rendezvous
 * sends without a receive, messages that no receive took. Which operations wait for these follows
 * from the schedule. The search goes from an operation to the one that it waits for, and on from
 * there; this walk ends in a cycle, or at an operation whose partner does not exist.
 * stuck_explain() prints a cycle with its operations, and the first operations without a partner.
 */
#ifndef SIM_STUCK_H
#define SIM_STUCK_H

#include "sim/models/engine.h"

#include <stdio.h>

/* stuck_explain() writes to `to` which operations wait and for what. It returns -1 if memory is
 * short. */
int stuck_explain(struct goal *g, const struct sim_output *out, FILE *to);

/* stuck_print_operation() writes "rank 3, operation 7 (l8, line 12 of x.goal): recv of 8 bytes from
 * rank 2, tag 1", as far as the schedule tells. */
void stuck_print_operation(struct goal *g, uint32_t rank, uint32_t op, FILE *to);

#endif
