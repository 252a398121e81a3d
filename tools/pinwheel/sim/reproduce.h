/* SPDX-License-Identifier: BSD-3-Clause */
/* What `pinwheel reproduce` has found of a figure (reproduce.c), and its picture. */
#ifndef PINWHEEL_SIM_REPRODUCE_H
#define PINWHEEL_SIM_REPRODUCE_H

#include "figures.h"

struct found {
    const struct figure *figure;
    const bool *ran;               /* by row */
    uint64_t (*time)[FIGURE_WAYS]; /* ps, by row */
    size_t values, misses;         /* that were run; that are off their expectation */
    double worst;                  /* how far the one is off that is off most */
    size_t worst_row;
    int worst_way;
};

/* reproduce_draw() draws the pictures of a figure into a folder, one for each machine, and size if
 * the axis has ranks, with their data beside them; -1 with errno set. */
int reproduce_draw(const struct found *f, const char *folder);

#endif
