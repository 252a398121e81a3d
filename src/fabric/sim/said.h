/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank writes to its standard output and error, in virtual time. These are pipes to
 * `pinwheel sim`, which prints lines in the order of (time, rank).
 *
 *      program ──write()──► pipe ──► coordinator (tools/pinwheel/sim/lines.c)
 *
 * Invariants:
 *   - A rank that has written hands its turn over before its time goes on (tasks.c), with
 *     sim_record.said: the coordinator then takes all that is in the pipes as of that time. What is
 *     written while a thread of it is in a fence has the time of the next hand-over.
 *   - Who writes more than a pipe holds is read meanwhile, in real time: sim_rank.heard is set
 * before that, so that the pipe is empty and the rank knows all the same that it has written.
 * Whether it was read so or later changes nothing.
 */
#ifndef FABRIC_SIM_SAID_H
#define FABRIC_SIM_SAID_H

#include "fabric/sim/rank.h"

/* sim_said_join() has a process know its rank's pipes. */
void sim_said_join(struct sim_clock *c);
/* sim_said() is true if the program has written since it was last its turn. */
bool sim_said(const struct sim_clock *c);
/* sim_said_by() is true of a descriptor that is one of the rank's pipes. */
bool sim_said_by(const struct sim_clock *c, int fd);
/* sim_said_all() has libc write what it still holds of standard output, as exit() does later. */
void sim_said_all(const struct sim_clock *c);

#endif
