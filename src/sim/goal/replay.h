/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the operations of a schedule that end, if only the dependencies within ranks are looked at.
 */
#ifndef SIM_GOAL_REPLAY_H
#define SIM_GOAL_REPLAY_H

#include "goal.h"

enum goal_fate {
    GOAL_NEVER_READY, /* waits for an operation of its own rank */
    GOAL_DONE,
    GOAL_LEFT_RECV, /* started: waits for the other end */
    GOAL_LEFT_SEND,
};

/* goal_replay() takes in fate[], by operation of all ranks in their order, those that start and
 * never end, all others GOAL_NEVER_READY, and makes GOAL_DONE of what ends beside them. Gives how
 * many do not end, or -1 if memory is short. */
int64_t goal_replay(const struct goal *g, uint8_t *fate);

/* goal_cyclic() says whether dependencies have a cycle: 1, 0, or -1 if memory is short. */
int goal_cyclic(const struct goal *g);

#endif
