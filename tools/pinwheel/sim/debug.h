/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks and debuggers: one that is debugged may stop as long as it likes. */
#ifndef PINWHEEL_SIM_DEBUG_H
#define PINWHEEL_SIM_DEBUG_H

#include "state.h"

/* debug_holds() says whether a debugger has attached to one of those that are out. debug_await()
 * waits until one has attached to the rank of --gdb, which has come and is idle, or has ended. */
bool debug_holds(const struct coordinator *c);
void debug_await(struct coordinator *c);

#endif
