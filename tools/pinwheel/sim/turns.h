/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may run, and who runs (turns.c). */
#ifndef PINWHEEL_SIM_TURNS_H
#define PINWHEEL_SIM_TURNS_H

#include "state.h"

/* turns_next() is when a process may run next, and turns_due() notes that after it may have
 * changed. turns_first() is the one that may run first, turns_take() takes it out; false: none may
 * run. */
uint64_t turns_next(const struct coordinator *c, uint32_t place);
void turns_due(struct coordinator *c, uint32_t rank);
bool turns_first(struct coordinator *c, struct due *first);
void turns_take(struct coordinator *c);
/* turns_expect() waits for a rank that has a turn, or is still to come; turns_give() gives one a
 * turn, as soon as one of the places is free. */
void turns_expect(struct coordinator *c, uint32_t rank);
void turns_give(struct coordinator *c, uint32_t rank);
/* turns_await_stop() waits until a process that was stopped is. */
void turns_await_stop(struct coordinator *c, uint32_t rank);
/* turns_hear() takes what an idle process has written. */
void turns_hear(struct coordinator *c, uint32_t place);
/* turns_await() waits until all turns are over; c->back then has whose they were. False: the job
 * is over. */
bool turns_await(struct coordinator *c);

#endif
