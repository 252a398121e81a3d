/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals and sPIN operations of GOAL (LogGOPSim's sPIN extension): put, get,
 * append, their triggered forms, test and calcgem5. They are read, so that a slip
 * in one is told as such, and then refused: running them needs the simulated NIC.
 */
#ifndef SIM_GOAL_EXTENSION_H
#define SIM_GOAL_EXTENSION_H

#include "scan.h"

/* goal_extension_is() says whether `word` is one of these operations. */
bool goal_extension_is(const struct goal_word *word);

/* goal_extension_refuse() reads the rest of the line, after `word`, and always
 * returns -1, with the error of what is wrong in it or the refusal. */
int goal_extension_refuse(struct goal_scan *s, const struct goal_word *word);

#endif
