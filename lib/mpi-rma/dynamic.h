/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is attached to dynamic windows, and detached. */
#ifndef MPI_RMA_DYNAMIC_H
#define MPI_RMA_DYNAMIC_H

#include "window.h"

/* dynamic_find() gives the key of the attached memory of a rank that has addresses `low` to `high`,
 * and where it begins; 0, -ESTALE: there is none when the rank's list is read anew, or a negative
 * errno. dynamic_drop() makes the next one read the list. The caller has w->lock, also while it
 * uses the key. */
int dynamic_find(struct window *w, struct target *t, uint64_t low, uint64_t high,
                 struct pw_rma_key **key, uint64_t *base);
void dynamic_drop(struct target *t);

/* At the end of a window: detaches all. */
void dynamic_end(struct window *w);

#endif
