/* SPDX-License-Identifier: BSD-3-Clause */
/* How the programs of this folder end: fail(), which each defines, says what went wrong, and where
 * the traffic was, and ends them all. */
#ifndef SOAK_MUST_H
#define SOAK_MUST_H

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail(__VA_ARGS__);                                                                     \
        }                                                                                          \
    } while (0)

#endif
