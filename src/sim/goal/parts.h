/* SPDX-License-Identifier: BSD-3-Clause */
/* What operations of Portals in GOAL text consist of: numbers, ranks, counters, handlers. */
#ifndef SIM_GOAL_PARTS_H
#define SIM_GOAL_PARTS_H

#include "scan.h"
#include "write.h"

/* The rank whose text is read, where its operations go, and the last handler of an append that was
 * read; 0: none. */
struct goal_reading {
    struct goal_scan *s;
    uint32_t rank, ranks;
    struct goal_builder *b;
    uint8_t handler;
};

/* Each reads what its name says, and returns 0, or -1 with an error. A rank may be "self", and -1
 * if `any`; a number is at most `most`, and `what` names it. */
int goal_read_u32(struct goal_scan *s, uint64_t most, const char *what, uint32_t *to);
int goal_read_bytes(struct goal_scan *s, uint64_t *bytes);
int goal_read_counter(struct goal_scan *s, uint32_t *counter);
int goal_read_rank(const struct goal_reading *r, bool any, uint32_t *peer);

/* goal_read_handler() reads a handler behind its word, and what it does, and adds both as parts. */
int goal_read_handler(struct goal_reading *r, const struct goal_word *word, uint8_t type);

#endif
