/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the pinwheel model charges the cpu and the nic for a message of some size, in ps. */
#ifndef SIM_CHARGES_H
#define SIM_CHARGES_H

#include "parameters.h"

/* The highest time. A larger time is stored as LOGGOPS_LAST + 1. */
#define LOGGOPS_LAST ((uint64_t)INT64_MAX)

struct charges {
    uint64_t size;     /* bytes of the message, at least 1 */
    uint64_t cpu, nic; /* time of the cpu and of the nic: cpu(s), nic(s) of docs/loggops-model.md */
    uint64_t G, O;     /* (s-1)*G, (s-1)*O */
};

/* charges_product() returns the time of `bytes` bytes at `rate`, in 1e-6 ps a byte. It is rounded
 * once, to the nearest picosecond, half to even. */
uint64_t charges_product(uint64_t bytes, uint64_t rate);

void charges_compute(struct charges *c, const struct sim_parameters *p, uint64_t size);

#endif
