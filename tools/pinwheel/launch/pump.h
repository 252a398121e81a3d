/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies standard input to rank 0 if it is a terminal. The ranks are in process groups of their
 * own, and the terminal would stop a rank that reads it; so the launcher reads, and writes to a
 * pipe. From a file or a pipe rank 0 reads itself.
 */
#ifndef PINWHEEL_PUMP_H
#define PINWHEEL_PUMP_H

#include <stdbool.h>
#include <stddef.h>

struct pump {
    int to; /* the pipe; -1: there is nothing to copy to */
    size_t length;
    char bytes[4096];
};

/* pump_start() takes over the write end of a pipe. */
void pump_start(struct pump *p, int to);
void pump_stop(struct pump *p);

/* pump_reads() is true if there is room to read: the caller polls, and calls pump_read().
 * pump_writes() is true if there are bytes to write: the caller polls, and calls pump_write(). */
bool pump_reads(const struct pump *p);
bool pump_writes(const struct pump *p);
void pump_read(struct pump *p, int from);
void pump_write(struct pump *p);

#endif
