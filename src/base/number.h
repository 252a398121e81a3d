/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole numbers in text that a user has written: in environment variables, options, files. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* number_read() reads `text`, which must be one decimal number from `least` to `most` and nothing
 * else. It returns false if that is not so, and *number stays as it was. */
static inline bool number_read(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < least || v > most) {
        return false;
    }
    *number = v;
    return true;
}

/* number_read_unsigned() is the same for numbers without a sign. */
static inline bool number_read_unsigned(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v > most) {
        return false;
    }
    *number = v;
    return true;
}

#endif
