/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of plain.c, and what they share with their host. */
#ifndef PLAIN_HANDLERS_H
#define PLAIN_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

/* Divides a by b as numbers of 32 or 64 bits, signed or not, for the quotient or the remainder. */
enum { PLAIN_SIGNED = 1, PLAIN_LONG = 2, PLAIN_REMAINDER = 4, PLAIN_DIVISIONS = 8 };

struct plain_division {
    uint64_t a, b, result;
    uint32_t kind, gap;
};

/* One cell of each size, which each operation of C11 and of the compilers is done on in turn; and
 * what came of it. */
enum { PLAIN_SIZES = 4, PLAIN_OPERATIONS = 31 };

struct plain_atomics {
    uint64_t seed;
    uint64_t cell[PLAIN_SIZES];
    uint64_t found[PLAIN_SIZES][PLAIN_OPERATIONS];
};

/* plain_operations() is what the handler does. */
void plain_operations(struct plain_atomics *s);

/* What all packets of all messages work on at once. */
struct plain_shared {
    uint64_t sum, swapped, bits, low; /* added to; by compare-and-swap; set; the smallest */
    uint64_t pair;                    /* two halves that are the same, always */
    uint64_t torn;                    /* times that they were not */
    uint64_t ticket, left;            /* exchanged: what was taken out and not put in */
    uint64_t short_sums;              /* four of 16 bits side by side */
    uint64_t byte_sums;               /* eight of 8 bits */
};

/* Ways to touch host memory, of the entry from its begin on, and to leave what is the handler's. */
enum plain_touch {
    PLAIN_TO_HOST,
    PLAIN_TO_HOST_LATER,
    PLAIN_LARGE_TO_HOST,
    PLAIN_LARGE_TO_HOST_LEFT, /* without waiting for it */
    PLAIN_FROM_HOST,
    PLAIN_FROM_HOST_LATER,
    PLAIN_LARGE_FROM_HOST,
    PLAIN_CAS,
    PLAIN_ADD,
    PLAIN_OUTSIDE,       /* beyond the range; from here on the host's memory plays no part */
    PLAIN_LOCAL_READ,    /* from nowhere to the host */
    PLAIN_LOCAL_WRITTEN, /* from the host to nowhere */
    PLAIN_NOWHERE,       /* no transfer at all */
    PLAIN_TOUCHES
};

struct plain_touching {
    uint32_t how, gap;
    uint64_t room[(64 << 10) / 8 + 64];
};

extern const ptl_handlers_t plain_touching, plain_dividing, plain_counting, plain_sharing;

#endif
