/* SPDX-License-Identifier: BSD-3-Clause */
/* Phases of a program, noted in its rank's record, which outlives it. */
#include "fabric/sim/mark.h"

#include "fabric/sim/note.h"

#include <stdio.h>
#include <string.h>

/* The place of a phase, which it gets when it first begins. */
static uint32_t find(struct sim_figures *f, const char *name)
{
    uint32_t i = 0;
    while (i < f->phases && strncmp(f->phase[i].name, name, SIM_NAME - 1) != 0) {
        i++;
    }
    if (i < SIM_PHASES - 1 && i == f->phases) {
        snprintf(f->phase[i].name, SIM_NAME, "%s", name);
        f->phases++;
    } else if (i == f->phases || i == SIM_PHASES - 1) {
        i = SIM_PHASES - 1;
        memcpy(f->phase[i].name, "(others)", sizeof("(others)"));
        f->phases = SIM_PHASES;
    }
    return i;
}

void sim_mark(struct sim_clock *c, const char *name)
{
    struct sim_figures *f = &c->figures;
    uint64_t now = c->now;
    struct sim_taken taken = sim_taken(f, now);
    if (f->phase_open != 0) {
        uint32_t i = (f->phase_open - 1) % SIM_PHASES;
        note_phase(c, i, f->phase_began.time);
        sim_taken_add(&f->phase[i].taken, &f->phase_began, &taken);
    }
    f->phase_open = 0;
    if (name != NULL && name[0] != '\0') {
        uint32_t i = find(f, name);
        f->phase[i].first = f->phase[i].begun++ == 0 ? now : f->phase[i].first;
        f->phase_began = taken;
        f->phase_open = i + 1;
    }
}
