/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a triggered operation belongs in the list of its counter, when it is not the end.
 *
 *   list    1 1 2 5 5 5 ... 7 7 7 7 ... 7 9 9 ...
 *   rungs             5         7     7   9          some of its links, in its order
 *
 * A walk from the end of the list that becomes long leaves a rung every so many links. A later walk
 * begins at the first rung above its threshold: it goes from one rung to the next at most, however
 * many operations wait. A list to which they are appended in order of threshold has no rungs.
 *
 * Invariant: operations leave the list at its front, all of one threshold together, or all at once.
 * So a rung below the threshold of the first link has left the list, and all other rungs are in it.
 * When a list has become empty its rungs are forgotten, before an operation is put in again.
 */
#ifndef NIC_RUNGS_H
#define NIC_RUNGS_H

#include "nic/objects.h"

/* rungs_place() returns the link behind which an operation of `threshold` belongs; the caller has
 * seen that the last link has a higher one. */
struct list *rungs_place(struct ct *ct, uint64_t threshold);

/* rungs_forget() frees the rungs of a counter. */
void rungs_forget(struct ct *ct);

#endif
