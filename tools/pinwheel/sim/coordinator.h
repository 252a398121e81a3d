/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coordinator of a simulated job: it has the network, and gives ranks their turns so that what
 * they do is the same whenever it is run (coordinator.c).
 */
#ifndef PINWHEEL_SIM_COORDINATOR_H
#define PINWHEEL_SIM_COORDINATOR_H

#include "fabric/sim/port.h"
#include "fault.h"
#include "sim/net/net.h"

#include <stdbool.h>
#include <stdint.h>

struct coordinator_setup {
    uint32_t ranks, processes; /* `processes` is for each rank, beside it */
    uint32_t per_host;         /* ranks that share a host, with its NIC; 0: 1 */
    uint32_t jobs;             /* ranks that run at once, at most */
    struct sim_machine machine;
    struct net_spec spec;
    struct net_config net;
    bool shuffled; /* packets come later by what is drawn by lot, by `shuffle` */
    uint64_t shuffle;
    struct fault_plan faults;
    bool direct, label; /* ranks write to our output themselves; else: each line has a label */
    bool profile;       /* it is noted where RV32 code spends its cycles */
    bool debugged;      /* `debug` is a rank for which a debugger is waited for */
    uint32_t debug;
    uint64_t spans; /* of each rank, for which there is to be room; 0: none are noted */
};

/* What a run came to. */
struct coordinator_result {
    bool stuck;                          /* ranks waited for what never comes; it was said */
    bool failed;                         /* memory was short, or a time too late; it was said */
    bool nics;                           /* a rank has opened one */
    uint64_t end;                        /* ps */
    struct sim_counts counts;            /* of all ranks */
    uint64_t egress, dma, hpus, channel; /* ps that the most used one was taken */
    uint32_t egress_rank, dma_rank, hpus_rank, channel_number;
    uint64_t refused;               /* packets for NICs that were not there */
    uint64_t resent;                /* packets that were lost, and sent again by the link */
    struct sim_stats *stats;        /* by rank, for the caller to free; NULL: no memory */
    uint32_t outside, outside_rank; /* places whose processes went on for what came from outside of
                                     * the job; the first one's rank */
    char outside_of[32];            /* what that was */
    struct sim_hot *hot;            /* if --profile asks for it: for hot_free(); NULL: no memory */
    struct sim_spans *spans;        /* if they were asked for: for spans_free(); NULL: no memory */
};

struct coordinator;

/* coordinator_start() makes the memory that ranks share, and starts the thread; NULL after a line
 * on stderr. coordinator_path() is what ranks find it by. */
struct coordinator *coordinator_start(const struct coordinator_setup *setup);
const char *coordinator_path(const struct coordinator *c);
/* coordinator_piped() takes over the pipes of a rank's output; -1 with errno set. */
int coordinator_piped(void *coordinator, int rank, int out, int err);
/* coordinator_started() says which process a rank is, coordinator_exited() that it has ended; of
 * any thread. coordinator_killed() is true if the rank was to die. */
void coordinator_started(void *coordinator, int rank, int pid);
bool coordinator_killed(void *coordinator, int rank);
void coordinator_exited(void *coordinator, int rank);
/* coordinator_end() ends the thread and gives what the run came to; the coordinator is freed. */
void coordinator_end(struct coordinator *c, struct coordinator_result *result);

#endif
