/* SPDX-License-Identifier: BSD-3-Clause */
/* Figure 5a of the sPIN paper: broadcast. The rows are what `spin_figures.py 5a --json` prints, in
 * ps. */
#include "figures.h"

#define TEXT "section 4.4.3; the size is not said: at 8 B it would be 29 and 19 %"

enum { RDMA, TRIGGERED, CAST_STREAMED };

static const struct figure_row broadcast_5a[] = {
    {"integrated", 4, 8, true, {623880, 558880, 482934}},
    {"integrated", 8, 8, false, {935820, 805820, 643874}},
    {"integrated", 16, 8, true, {1247760, 1052760, 804814}},
    {"integrated", 32, 8, false, {1559700, 1299700, 965754}},
    {"integrated", 64, 8, true, {2372040, 2047040, 1627094}},
    {"integrated", 128, 8, false, {2850780, 2460780, 1954834}},
    {"integrated", 256, 8, false, {3329520, 2874520, 2282574}},
    {"integrated", 512, 8, false, {3808260, 3288260, 2610314}},
    {"integrated", 1024, 8, false, {4620600, 4035600, 3271654}},
    {"integrated", 4, 65536, true, {3189000, 3124000, 3131443}},
    {"integrated", 8, 65536, false, {4783500, 4653500, 4602943}},
    {"integrated", 16, 65536, true, {6378000, 6183000, 6074443}},
    {"integrated", 32, 65536, false, {7972500, 7712500, 7545943}},
    {"integrated", 64, 65536, true, {10067400, 9742400, 9517843}},
    {"integrated", 128, 65536, false, {11828700, 11438700, 11156143}},
    {"integrated", 256, 65536, false, {13590000, 13135000, 12794443}},
    {"integrated", 512, 65536, false, {15351300, 14831300, 14432743}},
    {"integrated", 1024, 65536, false, {17446200, 16861200, 16404643}},
    {"discrete", 4, 8, true, {1423880, 1358880, 883005}},
    {"discrete", 8, 8, false, {2135820, 2005820, 1043945}},
    {"discrete", 16, 8, true, {2847760, 2652760, 1204885}},
    {"discrete", 32, 8, false, {3559700, 3299700, 1365825}},
    {"discrete", 64, 8, true, {4772040, 4447040, 2027165}},
    {"discrete", 128, 8, false, {5650780, 5260780, 2354905}},
    {"discrete", 256, 8, false, {6529520, 6074520, 2682645}},
    {"discrete", 512, 8, false, {7408260, 6888260, 3010385}},
    {"discrete", 1024, 8, false, {8620600, 8035600, 3671725}},
    {"discrete", 4, 65536, true, {3989000, 3924000, 3567898}},
    {"discrete", 8, 65536, false, {5983500, 5853500, 5039398}},
    {"discrete", 16, 65536, true, {7978000, 7783000, 6510898}},
    {"discrete", 32, 65536, false, {9972500, 9712500, 7982398}},
    {"discrete", 64, 65536, true, {12467400, 12142400, 9954298}},
    {"discrete", 128, 65536, false, {14628700, 14238700, 11592598}},
    {"discrete", 256, 65536, false, {16790000, 16335000, 13230898}},
    {"discrete", 512, 65536, false, {18951300, 18431300, 14869198}},
    {"discrete", 1024, 65536, false, {21446200, 20861200, 16841098}},
};

static const struct figure_anchor anchors_5a[] = {
    {"7 % faster than RDMA at 1,024 ranks", TEXT, ANCHOR_LESS, CAST_STREAMED, RDMA, "integrated",
     1024, 65536, 0.07, 0, 0},
    {"5 % faster than Portals 4 at 1,024 ranks", TEXT, ANCHOR_LESS, CAST_STREAMED, TRIGGERED,
     "integrated", 1024, 65536, 0.05, 0, 0},
};

const struct figure figure_spin_5a = {
    .name = "5a",
    .paper = "spin-sc17",
    .title = "Broadcast along a binomial tree, until the last rank has it",
    .program = "broadcast",
    .folder = "examples",
    .by_ranks = true,
    .ways = 3,
    .way = {"rdma", "triggered", "streamed"},
    FIGURE_ROWS(broadcast_5a),
    FIGURE_ANCHORS(anchors_5a),
};
