/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of the Firehose paper. The rows are what `firehose_figures.py FIGURE SIZE WAY` prints,
 * with sizes in MB. */
#include "figures.h"

#define PAPER "firehose-smp"
#define TEXT_3 "section 3.2"

static const struct figure_row firehose_3[] = {
    {"myrinet", 2, 64, true, {267500000, 297500000, 6359500000}},
    {"myrinet", 2, 100, false, {267500000, 297500000, 6359500000}},
    {"myrinet", 2, 200, false, {267500000, 297500000, 6359500000}},
    {"myrinet", 2, 300, false, {267500000, 297500000, 6359500000}},
    {"myrinet", 2, 400, true, {267500000, 297500000, 6359500000}},
    {"myrinet", 2, 425, false, {269187500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 450, true, {270785000, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 475, false, {537137500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 500, true, {905778500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 600, false, {1771645500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 800, false, {2994209500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 1000, false, {3698886000, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 2000, false, {5035210000, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 4000, false, {5743022500, FIGURE_FAILS, 6359500000}},
    {"myrinet", 2, 8000, false, {6048965500, FIGURE_FAILS, 6359500000}},
};

/* Sizes: percent of M, of which the user's limit of locked memory is 125 or a little more. Only the
 * anchors say what is expected. */
static const struct figure_row firehose_3_live[] = {
    {"this machine", 2, 25, true, {FIGURE_OPEN, FIGURE_OPEN, FIGURE_OPEN}},
    {"this machine", 2, 50, true, {FIGURE_OPEN, FIGURE_OPEN, FIGURE_OPEN}},
    {"this machine", 2, 100, true, {FIGURE_OPEN, FIGURE_OPEN, FIGURE_OPEN}},
    {"this machine", 2, 112, true, {FIGURE_OPEN, FIGURE_OPEN, FIGURE_OPEN}},
    {"this machine", 2, 150, true, {FIGURE_OPEN, FIGURE_FAILS, FIGURE_OPEN}},
    {"this machine", 2, 200, true, {FIGURE_OPEN, FIGURE_FAILS, FIGURE_OPEN}},
    {"this machine", 2, 400, true, {FIGURE_OPEN, FIGURE_FAILS, FIGURE_OPEN}},
};

static const struct figure_row firehose_7[] = {
    {"myrinet", 4, 16, true, {3072, 2048}},    {"myrinet", 4, 32, false, {6144, 4096}},
    {"myrinet", 4, 64, false, {12288, 8192}},  {"myrinet", 4, 128, false, {24576, 16384}},
    {"myrinet", 4, 256, true, {49138, 32768}}, {"myrinet", 4, 512, false, {96487, 65516}},
};

static const struct figure_row firehose_8[] = {
    {"myrinet", 2, 1, true, {163750000, 163750000, 163750000}},
    {"myrinet", 2, 2, true, {163750000, 163750000, 163750000}},
    {"myrinet", 2, 4, true, {163750000, 163750000, 163750000}},
    {"myrinet", 2, 6, true, {163750000, 163750000, 163750000}},
    {"myrinet", 2, 8, true, {163750000, 163750000, 163750000}},
};

enum { FIREHOSE, KEPT, UNPINNED, FOUR_NODES = 0, TWO_NODES, ALL = 0, SLOWEST, FASTEST };

static const struct figure_anchor anchors_firehose_3[] = {
    {"until the working set is M all are hits", TEXT_3, ANCHOR_GROWS, FIREHOSE, 0, "myrinet", 2,
     400, 0, 64, 0},
    {"degrades gracefully past M", TEXT_3, ANCHOR_SLOWER, FIREHOSE, 0, "myrinet", 2, 450, 0.01, 400,
     0},
    {"then past M + MAXVICTIM", TEXT_3, ANCHOR_SLOWER, FIREHOSE, 0, "myrinet", 2, 500, 1, 450, 0},
    {"meets rendezvous with unpin at last", TEXT_3, ANCHOR_LESS, FIREHOSE, UNPINNED, "myrinet", 2,
     8000, 0, 0, 0},
};

/* The machine decides how much slower; that it is not by chance is what these numbers say. */
static const struct figure_anchor anchors_firehose_3_live[] = {
    {"past M + MAXVICTIM it is slower than up to M", TEXT_3, ANCHOR_SLOWER, FIREHOSE, 0,
     "this machine", 2, 200, 1, 100, 0},
    {"past M it is slower than up to M", TEXT_3, ANCHOR_SLOWER, FIREHOSE, 0, "this machine", 2, 112,
     0.1, 50, 0},
    {"up to M rendezvous with unpin takes more than twice the time", TEXT_3, ANCHOR_LESS, FIREHOSE,
     UNPINNED, "this machine", 2, 50, 0.8, 0, 0.3},
};

static const struct figure_anchor anchors_firehose_7[] = {
    {"35 % fewer misses with a shared table, at 256 MB", "section 5", ANCHOR_LESS, TWO_NODES,
     FOUR_NODES, "myrinet", 4, 256, 0.35, 0, 0},
};

static const struct figure_anchor anchors_firehose_8[] = {
    {"all competing threads have a similar rate", "section 5", ANCHOR_LESS, FASTEST, SLOWEST,
     "myrinet", 2, 8, 0, 0, 0.1},
    {"the aggregate rate decreases slowly", "section 5", ANCHOR_GROWS, ALL, 0, "myrinet", 2, 8, 0,
     1, 0.1},
};

const struct figure figure_firehose_3 = {
    .name = "3",
    .paper = PAPER,
    .title = "Puts of 64 KiB to a working set, M = 400 MB, MAXVICTIM = 50 MB",
    .program = "bench_firehose_figure",
    .ways = 3,
    .way = {"firehose", "kept", "unpinned"},
    FIGURE_ROWS(firehose_3),
    FIGURE_ANCHORS(anchors_firehose_3),
    .alone = true,
    .size = "MB",
};

const struct figure figure_firehose_3_live = {
    .name = "3live",
    .paper = PAPER,
    .title = "Puts of 64 KiB to a working set, with mlock",
    .program = "bench_firehose_figure",
    .ways = 3,
    .way = {"firehose", "kept", "unpinned"},
    FIGURE_ROWS(firehose_3_live),
    FIGURE_ANCHORS(anchors_firehose_3_live),
    .alone = true,
    .size = "% of M",
};

const struct figure figure_firehose_7 = {
    .name = "7",
    .paper = PAPER,
    .title = "GUPS by four threads: misses of a node",
    .program = "bench_firehose_figure",
    .ways = 2,
    .way = {"4x1", "2x2"},
    FIGURE_ROWS(firehose_7),
    FIGURE_ANCHORS(anchors_firehose_7),
    .alone = true,
    .unit = "misses",
    .size = "MB",
};

const struct figure figure_firehose_8 = {
    .name = "8",
    .paper = PAPER,
    .title = "Puts of 32 KiB by threads that share 8 firehoses",
    .program = "bench_firehose_figure",
    .ways = 3,
    .way = {"all", "slowest", "fastest"},
    FIGURE_ROWS(firehose_8),
    FIGURE_ANCHORS(anchors_firehose_8),
    .alone = true,
    .size = "threads",
};
