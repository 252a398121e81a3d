/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of circle.c, and what they share with their host. */
#ifndef CIRCLE_HANDLERS_H
#define CIRCLE_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

enum { CIRCLE_BITS = 5, CIRCLE_TABLE = 6 };

/* What a message has its handler ask for: hdr_data. */
enum { CIRCLE_GET, CIRCLE_ADD, CIRCLE_SWAP, CIRCLE_LOCK, CIRCLE_KINDS };

/* The words of the table that is asked. */
enum { CIRCLE_CONSTANT, CIRCLE_COUNT, CIRCLE_LAST, CIRCLE_OWNER, CIRCLE_WORDS };

/* The state of an entry. Each rank is sent to by one other rank, so one handler runs at a time. */
struct circle_state {
    uint32_t to;                              /* whom handlers ask */
    uint32_t gap;                             /* */
    uint64_t done, withdrawn, unknown, other; /* ends of calls */
    uint64_t wrong;                           /* answers that cannot be */
    uint64_t added;                           /* times that the fetch-add is done */
    uint64_t found_sum; /* of what swaps have found, less what they have left */
};

/* Its header handler asks for what hdr_data says, and asks again if that was withdrawn. */
extern const ptl_handlers_t circle_asking;

#endif
