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

/* The models call sim_input.progress about once in so many events. */
#define SIM_PROGRESS (UINT64_C(1) << 20)

enum { SIM_THREADS_MOST = 64 };

enum sim_model { SIM_PINWHEEL, SIM_LOGGOPSIM };

/* How a run ended. */
enum sim_end {
    SIM_DONE,
    /* operations wait for ever: `left` has the operations and messages without a partner */
    SIM_STUCK,
    /* no memory, overflow, or parameters that the model refuses: `error` has the text */
    SIM_FAILED,
};

/* The kinds of operations and messages that were left without a partner. All other operations that
 * did not end wait, directly or not, for one of these. */
enum sim_left_kind {
    SIM_LEFT_RECV, /* a receive that no message reached */
    SIM_LEFT_SEND, /* a rendezvous send whose receive was not posted */
    /* an eager message that no receive took, or one for an entry that no append took; `node` is its
     * send, put, ... */
    SIM_LEFT_MESSAGE,
    SIM_LEFT_TEST, /* a test of a counter that has not come to it */
};
struct sim_left {
    uint32_t rank;
    uint32_t node;
    enum sim_left_kind kind;
};

/* pinwheel: a packet network, used instead of L. If `byte` of its configuration is 0, a byte takes
 * as long as G. */
struct sim_network {
    const struct net_graph *graph;
    const struct net_config *config;
    const uint32_t *host; /* by rank: its host; no two ranks have the same */
};

/* Figures of the packets that the network has carried. */
struct sim_traffic {
    struct net_counts counts;
    uint64_t busy; /* ps for which channels were busy, added up over all channels */
    uint64_t busiest_busy;
    uint32_t busiest;  /* the channel that was busy for the longest time, busiest_busy */
    uint32_t channels; /* how many channels were used at all */
};

/* How one kind of match queue (posted recvs, or messages that have arrived) was used, for all ranks
 * together. */
struct sim_queue_use {
    /* searches by messages that arrived, or by recvs that were posted; how many of them found a
     * partner */
    uint64_t searches, hits;
    uint64_t lengths; /* length of the queue at each search, added up */
    uint64_t most;    /* the greatest length that the queue of a rank had */
    uint32_t rank;    /* the lowest of the ranks whose queue had that length */
};
struct sim_queues {
    struct sim_queue_use posted, unexpected;
};

/* What sim_run() gets: the schedule, the model and its parameters, and a function that it calls now
 * and then with the number of events so far. */
struct sim_input {
    const struct goal *goal;
    const struct sim_parameters *parameters;
    enum sim_model model;
    bool calc_in_ps;  /* the sizes of calcs are picoseconds */
    unsigned threads; /* how many threads simulate, at least 1 */
    /* pinwheel: where the run records each step and its cause; NULL: nowhere */
    struct sim_record *record;
    /* the network that carries the messages; NULL: they take L */
    const struct sim_network *network;
    const struct sim_noise *noise; /* pinwheel: noise of the cpus; NULL: none */
    bool count_queues;             /* pinwheel: the run fills in sim_output.queues */
    void (*progress)(void *context, uint64_t events);
    void *context;
};

struct sim_output {
    uint64_t *finish; /* by rank: its finish time, in ticks */
    uint64_t ticks_per_ns;
    uint64_t operations; /* how many operations were started */
    uint64_t messages;
    uint64_t handler_calls;
    uint64_t events; /* on simulated NICs: how many were handled, of these and of the network */
    uint64_t steps;  /* and how many places were looked at in lists that may be long */
    struct sim_left *left;
    size_t left_count, left_room;
    struct sim_traffic traffic; /* set if there is a network */
    struct sim_queues queues;   /* set if queues are counted */
    /* loggopsim: operations that LogGOPSim never starts, without reporting it */
    uint64_t abandoned;
    char error[512];
    bool has_culprit; /* the error is about operation `culprit_node` of rank `culprit_rank` */
    uint32_t culprit_rank, culprit_node;
};

/* sim_check() checks whether the model can compute with the parameters. It returns 0, or -1 after
 * it has written to `error` what is wrong. */
int sim_check(const struct sim_input *in, char *error, size_t size);

/* sim_run() runs a schedule with parameters that sim_check() has accepted. The caller calls
 * sim_output_free() afterwards, whatever it returns. */
enum sim_end sim_run(const struct sim_input *in, struct sim_output *out);

void sim_output_free(struct sim_output *out);

/* For the models. sim_leave() adds an operation or message that was left without a partner; -1 if
 * memory is short. */
int sim_leave(struct sim_output *out, uint32_t rank, uint32_t node, enum sim_left_kind kind);
enum sim_end sim_fail(struct sim_output *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum sim_end sim_no_memory(struct sim_output *out);
enum sim_end loggops_run(const struct sim_input *in, struct sim_output *out);
enum sim_end loggopsim_run(const struct sim_input *in, struct sim_output *out);

#endif
