/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 3d of the sPIN paper: accumulate. The rows are what `spin_figures.py 3d --memory 6.667`
 * has for `rdma` and `spin`; with `--handler 15.3 --byte 318.6` its `spin` is what is expected of
 * `cycles`: 63 cycles a call and 21 a number, which `pinwheel hpu run --timing arm` counts beside
 * the calls, at FIGURE_HPU_MHZ.
 */
#include "figures.h"

static const struct figure_row rows[] = {
    {"integrated", 2, 16, true, {363420, 422314, 432712}},
    {"integrated", 2, 32, false, {364060, 422848, 438343}},
    {"integrated", 2, 64, false, {365340, 423918, 449608}},
    {"integrated", 2, 128, false, {367900, 426056, 472137}},
    {"integrated", 2, 256, false, {373020, 430330, 517192}},
    {"integrated", 2, 512, false, {383261, 438880, 607303}},
    {"integrated", 2, 1024, false, {403741, 455982, 787528}},
    {"integrated", 2, 2048, false, {444702, 490184, 1147977}},
    {"integrated", 2, 4096, true, {526624, 558586, 1868872}},
    {"integrated", 2, 8192, false, {662468, 612506, 1922792}},
    {"integrated", 2, 16384, false, {990156, 776346, 2086632}},
    {"integrated", 2, 32768, false, {1645533, 1104026, 3561804}},
    {"integrated", 2, 65536, false, {2956286, 1759386, 6512148}},
    {"integrated", 2, 131072, false, {5577791, 3070106, 12412836}},
    {"integrated", 2, 262144, true, {10820802, 5691546, 24214212}},
    {"discrete", 2, 16, true, {763420, 1222600, 1232998}},
    {"discrete", 2, 32, false, {764060, 1223418, 1238913}},
    {"discrete", 2, 64, false, {765340, 1225056, 1250746}},
    {"discrete", 2, 128, false, {767900, 1228334, 1274415}},
    {"discrete", 2, 256, false, {773020, 1234888, 1321750}},
    {"discrete", 2, 512, false, {783261, 1247994, 1416417}},
    {"discrete", 2, 1024, false, {803741, 1274208, 1605754}},
    {"discrete", 2, 2048, false, {844702, 1326638, 1984431}},
    {"discrete", 2, 4096, true, {926624, 1431496, 2741782}},
    {"discrete", 2, 8192, false, {1072446, 1495394, 2805680}},
    {"discrete", 2, 16384, false, {1390156, 1649256, 2959542}},
    {"discrete", 2, 32768, false, {2045533, 2442680, 5057952}},
    {"discrete", 2, 65536, false, {3356286, 3846068, 9081912}},
    {"discrete", 2, 131072, false, {5977791, 6612844, 17068632}},
    {"discrete", 2, 262144, true, {11220802, 12146396, 33042072}},
};

enum { RDMA, SPIN, CYCLES };

static const struct figure_anchor anchors[] = {
    {"latency for small accumulates is higher than for RDMA", "section 4.4.2", ANCHOR_FASTER, RDMA,
     SPIN, "discrete", 2, 16, 0.05, 0, 0},
    {"large accumulates get significantly faster", "section 4.4.2", ANCHOR_FASTER, SPIN, RDMA,
     "integrated", 2, 262144, 0.05, 0, 0},
    {"large accumulates get significantly faster", "section 4.4.2", ANCHOR_FASTER, SPIN, RDMA,
     "discrete", 2, 262144, 0.05, 0, 0},
    {"large accumulates get significantly faster", "section 4.4.2", ANCHOR_FASTER, CYCLES, RDMA,
     "integrated", 2, 262144, 0.05, 0, 0},
};

const struct figure figure_spin_3d = {
    .name = "3d",
    .paper = "spin-sc17",
    .title = "Double complex products, until they are in the target's memory",
    .program = "bench_figure_3d",
    .folder = "bench",
    .ways = 3,
    .way = {"rdma", "spin", "cycles"},
    .cycles = 1U << CYCLES,
    .tolerance = 0.1,
    .why = "discrete: an HPU waits for what its handler reads; if it ran others meanwhile, 19 % "
           "faster would be expected (spin_figures.py --hpu-waits threads). cycles: 8 a number "
           "instead of 21 would do",
    FIGURE_ROWS(rows),
    FIGURE_ANCHORS(anchors),
};
