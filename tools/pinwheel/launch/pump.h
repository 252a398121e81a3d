/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard input for rank 0 when ours is a terminal. Ranks are in process groups
 * of their own, so the terminal would stop one that reads it; the launcher reads
 * in its place and writes to a pipe. (A file or a pipe rank 0 reads itself.)
 */
#ifndef PINWHEEL_PUMP_H
#define PINWHEEL_PUMP_H

#include <stdbool.h>
#include <stddef.h>

struct pump {
    int to; /* the pipe; -1: not pumping */
    size_t length;
    char bytes[4096];
};

/* pump_start() takes over the write end of a pipe. */
void pump_start(struct pump *p, int to);
void pump_stop(struct pump *p);

/* pump_reads() and pump_writes() tell what to poll for: room or bytes; then call the function that
 * does it. */
bool pump_reads(const struct pump *p);
bool pump_writes(const struct pump *p);
void pump_read(struct pump *p, int from);
void pump_write(struct pump *p);

#endif
