/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machines that a rank of `pinwheel sim` can be: the profiles that have a name, and those of files
 * (docs/sim-nic.md, "A machine of one's own"). A parameter is a row of one table (profile.c), which
 * says where it is kept, what it may be, and what it is called in a file.
 */
#ifndef PINWHEEL_SIM_PROFILE_H
#define PINWHEEL_SIM_PROFILE_H

#include "fabric/sim/segment.h"

#include <stdbool.h>
#include <stddef.h>

#define PROFILE_NAMES "discrete|integrated|zero|pspin|FILE.toml"
enum { PROFILE_ERROR = 512 };

/* profile_find() gives the machine of a name, or of a file whose name has a '/' or a '.'. -1: there
 * is none, or the file is wrong; the error names place, key, value and remedy. */
int profile_find(const char *name, struct sim_machine *m, char error[PROFILE_ERROR]);

/* profile_read() is profile_find() for the text of a file; `file` is for errors. The text is not
 * changed, and need not end with a zero. */
int profile_read(const char *file, const char *text, size_t length, struct sim_machine *m,
                 char error[PROFILE_ERROR]);

/* One parameter, by its key: profile_parse() reads a value as a file has it, without quotes, as it
 * is kept; -1 with an error that names key, value and remedy. profile_store() sets it. A value as
 * it is kept, times profile_scale(), is in profile_unit(), "" for a number; profile_is_number() is
 * true if all values are whole. */
int profile_parse(const char *key, const char *text, uint64_t *value, char error[PROFILE_ERROR]);
void profile_store(const char *key, uint64_t value, struct sim_machine *m);
bool profile_is_number(const char *key);
double profile_scale(const char *key);
const char *profile_unit(const char *key);

/* profile_timing() names the table of cycles of a machine's HPUs. */
const char *profile_timing(const struct sim_machine *m);

#endif
