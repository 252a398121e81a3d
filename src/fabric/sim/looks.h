/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks of a program at nothing, and those that are skipped (looks.c). */
#ifndef FABRIC_SIM_LOOKS_H
#define FABRIC_SIM_LOOKS_H

#include "fabric/sim/rank.h"

/* sim_clock_look() says that the program looks at nothing; the time of that is then still to pass.
 * sim_clock_pass_look() lets it, with the lock of the NIC, and skips the looks before this one that
 * are known to find nothing. */
void sim_clock_look(struct sim_clock *c);
void sim_clock_pass_look(struct sim_clock *c);

#endif
