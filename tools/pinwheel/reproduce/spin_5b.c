/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 5b of the sPIN paper: matching. The rows are what `spin_figures.py 5b --memory 6.667 --put
 * 0 --program library` has, posted early and late.
 */
#include "figures.h"

static const struct figure_row rows[] = {
    {"integrated", 2, 8, false, {10051053, 10051053, 321940, 10051053}},
    {"integrated", 2, 64, false, {10051427, 10051427, 323060, 10051427}},
    {"integrated", 2, 512, false, {10054414, 10054414, 332020, 10054414}},
    {"integrated", 2, 4096, true, {10078308, 10078308, 403700, 10078308}},
    {"integrated", 2, 16384, false, {10808260, 10808260, 1025500, 10868400}},
    {"integrated", 2, 65536, false, {11791300, 11791300, 2008540, 11851440}},
    {"integrated", 2, 262144, true, {15723460, 15723460, 5940700, 15783600}},
    {"discrete", 2, 8, false, {10051053, 10051053, 721940, 10051053}},
    {"discrete", 2, 64, false, {10051427, 10051427, 723060, 10051427}},
    {"discrete", 2, 512, false, {10054414, 10054414, 732020, 10054414}},
    {"discrete", 2, 4096, true, {10078308, 10078308, 803700, 10078308}},
    {"discrete", 2, 16384, false, {11408260, 11408260, 1825500, 11668400}},
    {"discrete", 2, 65536, false, {12391300, 12391300, 2808540, 12651440}},
    {"discrete", 2, 262144, true, {16323460, 16323460, 6740700, 16583600}},
};

enum { RDMA_EARLY, RDMA_LATE, SPIN_EARLY, SPIN_LATE };

static const struct figure_anchor anchors[] = {
    {"one less copy in the small-message case", "section 5.1; the program's 10 us are left out",
     ANCHOR_FASTER, SPIN_EARLY, RDMA_EARLY, "discrete", 2, 4096, 0.9, 0, 0},
    {"completely asynchronous progress in the large-message case",
     "section 5.1; done within the "
     "program's 10 us",
     ANCHOR_FASTER, SPIN_EARLY, RDMA_EARLY, "discrete", 2, 262144, 0.5, 0, 0},
    {"late: the logic is executed by the main CPU", "section 5.1", ANCHOR_LESS, SPIN_LATE,
     RDMA_LATE, "discrete", 2, 4096, 0, 0, 0},
};

const struct figure figure_spin_5b = {
    .name = "5b",
    .paper = "spin-sc17",
    .title = "A send whose receive is posted before (early) or 10 us after (late)",
    .program = "bench_figure_5b",
    .folder = "bench",
    .ways = 4,
    .way = {"rdma-early", "rdma-late", "spin-early", "spin-late"},
    FIGURE_ROWS(rows),
    FIGURE_ANCHORS(anchors),
};
