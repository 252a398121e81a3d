/* SPDX-License-Identifier: BSD-3-Clause */
/* One value of a figure: its program is found, and run (value.c). */
#ifndef PINWHEEL_REPRODUCE_VALUE_H
#define PINWHEEL_REPRODUCE_VALUE_H

#include "reproduce.h"

#include <limits.h>

/* value_find_programs() finds the folder of a figure's program: the one given, or, if that is NULL,
 * the one of the build or of the installation. */
bool value_find_programs(const char *given, const struct figure *f, char folder[PATH_MAX]);

/* value_run() runs the job of a value; VALUE_NONE and VALUE_NOT_HERE after a line that says why
 * there is none. */
enum value_end { VALUE_FOUND, VALUE_NONE, VALUE_NOT_HERE };
enum value_end value_run(const char *folder, const struct figure *f, const struct figure_row *row,
                         int way, uint64_t *ps);

#endif
