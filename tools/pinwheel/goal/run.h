/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the files of `pinwheel goal run`: the run that its options ask for, and
 * functions that print times.
 *
 *   run.c      options, one run
 *   results.c  its results
 *   jobs.c     finish times of the jobs of a merged schedule
 *   net.c      the packet network that --network asks for
 *   nic.c      the machine that --nic asks for
 *   sweep.c    many runs, one parameter changing
 *   path.c     the critical path of a run
 *   trace.c    its timeline, for a trace viewer
 *   timeline.c the timeline as a picture
 */
#ifndef PINWHEEL_GOAL_RUN_H
#define PINWHEEL_GOAL_RUN_H

#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"

#include "sim/goal/jobs.h"
#include "sim/models/engine.h"
#include "sim/nic/nic.h"
#include "sim/report/path.h"

/* --sweep: runs with `values` values of one parameter; 0: no sweep. */
struct goal_sweep {
    const char *text; /* the value of --sweep */
    enum sim_parameter which;
    uint64_t from, to; /* the ends, as sim_parameters.value has them */
    uint32_t values;
};

/* --network, and the options that belong to it. */
struct goal_net {
    const char *text; /* the value of --network; NULL: not given */
    const char *placement;
    struct net_spec spec;
    struct net_config config;
    struct net_graph graph;
    uint32_t *host; /* by rank: its host */
    struct sim_network network;
};

/* --nic. */
struct goal_nic {
    const char *name;       /* the value of --nic; NULL: not given */
    enum nic_copies copies; /* --matching */
    uint64_t eager;
    bool rendezvous; /* --rendezvous */
    struct nic_machine machine;
};

struct goal_run {
    struct args args;
    const char *file;
    const char *text[SIM_PARAMETERS]; /* values of -L ... -S; NULL: not given */
    const char *set;
    bool ranks, json, compat;
    struct sim_parameters parameters;
    struct sim_input in;
    struct sim_output out;
    struct goal goal;
    double seconds, processor; /* that the run took, of real time and of the processor's */
    struct goal_sweep sweep;
    const char *svg; /* file for the picture of the sweep; NULL: none */
    bool critical_path;
    const char *trace, *timeline; /* files to write; NULL: none */
    struct sim_record record;     /* open if r->in.record is set */
    struct path path;
    struct goal_net net;
    struct goal_nic nic;
    const char *noise_text; /* value of --noise; NULL: not given */
    struct sim_noise noise; /* open if r->in.noise is set */
    const char *jobs_file;  /* value of --jobs; NULL: not given */
    struct goal_jobs jobs;
};

/* goal_run_simulate() runs the schedule, and shows on a terminal how far it is. It returns 0, or 1
 * after it has printed why there are no finish times. The caller frees r->out in both cases. */
int goal_run_simulate(struct goal_run *r);

/* goal_run_written() returns the exit status after the results were printed, and prints an error if
 * that `failed`. */
int goal_run_written(int failed);

/* goal_run_print() prints the results; -1 if that failed. */
int goal_run_print(struct goal_run *r);

/* ---- The network (net.c) ---- */

/* The group of options that have no effect without --network. */
enum { GOAL_NET = 1 };

/* goal_net_begin() sets the defaults. goal_net_take() takes the value of --network,
 * goal_net_take_rate() that of a rate and goal_net_take_time() that of a time. goal_net_check()
 * checks that the options agree; it returns 0, or 2 after it has printed an error. */
void goal_net_begin(struct goal_run *r);
int goal_net_take(struct args *a, void *net);
int goal_net_take_rate(struct args *a, void *byte);
int goal_net_take_time(struct args *a, void *ps);
int goal_net_check(struct goal_run *r);

/* goal_net_open() builds the network for the open schedule, if --network was given, and places the
 * ranks on hosts. It returns 0, or 1 after it has printed an error. */
int goal_net_open(struct goal_run *r);
void goal_net_close(struct goal_run *r);

/* goal_net_channel() writes the name of a channel. */
void goal_net_channel(const struct goal_run *r, uint32_t channel, char *text, size_t size);

void goal_net_json(struct json *j, struct goal_run *r);
void goal_net_text(struct goal_run *r);

/* ---- Simulated NICs (nic.c) ---- */

/* goal_nic_take() takes the value of --nic. goal_nic_check() checks that the options agree, and
 * sets the network if there is none; 2 after it has printed an error. goal_nic_open() checks that
 * the open schedule can run so; 1 after it has printed an error. */
int goal_nic_take(struct args *a, void *nic);
int goal_nic_check(struct goal_run *r);
int goal_nic_open(const struct goal_run *r);

/* ---- Jobs (jobs.c) ---- */

/* goal_jobs_open() reads the file of --jobs, if it was given, after the schedule was opened; 1
 * after it has printed an error. goal_jobs_need_record() is true if jobs share nodes: then the
 * finish time of a node does not tell when a job ends, and the run must be recorded. */
int goal_jobs_open(struct goal_run *r);
bool goal_jobs_need_record(const struct goal_run *r);

void goal_jobs_json(struct json *j, struct goal_run *r);
void goal_jobs_text(struct goal_run *r);

/* ---- The critical path and the timeline ---- */

/* goal_path_json() and goal_path_text() print the critical path. */
void goal_path_json(struct json *j, struct goal_run *r);
void goal_path_text(struct goal_run *r);

/* --trace refuses larger schedules, in operations: its file has about 500 bytes for each. */
enum { GOAL_TRACE_MOST = 1000000 };

/* The timeline has at most so many times that a packet took a channel. */
enum { GOAL_TRACE_CHANNELS = 1000000 };

/* goal_trace_write() writes the timeline to the file r->trace; -1 with errno set. */
int goal_trace_write(const struct goal_run *r);

/* --timeline refuses larger schedules, in operations and ranks: the picture would not be
 * readable. */
enum { GOAL_TIMELINE_MOST = 2000, GOAL_TIMELINE_RANKS = 64 };

/* goal_timeline_draw() draws the timeline to the file r->timeline; -1 with errno set. */
int goal_timeline_draw(const struct goal_run *r);

/* ---- Results (times.c) ---- */

/* goal_run_name() returns the name of the schedule's file without its folder. */
const char *goal_run_name(const struct goal_run *r);

/* The latest and the earliest finish time, the rank with the latest, and their mean. */
struct goal_summary {
    uint64_t most, least;
    uint32_t last;
    double mean; /* ticks */
};

struct goal_summary goal_summarise(const struct goal *g, const struct sim_output *out);

/* goal_time_text() writes ticks as nanoseconds, with as many decimals as needed, and returns the
 * length. goal_json_time() writes them as a JSON number. */
int goal_time_text(const struct sim_output *out, uint64_t ticks, char text[32]);
void goal_json_time(struct json *j, const struct sim_output *out, const char *name, uint64_t ticks);

#endif
