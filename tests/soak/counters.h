/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters and the triggered operations on them, against a model that keeps what waits in one list
 * and walks it: section 3.14 and the counting part of 3.16; a part of soak_differ.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "lists.h"

/* counters_round() is the lane's part of a round: a few calls by its process, and a look. */
void counters_round(struct lane *l);

#endif
