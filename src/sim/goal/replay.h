/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out which operations of a schedule end, from the dependencies within ranks alone. */
#ifndef SIM_GOAL_REPLAY_H
#define SIM_GOAL_REPLAY_H

#include "goal.h"

enum goal_fate {
    GOAL_NEVER_READY, /* the operation waits for another one of its own rank */
    GOAL_DONE,
    GOAL_LEFT_RECV, /* a recv that was posted and waits for a message */
    GOAL_LEFT_SEND,
    GOAL_LEFT_TEST, /* a test of a counter that does not come to it */
};

/* goal_replay() gets in fate[], by operation of all ranks in their order, GOAL_LEFT_RECV,
 * GOAL_LEFT_SEND or GOAL_LEFT_TEST for operations that start and never end, and GOAL_NEVER_READY
 * for all others. It sets those that end to GOAL_DONE. It returns how many do not end, or -1 if
 * memory is short. */
int64_t goal_replay(const struct goal *g, uint8_t *fate);

/* goal_cyclic() returns 1 if the dependencies have a cycle, 0 if not, -1 if memory is short. */
int goal_cyclic(const struct goal *g);

#endif
