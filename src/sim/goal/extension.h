/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals and sPIN operations of GOAL (LogGOPSim's sPIN extension): put, get, append, their
 * triggered forms, test and calcgem5. The compiler reads them, so that it can report a syntax error
 * as such, and then refuses them: to run them takes the simulated NIC.
 */
#ifndef SIM_GOAL_EXTENSION_H
#define SIM_GOAL_EXTENSION_H

#include "scan.h"

/* goal_extension_is() is true if `word` is one of these operations. */
bool goal_extension_is(const struct goal_word *word);

/* goal_extension_refuse() reads the rest of the line behind `word` and always returns -1, with an
 * error: the syntax error in the line, or else the refusal. */
int goal_extension_refuse(struct goal_scan *s, const struct goal_word *word);

#endif
