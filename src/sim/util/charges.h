/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a message's bytes in the pinwheel model, in ps. */
#ifndef SIM_CHARGES_H
#define SIM_CHARGES_H

#include "parameters.h"

/* The highest time. What is larger stands for itself as this plus 1. */
#define LOGGOPS_LAST ((uint64_t)INT64_MAX)

struct charges {
    uint64_t size;     /* at least 1 */
    uint64_t cpu, nic; /* cpu(s), nic(s) */
    uint64_t G, O;     /* (s-1)*G, (s-1)*O */
};

/* charges_product() is the time of so many bytes at a rate in 1e-6 ps: rounded once, to the
 * nearest picosecond, half to even. */
uint64_t charges_product(uint64_t bytes, uint64_t rate);

void charges_compute(struct charges *c, const struct sim_parameters *p, uint64_t size);

#endif
