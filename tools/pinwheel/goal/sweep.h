/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal run --sweep`: the last finish as a function of one parameter. */
#ifndef PINWHEEL_GOAL_SWEEP_H
#define PINWHEEL_GOAL_SWEEP_H

#include "run.h"

/* The result of one run of a sweep. */
struct sweep_point {
    uint64_t value; /* as in sim_parameters.value */
    uint64_t finish;
    uint32_t last; /* the rank that has it */
};

/* goal_sweep_take() takes the value of --sweep, P=A:B:N, into a struct goal_sweep. It returns
 * ARGS_GO_ON, or 2 after it has said what is wrong. goal_sweep_check() says whether the model takes
 * A and B, in the same way. */
int goal_sweep_take(struct args *args, void *sweep);
int goal_sweep_check(struct goal_run *r);

/* goal_sweep_run() runs the open schedule with every value and prints a table, or
 * JSON, and draws the picture that was asked for. It returns the exit status. */
int goal_sweep_run(struct goal_run *r);

/* goal_sweep_draw() draws `count` points, at least 1, into r->svg; -1 with errno set. */
int goal_sweep_draw(const struct goal_run *r, const struct sweep_point *points, uint32_t count);

#endif
