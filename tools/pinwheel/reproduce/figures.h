/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registry of figures that `pinwheel reproduce` runs: what a figure shows, of which paper,
 * which program makes each of its values, what it is expected to be, and what the paper says of it.
 *
 * A value is a time, or a number of something else (`unit`). Its expectation is computed by
 * tests/sim/reference/spin_figures.py and firehose_figures.py, which know neither the simulator nor
 * the library; a test compares this table with them.
 */
#ifndef PINWHEEL_REPRODUCE_FIGURES_H
#define PINWHEEL_REPRODUCE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIGURE_WAYS = 4 };

/* What is run once for each way: PROGRAM BYTES WAY, which prints a line that ends with "N ps". A
 * figure that is `alone` is run without `pinwheel sim`, as PROGRAM NAME RANKS BYTES WAY. */
struct figure_row {
    const char *nic;
    uint32_t ranks, bytes;          /* bytes: in the unit of the figure's `size` */
    bool quick;                     /* it takes no more than seconds */
    uint64_t expected[FIGURE_WAYS]; /* ps, or the figure's unit */
};

/* What is expected of a value that there cannot be: the program prints "fails". FIGURE_OPEN:
 * nothing is expected of the value itself, only of what the anchors say. */
#define FIGURE_FAILS UINT64_MAX
#define FIGURE_OPEN UINT64_C(0)

/* An `alone` program with this status has said why the value is not to be had here. */
enum { FIGURE_NOT_HERE = 77 };

enum anchor_kind {
    ANCHOR_LESS,   /* by which part a way takes less time than another */
    ANCHOR_MORE,   /* how much more of it fits into the time of another */
    ANCHOR_GROWS,  /* by which part a way takes more time than at the size `base` */
    ANCHOR_SLOWER, /* the same, and the wanted value is the least that will do */
    ANCHOR_FASTER, /* as ANCHOR_LESS, and the wanted value is the least that will do */
};

/* What the paper says of one row. */
struct figure_anchor {
    const char *says, *source;
    enum anchor_kind kind;
    int way, than; /* indices */
    const char *nic;
    uint32_t ranks, bytes;
    double wanted;
    uint32_t base;    /* bytes of another row */
    double tolerance; /* 0: ANCHOR_TOLERANCE */
};

struct figure {
    const char *name, *paper, *title, *program;
    const char *folder; /* of the build, where the program is; NULL: bench */
    bool by_ranks;      /* the horizontal axis: ranks; else bytes */
    int ways;
    const char *way[FIGURE_WAYS];
    const struct figure_row *rows;
    size_t row_count;
    const struct figure_anchor *anchors;
    size_t anchor_count;
    const char *why; /* why it misses, if it is known to; NULL */
    bool alone;
    const char *unit; /* of a value; NULL: ps */
    const char *size; /* what `bytes` is; NULL: bytes */
    /* Of traces of programs: their names, which `bytes` numbers. The program is run as PROGRAM NAME
     * RANKS TRACE WAY NIC COMMAND; COMMAND is this one. */
    const char *const *trace;
    /* Of `pinwheel sim`: */
    uint32_t hpus;       /* 0: as many as the machine has */
    unsigned cycles;     /* a bit for each way whose handlers run on RV32 cores of FIGURE_HPU_MHZ */
    bool side_by_side;   /* handlers of several messages of a sender run at a time */
    bool way_is_handler; /* a way is the time of a handler */
    bool size_is_packet; /* packets are as long as `bytes` */
    bool fitted;         /* the fitted parameters are so that it comes out right */
    double tolerance;    /* 0: FIGURE_TOLERANCE */
};

#define FIGURE_ROWS(table) .rows = table, .row_count = sizeof(table) / sizeof((table)[0])
#define FIGURE_ANCHORS(table) .anchors = table, .anchor_count = sizeof(table) / sizeof((table)[0])

/* What is fitted, from figure 7a: the clock at which RV32 cores that count by the table `arm` take
 * as long as an A15 of 2.5 GHz, whose cycles per cycle of the table are 2500 / FIGURE_HPU_MHZ; and
 * how fast a program unpacks (bench/figures/figure_7a.c). */
enum { FIGURE_HPU_MHZ = 4120 };
#define FIGURE_HOST_COPY "10.6 GB/s"

/* A value may be off its expectation by this part, an anchor by so much. */
#define FIGURE_TOLERANCE 0.03
#define ANCHOR_TOLERANCE 0.05

extern const struct figure figure_spin_3b, figure_spin_3c, figure_spin_3d, figure_spin_4,
    figure_spin_5a, figure_spin_5b, figure_spin_5c, figure_spin_7a, figure_spin_7c,
    figure_firehose_3, figure_firehose_3_live, figure_firehose_7, figure_firehose_8;

extern const struct figure *const figures[];
extern const size_t figure_count;

#endif
