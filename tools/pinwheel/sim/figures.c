/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry of figures; see figures.h. */
#include "figures.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define SC17 "spin-sc17"
#define SLIDES "slides of the paper's talk; the size is not said"
#define FIREHOSE_SMP "firehose-smp"
#define TEXT_3 "section 3.2"
#define TEXT "section 4.4.3; the size is not said: at 8 B it would be 29 and 19 %"

/* The rows are what `spin_figures.py FIGURE --json` prints, in ps. */

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

/* Of the Firehose paper. The sizes are MB; what `firehose_figures.py FIGURE SIZE WAY` prints. */

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
enum { RDMA, TRIGGERED, STORED, STREAMED, CAST_STREAMED = 2 };

static const struct figure_anchor anchors_3b[] = {
    {"32 % more bandwidth than RDMA", SLIDES, ANCHOR_MORE, STREAMED, RDMA, "integrated", 2, 8, 0.32,
     0, 0},
};

static const struct figure_anchor anchors_3c[] = {
    {"35 % lower latency than RDMA", SLIDES, ANCHOR_LESS, STREAMED, RDMA, "discrete", 2, 4096, 0.35,
     0, 0},
};

static const struct figure_anchor anchors_5a[] = {
    {"7 % faster than RDMA at 1,024 ranks", TEXT, ANCHOR_LESS, CAST_STREAMED, RDMA, "integrated",
     1024, 65536, 0.07, 0, 0},
    {"5 % faster than Portals 4 at 1,024 ranks", TEXT, ANCHOR_LESS, CAST_STREAMED, TRIGGERED,
     "integrated", 1024, 65536, 0.05, 0, 0},
};

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

#define PING_WAYS                                                                                  \
    4,                                                                                             \
    {                                                                                              \
        "rdma", "triggered", "stored", "streamed"                                                  \
    }
#define PIN_WAYS                                                                                   \
    3,                                                                                             \
    {                                                                                              \
        "firehose", "kept", "unpinned"                                                             \
    }
#define RATE_WAYS                                                                                  \
    3,                                                                                             \
    {                                                                                              \
        "all", "slowest", "fastest"                                                                \
    }
#define CAST_WAYS                                                                                  \
    3,                                                                                             \
    {                                                                                              \
        "rdma", "triggered", "streamed"                                                            \
    }

const struct figure figures[] = {
    {"3b", SC17, "Half round trip, integrated NIC", "pingpong", false, PING_WAYS, integrated_3b,
     COUNT(integrated_3b), anchors_3b, COUNT(anchors_3b), NULL, false, NULL, NULL},
    {"3c", SC17, "Half round trip, discrete NIC", "pingpong", false, PING_WAYS, discrete_3c,
     COUNT(discrete_3c), anchors_3c, COUNT(anchors_3c), NULL, false, NULL, NULL},
    {"5a", SC17, "Broadcast along a binomial tree, until the last rank has it", "broadcast", true,
     CAST_WAYS, broadcast_5a, COUNT(broadcast_5a), anchors_5a, COUNT(anchors_5a), NULL, false, NULL,
     NULL},
    {"3", FIREHOSE_SMP, "Puts of 64 KiB to a working set, M = 400 MB, MAXVICTIM = 50 MB",
     "bench_firehose_figure", false, PIN_WAYS, firehose_3, COUNT(firehose_3), anchors_firehose_3,
     COUNT(anchors_firehose_3), NULL, true, NULL, "MB"},
    {"3live", FIREHOSE_SMP, "Puts of 64 KiB to a working set, with mlock", "bench_firehose_figure",
     false, PIN_WAYS, firehose_3_live, COUNT(firehose_3_live), anchors_firehose_3_live,
     COUNT(anchors_firehose_3_live), NULL, true, NULL, "% of M"},
    {"7",
     FIREHOSE_SMP,
     "GUPS by four threads: misses of a node",
     "bench_firehose_figure",
     false,
     2,
     {"4x1", "2x2"},
     firehose_7,
     COUNT(firehose_7),
     anchors_firehose_7,
     COUNT(anchors_firehose_7),
     NULL,
     true,
     "misses",
     "MB"},
    {"8", FIREHOSE_SMP, "Puts of 32 KiB by threads that share 8 firehoses", "bench_firehose_figure",
     false, RATE_WAYS, firehose_8, COUNT(firehose_8), anchors_firehose_8, COUNT(anchors_firehose_8),
     NULL, true, NULL, "threads"},
};

const size_t figure_count = COUNT(figures);
