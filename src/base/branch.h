/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hints which way a branch goes. The compiler guesses, and where it guesses wrong on the way of a
 * message that way jumps to and fro through code that hardly ever runs, which costs most where a
 * core shares its front end with another thread. likely() and unlikely() say it, at the branches
 * that every message passes; what is in doubt is left to the compiler.
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
