/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a GOAL schedule in virtual time. Two models, one interface:
 *
 *   pinwheel   loggops.c: docs/loggops-model.md, time in picoseconds
 *   loggopsim  loggopsim.c: LogGOPSim's results, time in nanoseconds that wrap
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "noise.h"
#include "record.h"
#include "sim/goal/goal.h"
#include "sim/net/net.h"
#include "sim/util/parameters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events between two calls of sim_input.progress, about. */
#define SIM_PROGRESS (UINT64_C(1) << 20)

enum { SIM_THREADS_MOST = 64 };

enum sim_model { SIM_PINWHEEL, SIM_LOGGOPSIM };

/* How a run ended. */
enum sim_end {
    SIM_DONE,
    SIM_STUCK,  /* operations wait for ever: `left` has what they wait at */
    SIM_FAILED, /* no memory, overflow, parameters that the model refuses: `error` */
};

/* The first operations and messages that were left over; all that waits behind them follows from
 * these. */
enum sim_left_kind {
    SIM_LEFT_RECV,    /* a receive that no message reached */
    SIM_LEFT_SEND,    /* a rendezvous send whose receive was not posted */
    SIM_LEFT_MESSAGE, /* an eager message that no receive took; `node` is its send */
};
struct sim_left {
    uint32_t rank;
    uint32_t node;
    enum sim_left_kind kind;
};

/* pinwheel: a packet network in the place of L. Its `byte` may be 0: as long as G. */
struct sim_network {
    const struct net_graph *graph;
    const struct net_config *config;
    const uint32_t *host; /* by rank; no two the same */
};

/* Counts of the packets that the network carried. */
struct sim_traffic {
    struct net_counts counts;
    uint64_t busy; /* ps that channels were taken, all together */
    uint64_t busiest_busy;
    uint32_t busiest;  /* channel */
    uint32_t channels; /* that were taken at all */
};

/* One of the two match queues of all ranks together. */
struct sim_queue_use {
    uint64_t searches, hits; /* by what arrived or was posted on the other side */
    uint64_t lengths;        /* of the queue at each search, added up */
    uint64_t most;           /* the longest that a rank had */
    uint32_t rank;           /* the least of the ranks that had the longest */
};
struct sim_queues {
    struct sim_queue_use posted, unexpected;
};

/* The schedule to run, and a function that is told how far it is, now and then. */
struct sim_input {
    const struct goal *goal;
    const struct sim_parameters *parameters;
    enum sim_model model;
    bool calc_in_ps;                   /* the sizes of calcs are picoseconds */
    unsigned threads;                  /* at least 1 */
    struct sim_record *record;         /* pinwheel: what happened, and why; NULL: not wanted */
    const struct sim_network *network; /* NULL: messages take L */
    const struct sim_noise *noise;     /* pinwheel: of the cpus; NULL: none */
    bool count_queues;                 /* pinwheel: sim_output.queues is wanted */
    void (*progress)(void *context, uint64_t events);
    void *context;
};

struct sim_output {
    uint64_t *finish; /* by rank, in ticks */
    uint64_t ticks_per_ns;
    uint64_t operations; /* that were started */
    uint64_t messages;
    struct sim_left *left;
    size_t left_count, left_room;
    struct sim_traffic traffic; /* if there is a network */
    struct sim_queues queues;   /* if they are counted */
    uint64_t abandoned; /* loggopsim: operations that LogGOPSim never starts, and does not miss */
    char error[512];
    bool has_culprit; /* the error is about this operation */
    uint32_t culprit_rank, culprit_node;
};

/* sim_check() says whether the model can compute with these parameters. It returns
 * 0, or -1 after it has written into `error` what is wrong. */
int sim_check(const struct sim_input *in, char *error, size_t size);

/* sim_run() runs a schedule with parameters that sim_check() accepted. Whatever it returns,
 * sim_output_free() follows. */
enum sim_end sim_run(const struct sim_input *in, struct sim_output *out);

void sim_output_free(struct sim_output *out);

/* For the models. sim_leave() notes something left over; -1 if memory is short. */
int sim_leave(struct sim_output *out, uint32_t rank, uint32_t node, enum sim_left_kind kind);
enum sim_end sim_fail(struct sim_output *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum sim_end sim_no_memory(struct sim_output *out);
enum sim_end loggops_run(const struct sim_input *in, struct sim_output *out);
enum sim_end loggopsim_run(const struct sim_input *in, struct sim_output *out);

#endif
