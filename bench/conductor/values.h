/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and works as text; what a turn gave, and the value of a bench that this is. */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include "conductor.h"

const char *plan_size_text(enum size_kind kind, uint64_t size, char text[32]);
const char *plan_work_name(const struct run *r, int work, char text[80]);

/* plan_stored() is what a turn gave: seconds of an iteration, or what the bench says
 * itself. plan_value() makes it the value of a bench, in its unit. */
double plan_stored(const struct turn_work *work, const struct turn_result result[2]);
double plan_value(const struct bench *b, uint64_t size, double stored);

#endif
