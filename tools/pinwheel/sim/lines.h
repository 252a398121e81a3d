/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks write to their standard output and error: line by line, in the order of (virtual time,
 * rank), on ours.
 *
 *      pipe of a rank ──► unfinished line ──lines_take(): its time──► lines, a heap ──► our output
 *        read by a thread of its own, so that no rank waits for us, and by lines_take()
 *
 * Invariants:
 *   - Bytes have the time of the turn in which their line was ended (fabric/sim/said.h). A line is
 *     written when no rank can write an earlier one any more.
 *   - No byte is changed or added, but for labels, and the end of a last line that is labelled.
 * What has no end within RELAY_LINE_MAX comes in parts.
 *   - If our output cannot be written any more the pipes are closed, and a rank that writes gets
 *     SIGPIPE, as over a pipe of its own.
 */
#ifndef PINWHEEL_SIM_LINES_H
#define PINWHEEL_SIM_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lines;

/* lines_open() begins with no pipe, and starts the thread; NULL after a line on stderr. */
struct lines *lines_open(uint32_t ranks, bool label);
/* lines_add() takes over both pipes of a rank, and gives their numbers; `heard` is set before what
 * the rank has written is read. -1 with errno set. */
int lines_add(struct lines *l, uint32_t rank, int out, int err, _Atomic uint32_t *heard,
              uint64_t pipes[2]);
/* lines_take() reads all that a rank, which is idle, has written, as of a time. Of one that runs
 * lines_hear() reads it, and lines_stamp() says when it was written. */
void lines_take(struct lines *l, uint32_t rank, uint64_t time);
void lines_hear(struct lines *l, uint32_t rank);
void lines_stamp(struct lines *l, uint32_t rank, uint64_t time);
/* lines_print() writes all before the time, and at the time those of ranks up to that one. `stop`:
 * a reader of our output that does not read is waited for until then. */
void lines_print(struct lines *l, uint64_t time, uint32_t rank, _Atomic bool *stop);
/* lines_close() writes what there is still, and ends. */
void lines_close(struct lines *l);

#endif
