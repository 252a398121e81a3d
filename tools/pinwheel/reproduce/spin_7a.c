/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 7a of the sPIN paper: unpacking. The rows are what `spin_figures.py 7a` has. What is
 * fitted is fitted here, so this figure proves its shape only: FIGURE_HPU_MHZ so that blocks of 16
 * B take what is expected, the program's copy so that RDMA has 8.7 GB/s.
 */
#include "figures.h"

static const struct figure_row rows[] = {
    {"integrated", 2, 16, true, {479743727, 799175812}},
    {"integrated", 2, 32, false, {479743727, 405959812}},
    {"integrated", 2, 64, false, {479743727, 209368196}},
    {"integrated", 2, 128, true, {479743727, 111064196}},
    {"integrated", 2, 256, true, {479743727, 84409300}},
    {"integrated", 2, 512, false, {479743727, 84313300}},
    {"integrated", 2, 1024, false, {479743727, 84265304}},
    {"integrated", 2, 2048, false, {479743727, 84241304}},
    {"integrated", 2, 4096, true, {479743727, 84229303}},
    {"integrated", 2, 8192, false, {479743727, 84229303}},
    {"integrated", 2, 16384, false, {479743727, 84229303}},
    {"integrated", 2, 32768, false, {479743727, 84229303}},
    {"integrated", 2, 65536, false, {479743727, 84229303}},
    {"integrated", 2, 131072, false, {479743727, 84229303}},
    {"integrated", 2, 262144, false, {479743727, 84229303}},
    {"discrete", 2, 16, true, {480143727, 808947460}},
    {"discrete", 2, 32, false, {480143727, 415698692}},
    {"discrete", 2, 64, false, {480143727, 219090828}},
    {"discrete", 2, 128, true, {480143727, 120795079}},
    {"discrete", 2, 256, true, {480143727, 84845870}},
    {"discrete", 2, 512, false, {480143727, 84749756}},
    {"discrete", 2, 1024, false, {480143727, 84705730}},
    {"discrete", 2, 2048, false, {480143727, 84677758}},
    {"discrete", 2, 4096, true, {480143727, 84665758}},
    {"discrete", 2, 8192, false, {480143727, 84665758}},
    {"discrete", 2, 16384, false, {480143727, 84665758}},
    {"discrete", 2, 32768, false, {480143727, 84665758}},
    {"discrete", 2, 65536, false, {480143727, 84665758}},
    {"discrete", 2, 131072, false, {480143727, 84665758}},
    {"discrete", 2, 262144, false, {480143727, 84665758}},
};

enum { RDMA, SPIN };

/* 4 MiB in the time: GB/s of the paper, and of its slides. */
static const struct figure_anchor anchors[] = {
    {"nearly at line rate from 256 B on", "section 5.2", ANCHOR_GROWS, SPIN, 0, "integrated", 2,
     256, 0, 4096, 0.05},
    {"the overhead for small transfers dominates up to 256 B", "section 5.2", ANCHOR_SLOWER, SPIN,
     0, "integrated", 2, 128, 0.2, 256, 0},
    {"50 GiB/s, while RDMA remains around 8.7", "section 5.2; fitted", ANCHOR_MORE, SPIN, RDMA,
     "integrated", 2, 4096, 50.0 / 8.7 - 1, 0, 0.1},
};

const struct figure figure_spin_7a = {
    .name = "7a",
    .paper = "spin-sc17",
    .title = "4 MiB unpacked into blocks at every other place",
    .program = "bench_figure_7a",
    .folder = "bench",
    .ways = 2,
    .way = {"rdma", "spin"},
    .cycles = 1U << SPIN,
    .tolerance = 0.1,
    .fitted = true,
    FIGURE_ROWS(rows),
    FIGURE_ANCHORS(anchors),
};
