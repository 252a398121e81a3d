/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which a rank posts its receives. */
#ifndef SIM_GEN_ORDER_H
#define SIM_GEN_ORDER_H

#include "goal_gen.h"
#include "sim/util/random.h"

/* Returns which of `count` receives is posted as the i-th. */
static inline uint64_t gen_in_order(const struct goal_config *c,
                                    const struct goal_permutation *shuffle, uint64_t i,
                                    uint64_t count)
{
    switch (c->order) {
    case GOAL_REVERSE:
        return count - 1 - i;
    case GOAL_SHUFFLED:
        return goal_permute(shuffle, i);
    default:
        return i;
    }
}

#endif
