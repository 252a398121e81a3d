/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `pinwheel reproduce` has found of a figure: run (reproduce.c, value.c), held against what is
 * expected (judge.c), printed (print.c) and drawn (plot.c).
 */
#ifndef PINWHEEL_REPRODUCE_H
#define PINWHEEL_REPRODUCE_H

#include "figures.h"

#include "pinwheel/util/json.h"

struct found {
    const struct figure *figure;
    const bool *ran;               /* by row */
    uint64_t (*time)[FIGURE_WAYS]; /* ps, by row */
    size_t values, misses;         /* that were run; that are off their expectation */
    size_t rows, missing;          /* that were run; that are not to be had here */
    double worst;                  /* how far the one is off that is off most */
    size_t worst_row;
    int worst_way;
};

/* reproduce_size() is what the sizes of a figure's rows are. */
static inline const char *reproduce_size(const struct figure *f)
{
    return f->size != NULL ? f->size : f->trace != NULL ? "trace" : "bytes";
}

/* reproduce_of() writes the size of a row, "64 B" or, without a unit, "64", or the name of its
 * trace. */
enum { REPRODUCE_OF = 48 };
const char *reproduce_of(const struct figure *f, uint32_t size, bool unit, char text[REPRODUCE_OF]);

/* reproduce_tolerance() is by which part a value may be off, reproduce_off() by which it is;
 * reproduce_judge() counts a value that was run. */
double reproduce_tolerance(const struct figure *f);
double reproduce_off(uint64_t found, uint64_t expected);
void reproduce_judge(struct found *f, size_t row, int way);

/* reproduce_anchor() is an anchor's value, NAN if its row was not run; reproduce_verdict() says
 * whether it holds, reproduce_succeeds() whether the figure does. */
double reproduce_anchor(const struct found *f, const struct figure_anchor *a);
const char *reproduce_verdict(double value, const struct figure_anchor *a);
bool reproduce_succeeds(const struct found *f);

void reproduce_print_table(const struct found *f);
void reproduce_print_verdict(const struct found *f);
void reproduce_print_json(struct json *j, const struct found *f);

/* reproduce_draw() draws the pictures of a figure into a folder, one for each machine, and size if
 * the axis has ranks, with their data beside them; -1 with errno set. */
int reproduce_draw(const struct found *f, const char *folder);

#endif
