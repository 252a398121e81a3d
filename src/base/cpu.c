/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of the processor; see cpu.h. */
#include "base/cpu.h"

#include <cpuid.h>

static unsigned features(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 ? c : 0;
}

bool cpu_has_sse42(void)
{
    return (features() & bit_SSE4_2) != 0;
}

bool cpu_has_avx(void)
{
    /* bits 1 and 2 of XCR0: the kernel saves the lower and the upper halves of vector registers */
    enum { KEPT = 6 };
    unsigned both = bit_OSXSAVE | bit_AVX, low, high;
    if ((features() & both) != both) {
        return false;
    }
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & KEPT) == KEPT;
}
