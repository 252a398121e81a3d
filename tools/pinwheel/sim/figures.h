/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registry of figures that `pinwheel reproduce` runs: what a figure shows, of which paper,
 * which program makes each of its values, what it is expected to be, and what the paper says of it.
 *
 * A value is a time. Its expectation is computed by tests/sim/reference/spin_figures.py, which does
 * not know the simulator; a test compares this table with it.
 */
#ifndef PINWHEEL_SIM_FIGURES_H
#define PINWHEEL_SIM_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIGURE_WAYS = 4 };

/* What is run once for each way: PROGRAM BYTES WAY, which prints a line that ends with "N ps". */
struct figure_row {
    const char *nic;
    uint32_t ranks, bytes;
    bool quick;                     /* it takes no more than seconds */
    uint64_t expected[FIGURE_WAYS]; /* ps */
};

enum anchor_kind {
    ANCHOR_LESS, /* by which part a way takes less time than another */
    ANCHOR_MORE, /* how much more of it fits into the time of another */
};

/* What the paper says of one row. */
struct figure_anchor {
    const char *says, *source;
    enum anchor_kind kind;
    int way, than; /* indices */
    const char *nic;
    uint32_t ranks, bytes;
    double wanted;
};

struct figure {
    const char *name, *paper, *title, *program;
    bool by_ranks; /* the horizontal axis: ranks; else bytes */
    int ways;
    const char *way[FIGURE_WAYS];
    const struct figure_row *rows;
    size_t row_count;
    const struct figure_anchor *anchors;
    size_t anchor_count;
    const char *why; /* why it misses, if it is known to; NULL */
};

/* A value may be off its expectation by this part, an anchor by so much. */
#define FIGURE_TOLERANCE 0.03
#define ANCHOR_TOLERANCE 0.05

extern const struct figure figures[];
extern const size_t figure_count;

#endif
