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

/* The bytes that the processor computes with at once, at any address. */
struct bytes_register {
    unsigned long value;
} __attribute__((packed, may_alias));

static inline void bytes_xor(void *restrict to, const void *restrict from, uint64_t length)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    unsigned long words = (unsigned long)(length / sizeof(struct bytes_register));
    unsigned long done = words * sizeof(struct bytes_register);
#pragma GCC unroll 8
    for (unsigned long i = 0; i < words; i++) {
        ((struct bytes_register *)t)[i].value ^= ((const struct bytes_register *)f)[i].value;
    }
    for (; done < length; done++) {
        t[done] ^= f[done];
    }
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns a / b, and the rest in *rest. A processor of 32 bits divides small numbers in one
 * instruction, others by a function. */
static inline uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest)
{
    if ((a | b) >> 32 == 0) {
        *rest = (uint32_t)a % (uint32_t)b;
        return (uint32_t)a / (uint32_t)b;
    }
    *rest = a % b;
    return a / b;
}

/* True if `length` bytes at `offset` lie within `size` bytes; no sum can wrap. */
static inline bool range_fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

#endif
