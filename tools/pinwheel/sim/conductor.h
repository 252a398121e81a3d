/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conductor of a simulated job: it has the network, and gives ranks their turns so that what
 * they do is the same whenever it is run (conductor.c).
 */
#ifndef PINWHEEL_SIM_CONDUCTOR_H
#define PINWHEEL_SIM_CONDUCTOR_H

#include "fabric/sim/segment.h"
#include "sim/net/net.h"

#include <stdbool.h>
#include <stdint.h>

struct conductor_setup {
    uint32_t ranks;
    struct sim_machine machine;
    struct net_spec spec;
    struct net_config net;
};

/* What a run came to. */
struct conductor_result {
    bool stuck;                          /* ranks waited for what never comes; it was said */
    bool failed;                         /* memory was short, or a time too late; it was said */
    uint64_t end;                        /* ps */
    struct sim_counts counts;            /* of all ranks */
    uint64_t egress, dma, hpus, channel; /* ps that the most used one was taken */
    uint32_t egress_rank, dma_rank, hpus_rank, channel_number;
    uint64_t refused; /* packets for NICs that were not there */
};

struct conductor;

/* conductor_start() makes the memory that ranks share, and starts the thread; NULL after a line on
 * stderr. conductor_path() is what ranks find it by. */
struct conductor *conductor_start(const struct conductor_setup *setup);
const char *conductor_path(const struct conductor *c);
/* conductor_exited() says that a rank's process has ended; of any thread. */
void conductor_exited(void *conductor, int rank);
/* conductor_end() ends the thread and gives what the run came to; the conductor is freed. */
void conductor_end(struct conductor *c, struct conductor_result *result);

#endif
