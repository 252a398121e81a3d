/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kinds of operations and parts there are: their words, for all who read or print them, and
 * which fields they have, for the check of binary files.
 *
 * Parts of an operation lie behind it in this order, and none twice:
 *
 *   [header handler, what it does] [payload handler, ...] [completion handler, ...]
 *   [when] [counts] [use once]
 */
#ifndef SIM_GOAL_OPERATIONS_H
#define SIM_GOAL_OPERATIONS_H

#include "goal.h"

/* What an operation or part has. */
enum {
    GOAL_HAS_BYTES = 1, /* its size is in bytes */
    GOAL_HAS_PEER = 2,  /* a rank */
    GOAL_HAS_ANY = 4,   /* which may be GOAL_ANY */
    GOAL_HAS_TAG = 8,   /* a tag */
    GOAL_HAS_ANY_TAG = 16 /* which may be GOAL_ANY */,
    GOAL_HAS_COUNTER = 32, /* its tag is the number of a counter */
    GOAL_MAY_WAIT = 64,    /* it may be triggered */
    GOAL_MAY_COUNT = 128,  /* a counter may count what it does */
    GOAL_HAS_NIC = 256,
};

struct goal_kind {
    const char *word;    /* NULL: there is no such type */
    const char *between; /* the word before the peer; NULL: none */
    unsigned has;
};

/* goal_kind_of() says what a type is; a type beyond all others has no word. */
const struct goal_kind *goal_kind_of(uint8_t type);

/* goal_is_portals() is true of operations that need a simulated NIC. */
static inline bool goal_is_portals(uint8_t type)
{
    return type > GOAL_CALC && type < GOAL_OPERATIONS;
}

/* goal_follows() says whether a part may lie behind `before`, an operation or its part before this
 * one; `handler` is the last handler among its parts, 0: there is none. All are types. */
bool goal_follows(uint8_t operation, uint8_t handler, uint8_t before, uint8_t part);

#endif
