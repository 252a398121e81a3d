/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a triggered operation belongs in the list of its counter, when it is not the end.
 *
 *   list    1 1 2 5 5 5 ... 7 7 7 7 ... 7 9 9 ...
 *   rungs             5         7     7   9          some of its links, in its order
 *
 * Who walked far has left a rung every so many links, and who comes later begins at the one
 * above his threshold: he walks from one rung to the next at most, however many operations wait.
 * A list that is armed in order of threshold has none.
 *
 * Invariant: operations leave at the front, all of a threshold together, or all at once. So a
 * rung below the threshold of the first link is gone, all others are in the list, and those of a
 * list that has become empty are forgotten before anything is armed again.
 */
#ifndef NIC_RUNGS_H
#define NIC_RUNGS_H

#include "nic/objects.h"

/* rungs_place() gives the link behind which one of `threshold` belongs; the last one is above it.
 */
struct list *rungs_place(struct ct *ct, uint64_t threshold);

/* rungs_forget() frees them. */
void rungs_forget(struct ct *ct);

#endif
