/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bytes of a message cost in the pinwheel model, in ps. */
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

void charges_compute(struct charges *c, const struct sim_parameters *p, uint64_t size);

#endif
