/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks of a program at nothing, and those that are skipped (looks.c). */
#ifndef FABRIC_SIM_LOOKS_H
#define FABRIC_SIM_LOOKS_H

#include "fabric/sim/rank.h"

/* sim_clock_look() says that the program looks at nothing; the time of that is then still to pass.
 * sim_clock_skip() is called before it does, with the lock of the NIC: it skips the looks that are
 * known to find nothing. sim_clock_scrub() is called after it has. */
void sim_clock_look(struct sim_clock *c);
void sim_clock_skip(struct sim_clock *c);
void sim_clock_scrub(const struct sim_clock *c);

#endif
