/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed and written of a run at its end (results.c). */
#ifndef PINWHEEL_SIM_RESULTS_H
#define PINWHEEL_SIM_RESULTS_H

#include "job.h"

/* results_json() prints the figures of a run on standard output, results_text() the last lines. */
void results_json(const struct sim *s, const struct coordinator_result *r);
void results_text(const struct sim *s, const struct coordinator_result *r);
/* results_stats() prints what --stats asks for, results_spans() writes what --timeline and --trace
 * do; 1 after a line that says why that failed. */
int results_stats(const struct sim *s, const struct coordinator_result *r);
int results_spans(const struct sim *s, const struct coordinator_result *r);

#endif
