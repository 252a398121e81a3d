/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of the conductor: which turns count, medians, ratios. No clock, no
 * process, so that tests can check it (tests/unit/bench_stats.c).
 *
 * The latency between two virtual cores has two modes (60 and 290 ns here) and jumps
 * between them, now and then to a third, when they are threads of one core (25 ns). A turn stands
 * between two brackets, each the half round trip of a raw ping-pong; it counts if they agree, and
 * belongs to the mode of their mean. All medians are formed within one mode, and what is compared
 * comes from rounds in which both sides were in it.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>

#define STATS_AGREE 0.15    /* brackets of a turn may differ by that, of the smaller */
#define STATS_SHARED_NS 38. /* below: two hardware threads of one core, no measurement of two */
#define STATS_NEAR_NS 120.  /* up to here: near; beyond: far */

enum stats_mode { MODE_NEAR, MODE_FAR, MODES };
extern const char *const stats_mode_names[MODES];

/* One turn: what it measured, and the mean of its brackets in ns. */
struct stats_sample {
    bool good;
    double value, raw;
};

struct stats_summary {
    int count;
    double median, low, high; /* quartiles */
};

/* Two sides over the rounds that they share. */
struct stats_pair {
    struct stats_summary ours, theirs;
    double ratio; /* of the medians */
};

/* stats_summary() gives median and quartiles, interpolated; it sorts
 * `values`. */
struct stats_summary stats_summary(double *values, int count);

/* stats_spread() is half the distance of the quartiles as a part of the median. */
double stats_spread(const struct stats_summary *s);

/* stats_agree() tells whether two brackets are of one mode. */
bool stats_agree(double before, double after);

/* stats_mode() places a bracket. */
enum stats_mode stats_mode(double raw);

/* stats_shared() tells whether the two cores were one just now, as virtual ones can be. */
bool stats_shared(double raw);

/* stats_of() summarizes the good samples of a mode, stats_compare() two sides;
 * both arrays have `rounds` samples, one a round. */
struct stats_summary stats_of(const struct stats_sample *samples, int rounds, enum stats_mode mode);
struct stats_pair stats_compare(const struct stats_sample *ours, const struct stats_sample *theirs,
                                int rounds, enum stats_mode mode);

/* stats_iterations() is how many iterations of `each` seconds take `wanted`, at
 * least 1. */
unsigned long stats_iterations(double wanted, double each);

#endif
