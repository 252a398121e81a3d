/* SPDX-License-Identifier: BSD-3-Clause */
/* A function in C that a handler in C++ (loud.cc) calls. */
#include "shout.h"

uint32_t shout_count(const uint8_t *bytes, ptl_size_t length)
{
    uint32_t letters = 0;
    for (ptl_size_t i = 0; i < length; i++) {
        letters += bytes[i] >= 'a' && bytes[i] <= 'z';
    }
    return letters;
}
