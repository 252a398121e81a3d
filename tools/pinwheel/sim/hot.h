/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where handlers of RV32 code have spent their cycles (`pinwheel sim --profile`): by handler,
 * function and source line, of all ranks together.
 */
#ifndef PINWHEEL_SIM_HOT_H
#define PINWHEEL_SIM_HOT_H

#include "coordinator.h"

#include <stdio.h>

struct sim_hot {
    uint32_t ranks;
    bool full; /* a rank had no room for some places */
    size_t count;
    struct sim_spent row[]; /* most cycles first */
};

/* hot_take() reads what the ranks of a job that is over have noted, for the caller to free; NULL:
 * no memory. */
struct coordinator;
struct sim_hot *hot_take(const struct coordinator *c);
/* hot_print() prints tables, hot_json() an array. */
void hot_print(const struct sim_hot *h, FILE *to);
void hot_json(const struct sim_hot *h, FILE *to);

#endif
