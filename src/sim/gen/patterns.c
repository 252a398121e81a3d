/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of the patterns and their names. A pattern that LogGOPSim's schedule generator has,
 * too, has the same name and makes the same operations in the same order, so that results can be
 * compared. The names of the others say what they do and by which algorithm.
 */
#include "gen.h"

enum {
    MESSAGE = GOAL_USES_SIZE,
    ALLREDUCE = GOAL_USES_SIZE | GOAL_USES_REDUCE,
    ROOTED = GOAL_USES_SIZE | GOAL_USES_ROOT,
    PIECES = GOAL_USES_SIZE | GOAL_USES_ROOT | GOAL_USES_SEGMENT,
    REDUCED = PIECES | GOAL_USES_REDUCE,
    RADIX = GOAL_USES_RADIX,
    TIMES = GOAL_USES_SIZE | GOAL_USES_ITERATIONS,
    EXCHANGE = TIMES | GOAL_USES_CALC | GOAL_USES_OPEN,
    STENCIL = EXCHANGE | GOAL_USES_EXTENT,
    INCAST = TIMES | GOAL_USES_ROOT | GOAL_USES_SOURCE | GOAL_USES_LATE | GOAL_USES_ORDER,
};

/* PATTERN() is a row whose function is gen_NAME(); PATTERN_BY() is a row with any function. */
#define PATTERN(called, ...) PATTERN_BY(called, gen_##called, __VA_ARGS__)
#define PATTERN_BY(called, function, says, of, ...)                                                \
    {                                                                                              \
        .name = #called, .make = (function), .summary = (says), .uses = (of), ##__VA_ARGS__        \
    }

const struct goal_pattern goal_patterns[] = {
    PATTERN(binomialtreebcast, "broadcast along a binomial tree", ROOTED),
    PATTERN(bcast_binary, "broadcast along a binary tree", PIECES),
    PATTERN(bcast_knomial, "broadcast along a k-nomial tree", PIECES | RADIX, .radix = 4),
    PATTERN(bcast_linear, "broadcast, the root to each", PIECES),
    PATTERN(bcast_chains, "broadcast along chains, in segments", PIECES | RADIX, .radix = 1,
            .segment = 4096),
    PATTERN(pipelinedring, "broadcast along a ring, in segments", PIECES, .segment = 4096),
    PATTERN(bcast_ring, "broadcast, a half each way round, in segments", PIECES, .segment = 4096),
    PATTERN(bcast_scatter_allgather, "broadcast as scatter, then ring of chunks", ROOTED),
    PATTERN(binomialtreereduce, "reduction along a binomial tree", ROOTED | GOAL_USES_REDUCE),
    PATTERN(reduce_binary, "reduction along a binary tree", REDUCED),
    PATTERN(reduce_knomial, "reduction along a k-nomial tree", REDUCED | RADIX, .radix = 4),
    PATTERN(reduce_linear, "reduction, each to the root", REDUCED),
    PATTERN(reduce_chains, "reduction along chains, in segments", REDUCED | RADIX, .radix = 1,
            .segment = 4096),
    PATTERN(gather_binomial, "gather along a binomial tree", ROOTED, .grows = true),
    PATTERN(gather_binary, "gather along a binary tree", ROOTED, .grows = true),
    PATTERN(gather_knomial, "gather along a k-nomial tree", ROOTED | RADIX, .radix = 4,
            .grows = true),
    PATTERN(gather_linear, "gather, each to the root", ROOTED),
    PATTERN(scatter_binomial, "scatter along a binomial tree", ROOTED, .grows = true),
    PATTERN(scatter_binary, "scatter along a binary tree", ROOTED, .grows = true),
    PATTERN(scatter_knomial, "scatter along a k-nomial tree", ROOTED | RADIX, .radix = 4,
            .grows = true),
    PATTERN(scatter_linear, "scatter, the root to each", ROOTED),
    PATTERN(dissemination, "messages over distances 1, 2, 4, ... (LogGOPSim's)", MESSAGE),
    PATTERN(barrier_dissemination, "barrier over distances 1, k, k^2, ...", MESSAGE | RADIX,
            .radix = 2),
    PATTERN(allgather_ring, "allgather, blocks go round", MESSAGE),
    PATTERN(allgather_recdoub, "allgather with partners 1, 2, 4, ... away", MESSAGE, .grows = true),
    PATTERN(allgather_bruck, "allgather from ranks 1, 2, 4, ... further on", MESSAGE,
            .grows = true),
    PATTERN(reduce_scatter_ring, "reduce-scatter, chunks go round", ALLREDUCE),
    PATTERN(allreduce_ring, "ring of chunks, reduced, then gathered", ALLREDUCE),
    PATTERN(allreduce_recdoub, "exchange with partners 1, 2, 4, ... away", ALLREDUCE),
    PATTERN(allreduce_rabenseifner, "recursive halving, then doubling", ALLREDUCE),
    PATTERN(allreduce_swing_latency, "Swing: all data over distances 1, 1, 3, 5, 11, ...",
            ALLREDUCE | GOAL_USES_EXTENT),
    PATTERN(allreduce_swing_bandwidth, "Swing: reduce-scatter, then allgather",
            ALLREDUCE | GOAL_USES_EXTENT),
    PATTERN(linear_alltoall, "each rank to each other", MESSAGE | GOAL_USES_ORDER),
    PATTERN(alltoall_pairwise, "each rank to each other, round by round", MESSAGE),
    PATTERN(alltoall_bruck, "all-to-all, blocks over distances 1, k, k^2, ...", MESSAGE | RADIX,
            .radix = 2, .grows = true),
    PATTERN(incast, "all ranks to the root", INCAST),
    PATTERN(outcast, "the root to all ranks", TIMES | GOAL_USES_ROOT),
    PATTERN(random_permutation, "each rank to one other, by a random permutation", TIMES),
    PATTERN_BY(exchange_1d, gen_exchange_neighbours,
               "iterations of messages with the neighbours in a line", EXCHANGE, .dimensions = 1),
    PATTERN_BY(stencil_2d, gen_exchange_neighbours, "the same in a plane", STENCIL,
               .dimensions = 2),
    PATTERN_BY(stencil_3d, gen_exchange_neighbours, "the same in space", STENCIL, .dimensions = 3),
    PATTERN_BY(stencil_4d, gen_exchange_neighbours, "the same in four dimensions", STENCIL,
               .dimensions = 4),
    PATTERN(training, "steps of training a neural network",
            GOAL_USES_ITERATIONS | GOAL_USES_REDUCE | GOAL_USES_TRAINING),
};
const int goal_pattern_count = sizeof(goal_patterns) / sizeof(goal_patterns[0]);
