/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that compilers call for assignments of structs and for initialisers: memcpy() and the
 * like, by words, which may be misaligned on this core. This file also asserts the layout of
 * handlers' arguments as the host builds them (hpu/device_run.c).
 */
#include "spin_handler.h"

_Static_assert(sizeof(ptl_header_t) == 72 && offsetof(ptl_header_t, length) == 8 &&
                   offsetof(ptl_header_t, target_id) == 16 &&
                   offsetof(ptl_header_t, source_id) == 24 &&
                   offsetof(ptl_header_t, match_bits) == 32 &&
                   offsetof(ptl_header_t, offset) == 40 && offsetof(ptl_header_t, hdr_data) == 48 &&
                   offsetof(ptl_header_t, user_hdr) == 56 &&
                   offsetof(ptl_header_t, user_hdr_length) == 64,
               "struct device_header");
_Static_assert(sizeof(ptl_payload_t) == 24 && offsetof(ptl_payload_t, offset) == 8 &&
                   offsetof(ptl_payload_t, base) == 16,
               "struct device_payload");

typedef uint32_t __attribute__((may_alias, aligned(1))) any_word;

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memmove(void *to, const void *from, size_t length);
void *memset(void *to, int byte, size_t length);
int memcmp(const void *a, const void *b, size_t length);

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (; length >= 4; length -= 4, t += 4, f += 4) {
        *(any_word *)t = *(const any_word *)f;
    }
    for (; length != 0; length--) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t length)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)to - (uintptr_t)from >= length) {
        return memcpy(to, from, length);
    }
    while (length != 0) {
        length--;
        t[length] = f[length];
    }
    return to;
}

void *memset(void *to, int byte, size_t length)
{
    uint8_t *t = to;
    uint32_t word = (uint8_t)byte * 0x01010101u;
    for (; length >= 4; length -= 4, t += 4) {
        *(any_word *)t = word;
    }
    for (; length != 0; length--) {
        *t++ = (uint8_t)byte;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t length)
{
    const uint8_t *x = a, *y = b;
    for (; length != 0; length--, x++, y++) {
        if (*x != *y) {
            return *x < *y ? -1 : 1;
        }
    }
    return 0;
}
