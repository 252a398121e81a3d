/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 4 of the sPIN paper, by running it: 8 HPUs, packets at line rate. The rows are what
 * `spin_figures.py 4 --times 53,60,640,700` has as time between two packets, in ps.
 */
#include "figures.h"

static const struct figure_row rows[] = {
    {"discrete", 2, 64, true, {6700, 7494, 79486, 86934}},
    {"discrete", 2, 128, false, {6700, 7494, 79486, 86934}},
    {"discrete", 2, 256, false, {6700, 7494, 79486, 86934}},
    {"discrete", 2, 320, true, {6700, 7494, 79486, 86934}},
    {"discrete", 2, 384, false, {7680, 7680, 79493, 86941}},
    {"discrete", 2, 512, false, {10240, 10240, 79511, 86959}},
    {"discrete", 2, 1024, false, {20480, 20480, 79583, 87030}},
    {"discrete", 2, 2048, false, {40960, 40960, 79726, 87174}},
    {"discrete", 2, 4096, true, {81920, 81920, 81920, 87461}},
};

enum { NS_53, NS_60, NS_640, NS_700 };

static const struct figure_anchor anchors[] = {
    {"handlers of 53 ns: any packet size", "section 4.4.2", ANCHOR_GROWS, NS_53, 0, "discrete", 2,
     320, 0, 64, 0.01},
    {"and no more", "section 4.4.2", ANCHOR_FASTER, NS_53, NS_60, "discrete", 2, 320, 0.05, 0, 0},
    {"full 4 KiB packets: 650 ns", "section 4.4.2", ANCHOR_LESS, NS_640, NS_53, "discrete", 2, 4096,
     0, 0, 0.01},
    {"and no more", "section 4.4.2", ANCHOR_FASTER, NS_53, NS_700, "discrete", 2, 4096, 0.05, 0, 0},
};

const struct figure figure_spin_4 = {
    .name = "4",
    .paper = "spin-sc17",
    .title = "Time between packets at line rate, 8 HPUs, by the time of a handler",
    .program = "bench_figure_4",
    .folder = "bench",
    .ways = 4,
    .way = {"53ns", "60ns", "640ns", "700ns"},
    .way_is_handler = true,
    .size_is_packet = true,
    .hpus = 8,
    FIGURE_ROWS(rows),
    FIGURE_ANCHORS(anchors),
};
