/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying and clearing bytes without libc, for handlers and for the host's functions in the same
 * files. */
#ifndef HANDLERS_BYTES_H
#define HANDLERS_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/* Eight bytes at any address. The compiler makes one access where the processor allows that, else
 * several, and never a call. */
struct bytes_word {
    uint64_t value;
} __attribute__((packed, may_alias));

static inline void bytes_copy(void *restrict to, const void *restrict from, uint64_t length)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (; length >= sizeof(struct bytes_word); length -= sizeof(struct bytes_word)) {
        *(struct bytes_word *)t = *(const struct bytes_word *)f;
        t += sizeof(struct bytes_word);
        f += sizeof(struct bytes_word);
    }
    for (uint64_t i = 0; i < length; i++) {
        t[i] = f[i];
    }
}

static inline void bytes_zero(void *to, uint64_t length)
{
    uint8_t *t = to;
    for (; length >= sizeof(struct bytes_word); length -= sizeof(struct bytes_word)) {
        ((struct bytes_word *)t)->value = 0;
        t += sizeof(struct bytes_word);
    }
    for (uint64_t i = 0; i < length; i++) {
        t[i] = 0;
    }
}

static inline bool bytes_equal(const void *a, const void *b, uint64_t length)
{
    const uint8_t *x = a, *y = b;
    for (; length >= sizeof(struct bytes_word); length -= sizeof(struct bytes_word)) {
        if (((const struct bytes_word *)x)->value != ((const struct bytes_word *)y)->value) {
            return false;
        }
        x += sizeof(struct bytes_word);
        y += sizeof(struct bytes_word);
    }
    for (uint64_t i = 0; i < length; i++) {
        if (x[i] != y[i]) {
            return false;
        }
    }
    return true;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* True if `length` bytes at `offset` lie within `size` bytes; no sum can wrap. */
static inline bool range_fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

#endif
