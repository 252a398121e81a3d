/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between two runs, figure by figure: `pinwheel sim --compare`, of two files of
 * --stats=json, or of the two machines of one command.
 */
#ifndef PINWHEEL_SIM_COMPARE_H
#define PINWHEEL_SIM_COMPARE_H

#include "stats.h"

#include <stdbool.h>

/* compare_files() compares two files; compare_stats() two runs, which have names. Both print what
 * differs on standard output, with `json` as JSON, and return the exit status: 0; 1 after a line
 * that says what cannot be read. */
int compare_files(const char *a, const char *b, bool json);
int compare_stats(const char *a, const struct sim_stats *of_a, const char *b,
                  const struct sim_stats *of_b, bool json);

#endif
