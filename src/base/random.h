/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bytes that an attacker cannot guess, as hexadecimal text. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/sys.h"

enum { RANDOM_HEX_MOST = 16 };

/* random_hex() writes the digits of `bytes` random bytes, RANDOM_HEX_MOST at most, and a NUL. */
static inline void random_hex(char *text, size_t bytes)
{
    uint8_t raw[RANDOM_HEX_MOST];
    /* the call was interrupted before the kernel had collected enough randomness */
    while (sys_getrandom(raw, bytes) != (ssize_t)bytes) {
    }
    for (size_t i = 0; i < bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    }
}

#endif
