/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals and sPIN operations of GOAL text: put, get, atomic, fetch, swap, cas, append, test,
 * count, and their triggered forms, whose words begin with a "t". docs/goal.md has their grammar.
 */
#ifndef SIM_GOAL_EXTENSION_H
#define SIM_GOAL_EXTENSION_H

#include "scan.h"
#include "write.h"

/* goal_extension_is() is true if `word` is one of these operations. */
bool goal_extension_is(const struct goal_word *word);

/* goal_extension_read() reads the rest of the line behind `word`, of rank `rank` of `ranks`, and
 * adds the operation and its parts. -1: an error; b->failed says if it is that memory was short. */
int goal_extension_read(struct goal_scan *s, const struct goal_word *word, uint32_t rank,
                        uint32_t ranks, struct goal_builder *b);

#endif
