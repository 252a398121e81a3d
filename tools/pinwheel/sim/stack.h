/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that hold all others up without a call: whether they spin on memory or compute, and where.
 * The process says the first (src/virtual/spins.c); this names its addresses.
 */
#ifndef PINWHEEL_SIM_STACK_H
#define PINWHEEL_SIM_STACK_H

#include "state.h"

/* stack_ask() asks those that run what they do; they answer in their own time.
 * stack_all_spin() says whether all that are out have said that they spin on memory. */
void stack_ask(struct coordinator *c);
bool stack_all_spin(const struct coordinator *c);
/* stack_tell() prints where a process is that has answered: functions, and lines of their source
 * where its files have them. stack_end() names all that spin: nothing will happen any more. */
void stack_tell(const struct coordinator *c, uint32_t place);
void stack_end(struct coordinator *c);

#endif
