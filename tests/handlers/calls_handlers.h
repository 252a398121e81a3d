/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of calls.c, and what they share with their host. */
#ifndef CALLS_HANDLERS_H
#define CALLS_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

enum { CALLS_SWAPS = 8, CALLS_BITS = 5, CALLS_TARGET = 6 };

/* What handlers swap at an entry of rank 0, which has CALLS_SWAPS elements of 16 bytes; the i-th
 * of them by the i-th row. */
struct calls_swap {
    uint64_t data, operand;
    uint8_t op, type, length, gap[5];
};

struct calls_state {
    uint32_t pt, gap;
    int32_t code[CALLS_SWAPS];
    uint64_t before[CALLS_SWAPS]; /* of what was swapped from the handler's memory */
    struct calls_swap swap[CALLS_SWAPS];
};

/* Prints one line of each kind; swaps from its own memory, and from that of its entry, where the
 * data of the i-th swap lies at 16 i, and what was found comes to 16 i + 8. */
extern const ptl_handlers_t calls_printing, calls_swapping, calls_swapping_host;

#endif
