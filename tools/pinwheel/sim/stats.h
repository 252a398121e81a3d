/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated job has taken, by rank: read from the memory that ranks share when all is over,
 * so that a rank which was killed has its figures, too (stats.c), and printed (stats_print.c).
 */
#ifndef PINWHEEL_SIM_STATS_H
#define PINWHEEL_SIM_STATS_H

#include "coordinator.h"

#include "pinwheel/util/json.h"

/* A phase that programs have named: of a process, or of all of them. */
struct stats_phase {
    char name[SIM_NAME];
    uint64_t begun, first; /* how often; when first, ps */
    uint64_t longest;      /* ps that a rank was in it, at most */
    uint32_t ranks;        /* processes that were */
    struct sim_taken taken;
};

/* Of a process: that of a rank, or one that was forked there. */
struct rank_stats {
    uint32_t rank, process; /* `process` is 0 for the rank's own */
    struct sim_counts counts;
    uint64_t now, lead; /* when it was last heard of, ps; how much sooner with one HPU more */
    uint64_t link_out, link_in; /* ps that the links of its host were taken */
    /* packets, and bytes, for handlers that found no room; portal table entries that flow control
     * has disabled; packet buffers that were taken at once at most */
    uint64_t lost, lost_bytes, disabled, buffers_most;
    uint64_t requests, matched, dropped; /* requests that came to it; of these, those that
                                          * an entry took, and the others */
    uint32_t phases;
    struct stats_phase phase[SIM_PHASES];
};

enum stats_resource {
    STATS_LINK,
    STATS_EGRESS,
    STATS_HPUS,
    STATS_DMA,
    STATS_HOST,
    STATS_MEMORY,
    STATS_RESOURCES
};

/* The one of a kind that was taken most, as a part of all the time. */
struct stats_use {
    double part;
    uint32_t rank; /* whose; of a channel between switches its number */
    bool inner;    /* it is such a channel */
};

struct sim_stats {
    uint32_t per_host; /* ranks that share a NIC */
    uint64_t end;      /* ps */
    uint32_t ranks, hpus, clock_mhz;
    uint64_t inner; /* ps that the most used channel between switches was taken */
    uint32_t inner_number;
    struct rank_stats rank[];
};

/* stats_take() reads the figures of a job that is over; NULL: no memory. */
struct coordinator;
struct sim_stats *stats_take(struct coordinator *c);
/* stats_sum() adds up the figures of all ranks, handlers by their names; `now` is the latest. */
void stats_sum(const struct sim_stats *s, struct rank_stats *sum);
/* stats_use() finds what was taken most. */
void stats_use(const struct sim_stats *s, struct stats_use use[STATS_RESOURCES]);
const char *stats_resource(enum stats_resource r);
/* stats_name() writes the name of a process: that of its rank, with its number behind it. */
void stats_name(const struct rank_stats *r, char *text, size_t size);
/* stats_shortage() is the time in which a call waited for an HPU, of all ranks, in ps: 0 says that
 * one more gains nothing. stats_gain() is what that gains, as far as a replay can tell
 * (fabric/sim/lead.h). */
uint64_t stats_shortage(const struct sim_stats *s);
uint64_t stats_gain(const struct sim_stats *s);

/* stats_take_phases() reads the phases of a process, whose last turn was at `now`, and
 * stats_add_phases() adds them to others, by their names; the last place has all that find none. */
void stats_take_phases(struct rank_stats *to, const struct sim_figures *f, uint64_t now);
void stats_add_phases(struct rank_stats *to, const struct rank_stats *r);
/* stats_print_phases() prints them as a table, stats_json_phases() as a member of an object. */
void stats_print_phases(const struct sim_stats *s, const struct rank_stats *sum, FILE *to);
void stats_json_phases(const struct rank_stats *r, struct json *j);

enum { STATS_LIMIT = 480 };
/* stats_limit() writes what limits the job, in words. */
void stats_limit(const struct sim_stats *s, char *text, size_t size);
/* stats_print() prints all of it as tables, stats_json() as the members of an object. */
void stats_print(const struct sim_stats *s, FILE *to);
void stats_json(const struct sim_stats *s, struct json *j);

#endif
