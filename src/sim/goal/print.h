/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules as GOAL text, which compiles back to the identical bytes. In each rank the operations
 * have the labels l1, l2, ..., as in schedule generators' output, or their own labels where these
 * are known.
 */
#ifndef SIM_GOAL_PRINT_H
#define SIM_GOAL_PRINT_H

#include "file.h"

/* A dependency that will be printed as a line: `node` waits for `on`. */
struct goal_line {
    uint32_t node;
    uint32_t on;
    bool at_start; /* "irequires" instead of "requires" */
};

/* The state of printing a schedule. The caller sets `out`; the rest may be zero. */
struct goal_printer {
    struct goal_stream *out;
    struct goal *labels_of; /* the schedule whose labels are used; NULL: l1, l2, ... */
    /* Private: memory that is reused from rank to rank. */
    struct goal_line *lines;
    uint64_t lines_room;
    uint64_t *first;
    uint64_t first_room;
};

void goal_print_head(struct goal_printer *p, uint32_t ranks);

/* goal_print_rank() prints one rank, whose lists have `successors` entries together. Returns 0, or
 * -1 if memory is short. If writing fails p->out keeps the error. */
int goal_print_rank(struct goal_printer *p, uint32_t rank, const struct goal_rank *r,
                    uint64_t successors);
void goal_printer_free(struct goal_printer *p);

#endif
