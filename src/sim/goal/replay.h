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

/* fate[] has an element for each operation, those of rank 0 first. Before the call it holds what an
 * operation has become in the run of a simulator that ended early: GOAL_LEFT_RECV, GOAL_LEFT_SEND
 * or GOAL_LEFT_TEST if it started and did not end, GOAL_NEVER_READY in all other cases.
 * goal_replay() sets those that have ended to GOAL_DONE. It returns how many have not, or -1 if
 * memory is short. */
int64_t goal_replay(const struct goal *g, uint8_t *fate);

/* goal_cyclic() returns 1 if the dependencies have a cycle, 0 if not, -1 if memory is short. */
int goal_cyclic(const struct goal *g);

#endif
