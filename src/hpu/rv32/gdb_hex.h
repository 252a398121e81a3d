/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and bytes as GDB's remote protocol writes them: in hexadecimal digits. */
#ifndef HPU_RV32_GDB_HEX_H
#define HPU_RV32_GDB_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const char gdb_hex_digits[] = "0123456789abcdef";

/* Returns the value of a hexadecimal digit, -1 for other characters. */
static inline int gdb_hex_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number of at most 32 bits and moves *text behind it; false: there is none. */
static inline bool gdb_hex_number(const char **text, uint32_t *value)
{
    const char *begin = *text;
    uint64_t n = 0;
    for (int d; (d = gdb_hex_digit(**text)) >= 0 && n <= UINT32_MAX; (*text)++) {
        n = n * 16 + (uint64_t)d;
    }
    *value = (uint32_t)n;
    return *text > begin && n <= UINT32_MAX;
}

/* Reads `size` bytes of two digits each; false: there are fewer. */
static inline bool gdb_hex_read(const char *text, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = gdb_hex_digit(text[2 * i]), low = high < 0 ? -1 : gdb_hex_digit(text[2 * i + 1]);
        if (low < 0) {
            return false;
        }
        ((uint8_t *)bytes)[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* Writes `size` bytes as digits, without a terminating zero; returns the number of digits. */
static inline size_t gdb_hex_write(char *text, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = gdb_hex_digits[((const uint8_t *)bytes)[i] >> 4];
        text[2 * i + 1] = gdb_hex_digits[((const uint8_t *)bytes)[i] & 15];
    }
    return 2 * size;
}

#endif
