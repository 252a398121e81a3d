/* SPDX-License-Identifier: BSD-3-Clause */
/* Quotients and remainders as the extension M has them, also where C leaves them undefined. */
#ifndef HPU_RV32_DIVIDE_H
#define HPU_RV32_DIVIDE_H

#include <stdbool.h>
#include <stdint.h>

/* is_undefined() tells whether C leaves a / b undefined. */
static inline bool is_undefined(uint32_t a, uint32_t b)
{
    return b == 0 || (b == UINT32_MAX && a == (uint32_t)INT32_MIN);
}

static inline uint32_t divide(uint32_t a, uint32_t b)
{
    if (b == 0) {
        return UINT32_MAX;
    }
    /* The one quotient that 32 bits do not hold wraps around. */
    return b == UINT32_MAX ? -a : (uint32_t)((int32_t)a / (int32_t)b);
}

static inline uint32_t remainder_of(uint32_t a, uint32_t b)
{
    if (b == 0) {
        return a;
    }
    return b == UINT32_MAX ? 0 : (uint32_t)((int32_t)a % (int32_t)b);
}

#endif
