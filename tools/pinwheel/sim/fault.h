/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults that a run is asked for (fault.c). */
#ifndef PINWHEEL_SIM_FAULT_H
#define PINWHEEL_SIM_FAULT_H

#include "fabric/sim/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_death {
    uint32_t rank;
    uint64_t time;
};

/* A link that is down for a while; NODE-NODE. */
struct fault_link {
    char name[64];
    uint64_t from, until;
    size_t place; /* of the name in the text, from 1 on */
};

struct fault_plan {
    struct fault_death *death; /* one for each rank that dies */
    size_t deaths, capacity;
    struct fault_link *link;
    size_t links, links_capacity;
    struct sim_hpu_fault hpu[SIM_HPU_FAULTS];
    uint32_t hpus;
    double drop; /* how likely a host's cable loses a packet */
    uint64_t seed;
};

enum { FAULT_ERROR = 256 };

/* fault_parse() adds the faults of a text to a plan:
 *
 *      "rank 3 dies at 10us; drop 1e-5 seed 7; link leaf0-spine2 down 20us..40us;
 *       hpu 2 of rank 5 faults at 1us"
 *
 * It returns 0, or -1 with the word that is wrong, its place and what is allowed there in `error`.
 * fault_check() does the same for ranks and HPUs that a job does not have. fault_free() frees the
 * plan. */
int fault_parse(struct fault_plan *plan, const char *text, char error[FAULT_ERROR]);
int fault_check(const struct fault_plan *plan, uint32_t ranks, uint32_t hpus,
                char error[FAULT_ERROR]);
void fault_free(struct fault_plan *plan);
static inline bool fault_any(const struct fault_plan *plan)
{
    return plan->deaths != 0 || plan->drop > 0;
}
/* fault_losses() returns how often a packet is lost before it gets through: it depends on the seed,
 * the rank that sends it and its number there only. */
uint64_t fault_losses(const struct fault_plan *plan, uint32_t rank, uint64_t number);

#endif
