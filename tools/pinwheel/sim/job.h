/* SPDX-License-Identifier: BSD-3-Clause */
/* What `pinwheel sim` was asked for: sim.c reads it, results.c prints what came of it. */
#ifndef PINWHEEL_SIM_JOB_H
#define PINWHEEL_SIM_JOB_H

#include "coordinator.h"
#include "pinwheel/launch/launch.h"
#include "sweep.h"

struct sim {
    struct launch launch;
    struct coordinator_setup setup;
    struct sweep sweep; /* --nic, --sweep: the runs, of which there may be only one */
    const char *network;
    uint32_t compute; /* --compute measured: ps of a ns */
    bool memory_waits, json, quiet, no_skip, pmix;
    enum { STATS_NONE, STATS_TEXT, STATS_STDOUT, STATS_FILE } stats;
    const char *stats_file; /* of STATS_FILE */
    const char *timeline, *trace;
    uint64_t spans; /* --spans */
};

#endif
