/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules as GOAL text, which compiles back to the identical bytes. Operations
 * are called l1, l2, ... in each rank, as schedule generators do, or by their own
 * labels where these are known.
 */
#ifndef SIM_GOAL_PRINT_H
#define SIM_GOAL_PRINT_H

#include "file.h"

/* A dependency on its way to a line of text. */
struct goal_line {
    uint32_t node;
    uint32_t on;
    bool at_start; /* irequires */
};

/* Prints to `out`, which must be set; the rest may be zero. */
struct goal_printer {
    struct goal_stream *out;
    struct goal *labels_of; /* the schedule whose labels are used; NULL: l1, l2, ... */
    /* Private: memory that is used again from rank to rank. */
    struct goal_line *lines;
    uint64_t lines_room;
    uint64_t *first;
    uint64_t first_room;
};

void goal_print_head(struct goal_printer *p, uint32_t ranks);

/* goal_print_rank() prints one rank; `successors` is the length of all its lists.
 * Returns 0, or -1 if there is no memory. Failures to write are in p->out. */
int goal_print_rank(struct goal_printer *p, uint32_t rank, const struct goal_rank *r,
                    uint64_t successors);
void goal_printer_free(struct goal_printer *p);

#endif
