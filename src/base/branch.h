/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hints to the compiler which way a branch goes. Without them the compiler guesses, and where it
 * guesses wrong the code that each message runs is spread between code that hardly ever runs. That
 * costs most where two hardware threads of a core share its front end. likely() and unlikely() mark
 * the branches that every message passes; a branch whose usual direction is not sure has no hint.
 */
#ifndef BASE_BRANCH_H
#define BASE_BRANCH_H

#include <stdbool.h>

static inline __attribute__((always_inline)) bool likely(bool condition)
{
    return __builtin_expect(condition, true);
}

static inline __attribute__((always_inline)) bool unlikely(bool condition)
{
    return __builtin_expect(condition, false);
}

#endif
