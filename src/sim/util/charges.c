/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of messages; see charges.h. */
#include "charges.h"

uint64_t charges_product(uint64_t bytes, uint64_t rate)
{
    unsigned __int128 exact = (unsigned __int128)bytes * rate;
    if (exact <= UINT64_MAX / 2) { /* nearly always so, and the faster way */
        uint64_t low = (uint64_t)exact, ps = low / SIM_AS_PER_PS, rest = low % SIM_AS_PER_PS;
        return ps + (rest > SIM_AS_PER_PS / 2 || (rest == SIM_AS_PER_PS / 2 && ps % 2 != 0));
    }
    unsigned __int128 whole = exact / SIM_AS_PER_PS;
    uint64_t rest = (uint64_t)(exact % SIM_AS_PER_PS);
    if (rest > SIM_AS_PER_PS / 2 || (rest == SIM_AS_PER_PS / 2 && (whole & 1) != 0)) {
        whole++;
    }
    return whole > LOGGOPS_LAST ? LOGGOPS_LAST + 1 : (uint64_t)whole;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b <= LOGGOPS_LAST ? a + b : LOGGOPS_LAST + 1;
}

void charges_compute(struct charges *c, const struct sim_parameters *p, uint64_t size)
{
    c->size = size;
    c->G = charges_product(size - 1, p->value[SIM_G]);
    c->O = charges_product(size - 1, p->value[SIM_O]);
    c->cpu = sum(p->value[SIM_o] / SIM_AS_PER_PS, c->O);
    c->nic = sum(p->value[SIM_g] / SIM_AS_PER_PS, c->G);
}
