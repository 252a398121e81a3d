/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of schedules share: compiling a text in memory, opening the
 * result, printing it back. Files are memfds.
 */
#ifndef TESTS_SIM_GOAL_TRY_H
#define TESTS_SIM_GOAL_TRY_H

#include "sim/goal/print.h"
#include "sim/goal/read.h"

struct bytes {
    uint8_t *at;
    size_t length;
};

/* try_memfd() makes an empty file; try_contents() reads all of one. Both abort
 * when the machine does not let them. */
int try_memfd(void);
struct bytes try_contents(int fd);
struct bytes try_file(const char *path);

/* try_compile() compiles a text called "t.goal"; on 0 *bin holds the schedule. */
int try_compile(const char *text, size_t length, unsigned flags, struct bytes *bin,
                struct goal_error *error);

/* try_print() gives a binary schedule as text; it must be a legal one. */
struct bytes try_print(const struct bytes *bin);

#endif
