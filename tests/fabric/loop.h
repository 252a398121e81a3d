/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric for tests (loop.c): NICs of one process, and between them a network in virtual time in
 * which all that may happen does, as a seed decides.
 */
#ifndef TESTS_FABRIC_LOOP_H
#define TESTS_FABRIC_LOOP_H

#include "fabric/fabric.h"

extern const struct fabric_ops fabric_loop;

/* loop_seed() begins anew with delays and cuts; each poll of a fabric is one unit of time. */
void loop_seed(uint64_t seed);
/* loop_kill() ends the process of a fabric, so to say: nothing of it that is under way arrives, and
 * its NIC hears of nothing any more. It is still to be closed. */
void loop_kill(struct fabric *f);

#endif
