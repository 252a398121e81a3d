/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzz target offers to driver.c or to libFuzzer. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Aborts, having said where, if what must hold does not. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* LLVMFuzzerTestOneInput() runs one input; it returns 0, and crashes or calls
 * abort() when something that must hold does not. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* fuzz_seed() is optional: writes a well-formed input, one for each `number`, to
 * `data` of `max` bytes and returns its length. Only driver.c calls it. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max) __attribute__((weak));

#endif
