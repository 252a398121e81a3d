/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs about freed objects share. On an interface with `handles_few` limits an
 * object made later soon has the place of a freed one: handles_take_...() takes all that
 * there are, and handles_untouched() checks that none of them got what was meant for it.
 */
#ifndef HANDLES_KIT_H
#define HANDLES_KIT_H

#include "suite.h"

enum { HANDLES_FEW = 10 }; /* counters, queues, entries */

extern const ptl_ni_limits_t handles_few;

struct handles_taken {
    int eqs, cts;
    ptl_handle_eq_t eq[HANDLES_FEW];
    ptl_handle_ct_t ct[HANDLES_FEW];
};

struct handles_taken handles_take_all(struct scene *s);
void handles_untouched(const struct handles_taken *taken);

#endif
