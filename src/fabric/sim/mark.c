/* SPDX-License-Identifier: BSD-3-Clause */
/* Phases of a program, noted in its rank's record, which outlives it. */
#include "fabric/sim/mark.h"

#include <stdio.h>
#include <string.h>

/* The place of a phase, which it gets when it first begins. */
static uint32_t find(struct sim_rank *r, const char *name)
{
    uint32_t i = 0;
    while (i < r->phases && strncmp(r->phase[i].name, name, SIM_NAME - 1) != 0) {
        i++;
    }
    if (i < SIM_PHASES - 1 && i == r->phases) {
        snprintf(r->phase[i].name, SIM_NAME, "%s", name);
        r->phases++;
    } else if (i == r->phases || i == SIM_PHASES - 1) {
        i = SIM_PHASES - 1;
        memcpy(r->phase[i].name, "(others)", sizeof("(others)"));
        r->phases = SIM_PHASES;
    }
    return i;
}

void sim_mark(struct sim_rank *r, uint64_t now, const char *name)
{
    struct sim_taken taken = sim_taken(r, now);
    if (r->phase_open != 0) {
        sim_taken_add(&r->phase[(r->phase_open - 1) % SIM_PHASES].taken, &r->phase_began, &taken);
    }
    r->phase_open = 0;
    if (name != NULL && name[0] != '\0') {
        uint32_t i = find(r, name);
        r->phase[i].first = r->phase[i].begun++ == 0 ? now : r->phase[i].first;
        r->phase_began = taken;
        r->phase_open = i + 1;
    }
}
