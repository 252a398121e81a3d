/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures 3b, 3c of the sPIN paper: ping-pong. The rows are what `spin_figures.py FIGURE --json`
 * prints, in ps. */
#include "figures.h"

#define PAPER "spin-sc17"
#define SLIDES "slides of the paper's talk; the size is not said"

static const struct figure_row integrated_3b[] = {
    {"integrated", 2, 8, true, {311940, 279440, 234440, 234440}},
    {"integrated", 2, 16, false, {312100, 279600, 234600, 234600}},
    {"integrated", 2, 32, false, {312420, 279920, 234920, 234920}},
    {"integrated", 2, 64, true, {313060, 280560, 235560, 235560}},
    {"integrated", 2, 128, false, {314340, 281840, 236840, 236840}},
    {"integrated", 2, 256, false, {316900, 284400, 239400, 239400}},
    {"integrated", 2, 512, true, {322020, 289520, 244520, 244520}},
    {"integrated", 2, 1024, false, {332260, 299760, 254760, 254760}},
    {"integrated", 2, 2048, false, {352740, 320240, 275240, 275240}},
    {"integrated", 2, 4096, true, {393700, 361200, 316200, 316200}},
    {"integrated", 2, 8192, true, {447620, 415120, 420120, 357160}},
    {"integrated", 2, 16384, false, {611460, 578960, 583960, 439080}},
    {"integrated", 2, 32768, false, {939140, 906640, 911640, 602920}},
    {"integrated", 2, 65536, true, {1594500, 1562000, 1567000, 930600}},
    {"integrated", 2, 131072, false, {2905220, 2872720, 2877720, 1585960}},
    {"integrated", 2, 262144, true, {5526660, 5494160, 5499160, 2896680}},
};

static const struct figure_row discrete_3c[] = {
    {"discrete", 2, 8, true, {711940, 679440, 434440, 434440}},
    {"discrete", 2, 16, false, {712100, 679600, 434600, 434600}},
    {"discrete", 2, 32, false, {712420, 679920, 434920, 434920}},
    {"discrete", 2, 64, true, {713060, 680560, 435560, 435560}},
    {"discrete", 2, 128, false, {714340, 681840, 436840, 436840}},
    {"discrete", 2, 256, false, {716900, 684400, 439400, 439400}},
    {"discrete", 2, 512, true, {722020, 689520, 444520, 444520}},
    {"discrete", 2, 1024, false, {732260, 699760, 454760, 454760}},
    {"discrete", 2, 2048, false, {752740, 720240, 475240, 475240}},
    {"discrete", 2, 4096, true, {793700, 761200, 516200, 516200}},
    {"discrete", 2, 8192, true, {857598, 825098, 825109, 557160}},
    {"discrete", 2, 16384, false, {1011460, 978960, 983960, 639080}},
    {"discrete", 2, 32768, false, {1339140, 1306640, 1311640, 802920}},
    {"discrete", 2, 65536, true, {1994500, 1962000, 1967000, 1130600}},
    {"discrete", 2, 131072, false, {3305220, 3272720, 3277720, 1785960}},
    {"discrete", 2, 262144, true, {5926660, 5894160, 5899160, 3096680}},
};

enum { RDMA, TRIGGERED, STORED, STREAMED };

static const struct figure_anchor anchors_3b[] = {
    {"32 % more bandwidth than RDMA", SLIDES, ANCHOR_MORE, STREAMED, RDMA, "integrated", 2, 8, 0.32,
     0, 0},
};

static const struct figure_anchor anchors_3c[] = {
    {"35 % lower latency than RDMA", SLIDES, ANCHOR_LESS, STREAMED, RDMA, "discrete", 2, 4096, 0.35,
     0, 0},
};

const struct figure figure_spin_3b = {
    .name = "3b",
    .paper = PAPER,
    .title = "Half round trip, integrated NIC",
    .program = "pingpong",
    .folder = "examples",
    .ways = 4,
    .way = {"rdma", "triggered", "stored", "streamed"},
    FIGURE_ROWS(integrated_3b),
    FIGURE_ANCHORS(anchors_3b),
};

const struct figure figure_spin_3c = {
    .name = "3c",
    .paper = PAPER,
    .title = "Half round trip, discrete NIC",
    .program = "pingpong",
    .folder = "examples",
    .ways = 4,
    .way = {"rdma", "triggered", "stored", "streamed"},
    FIGURE_ROWS(discrete_3c),
    FIGURE_ANCHORS(anchors_3c),
};
