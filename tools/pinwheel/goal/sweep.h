/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal run --sweep`: the last finish time as a function of one parameter. */
#ifndef PINWHEEL_GOAL_SWEEP_H
#define PINWHEEL_GOAL_SWEEP_H

#include "run.h"

/* The result of one run of a sweep. */
struct sweep_point {
    uint64_t value; /* value of the parameter, as sim_parameters.value has it */
    uint64_t finish;
    uint32_t last; /* the rank that finishes last */
};

/* goal_sweep_take() reads the value of --sweep, P=A:B:N, into a struct goal_sweep. It returns
 * ARGS_GO_ON, or 2 after it has printed what is wrong. goal_sweep_check() checks that the model
 * takes A and B; it returns 0, or 2 after it has printed what is wrong. */
int goal_sweep_take(struct args *args, void *sweep);
int goal_sweep_check(struct goal_run *r);

/* goal_sweep_run() runs the open schedule with each value, prints a table or JSON, and draws the
 * picture if it was asked for. It returns the exit status. */
int goal_sweep_run(struct goal_run *r);

/* goal_sweep_draw() draws `count` points, at least 1, to the file r->svg; -1 with errno set. */
int goal_sweep_draw(const struct goal_run *r, const struct sweep_point *points, uint32_t count);

#endif
