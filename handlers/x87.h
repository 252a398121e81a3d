/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 80-bit reals of x86, computed with integers: for combine.c on an HPU whose compiler has
 * another long double, or none. Results have the same bits as on the host.
 *
 *      | mantissa: 64 bits, the first one explicit | sign, exponent: 16 bits | 6 bytes unused |
 *
 * Rounding is to nearest, ties to even. Sums and products are computed in 128 bits, a high and a
 * low half, in which the first bit of a number is bit 127. When 1 bits are shifted out at the low
 * end bit 0 is set (a sticky bit), which is enough for correct rounding. Of two NaNs the quiet one
 * is the result, else the one with the larger mantissa, as on the x87.
 */
#ifndef HANDLERS_X87_H
#define HANDLERS_X87_H

#include <stdbool.h>
#include <stdint.h>

struct x87 {
    uint64_t mantissa;
    uint16_t top; /* sign and exponent */
    uint16_t unused[3];
};

_Static_assert(sizeof(struct x87) == 16, "as the ABI of x86-64 has it");

/* Functions are not inlined, since HPUs have little memory for code. */
#define X87_APART static __attribute__((noinline))

enum { X87_SPECIAL = 0x7fff, X87_SIGN = 0x8000 };
enum { X87_LESS = 1, X87_EQUAL = 2, X87_GREATER = 4, X87_UNORDERED = 8 };

static inline int x87_exponent(const struct x87 *a)
{
    return a->top & X87_SPECIAL;
}

static inline bool x87_is_nan(const struct x87 *a)
{
    return x87_exponent(a) == X87_SPECIAL && a->mantissa << 1 != 0;
}

static inline bool x87_is_infinite(const struct x87 *a)
{
    return x87_exponent(a) == X87_SPECIAL && a->mantissa << 1 == 0;
}

static inline bool x87_is_zero(const struct x87 *a)
{
    return x87_exponent(a) == 0 && a->mantissa == 0;
}

/* Sets a number. Its unused bytes keep their values, as they do on the host. */
static inline void x87_set(struct x87 *to, uint64_t mantissa, unsigned top)
{
    to->mantissa = mantissa;
    to->top = (uint16_t)top;
}

static inline void x87_negate(struct x87 *a)
{
    a->top ^= X87_SIGN;
}

static inline int x87_compare(const struct x87 *a, const struct x87 *b)
{
    if (x87_is_nan(a) || x87_is_nan(b)) {
        return X87_UNORDERED;
    }
    if (x87_is_zero(a) && x87_is_zero(b)) {
        return X87_EQUAL;
    }
    bool minus = (a->top & X87_SIGN) != 0;
    if (minus != ((b->top & X87_SIGN) != 0)) {
        return minus ? X87_LESS : X87_GREATER;
    }
    if (a->top == b->top && a->mantissa == b->mantissa) {
        return X87_EQUAL;
    }
    bool smaller_size = x87_exponent(a) != x87_exponent(b) ? x87_exponent(a) < x87_exponent(b)
                                                           : a->mantissa < b->mantissa;
    return smaller_size != minus ? X87_LESS : X87_GREATER;
}

/* ---- Numbers of 128 bits ---- */

struct x87_wide {
    uint64_t high, low;
};

X87_APART struct x87_wide x87_shift_right(struct x87_wide w, int by)
{
    while (by >= 64) {
        w.low = w.high | (w.low != 0);
        w.high = 0;
        by -= 64;
        if (w.low <= 1) {
            return w;
        }
    }
    if (by > 0) {
        bool lost = w.low << (64 - by) != 0;
        w.low = w.low >> by | w.high << (64 - by) | lost;
        w.high >>= by;
    }
    return w;
}

static inline struct x87_wide x87_multiply_whole(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
    return (struct x87_wide){a1 * b1 + (middle >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}

/* Rounds w * 2^exponent to a number. */
X87_APART void x87_round(struct x87 *to, unsigned sign, int exponent, struct x87_wide w)
{
    if (w.high == 0 && w.low == 0) {
        x87_set(to, 0, sign);
        return;
    }
    while (w.high >> 63 == 0) {
        w.high = w.high << 1 | w.low >> 63;
        w.low <<= 1;
        exponent--;
    }
    if (exponent < 1) {
        w = x87_shift_right(w, 1 - exponent);
        exponent = 0;
    }
    uint64_t half = UINT64_C(1) << 63;
    if (w.low > half || (w.low == half && w.high % 2 == 1)) {
        w.high++;
        if (w.high == 0) {
            w.high = half;
            exponent++;
        }
    }
    if (exponent == 0 && w.high >> 63 == 1) {
        exponent = 1; /* rounded up from the largest denormal number to the smallest normal one */
    }
    if (exponent >= X87_SPECIAL) {
        x87_set(to, half, sign | X87_SPECIAL);
    } else {
        x87_set(to, w.high, sign | (unsigned)exponent);
    }
}

/* ---- Sums and products ---- */

/* If a or b is a NaN, sets *to to the result and returns true. */
X87_APART bool x87_take_nan(struct x87 *to, const struct x87 *a, const struct x87 *b)
{
    const uint64_t quiet = UINT64_C(1) << 62;
    bool of_a = x87_is_nan(a), of_b = x87_is_nan(b);
    if (!of_a && !of_b) {
        return false;
    }
    if (of_a && of_b) {
        bool quiet_a = (a->mantissa & quiet) != 0, quiet_b = (b->mantissa & quiet) != 0;
        of_a = quiet_a != quiet_b           ? quiet_a
               : a->mantissa != b->mantissa ? a->mantissa > b->mantissa
                                            : (a->top & X87_SIGN) == 0;
    }
    const struct x87 *from = of_a ? a : b;
    x87_set(to, from->mantissa | quiet, from->top);
    return true;
}

/* Sets the NaN that is the result of an invalid operation. */
static inline void x87_set_indefinite(struct x87 *to)
{
    x87_set(to, UINT64_C(3) << 62, X87_SIGN | X87_SPECIAL);
}

static inline int x87_scale(const struct x87 *a)
{
    return x87_exponent(a) != 0 ? x87_exponent(a) : 1;
}

static inline struct x87_wide x87_subtract_wide(struct x87_wide a, struct x87_wide b)
{
    return (struct x87_wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

/* *to may be the same as *a or *b. */
X87_APART void x87_add(struct x87 *to, const struct x87 *a, const struct x87 *b)
{
    if (x87_take_nan(to, a, b)) {
        return;
    }
    unsigned sign = a->top & X87_SIGN, other = b->top & X87_SIGN;
    if (x87_is_infinite(a) || x87_is_infinite(b)) {
        if (x87_is_infinite(a) && x87_is_infinite(b) && sign != other) {
            x87_set_indefinite(to);
        } else {
            x87_set(to, UINT64_C(1) << 63, x87_is_infinite(a) ? a->top : b->top);
        }
        return;
    }
    /* Both numbers begin at bit 126, which leaves one bit for the carry. */
    int exponent = x87_scale(a), distance = exponent - x87_scale(b);
    struct x87_wide x = {a->mantissa >> 1, a->mantissa << 63};
    struct x87_wide y = {b->mantissa >> 1, b->mantissa << 63};
    if (distance < 0) {
        x = x87_shift_right(x, -distance);
        exponent -= distance;
    } else {
        y = x87_shift_right(y, distance);
    }
    if (sign == other) {
        uint64_t low = x.low + y.low;
        x = (struct x87_wide){x.high + y.high + (low < y.low), low};
    } else if (x.high > y.high || (x.high == y.high && x.low >= y.low)) {
        x = x87_subtract_wide(x, y);
        sign = x.high == 0 && x.low == 0 ? 0 : sign;
    } else {
        x = x87_subtract_wide(y, x);
        sign = other;
    }
    x87_round(to, sign, exponent + 1, x);
}

X87_APART void x87_multiply(struct x87 *to, const struct x87 *a, const struct x87 *b)
{
    if (x87_take_nan(to, a, b)) {
        return;
    }
    unsigned sign = (a->top ^ b->top) & X87_SIGN;
    if (x87_is_infinite(a) || x87_is_infinite(b)) {
        if (x87_is_zero(a) || x87_is_zero(b)) {
            x87_set_indefinite(to);
        } else {
            x87_set(to, UINT64_C(1) << 63, sign | X87_SPECIAL);
        }
        return;
    }
    x87_round(to, sign, x87_scale(a) + x87_scale(b) - 0x3ffe,
              x87_multiply_whole(a->mantissa, b->mantissa));
}

/* ---- Complex numbers: two reals each ---- */

/* Replaces a number by 1, if it is an infinity, or else by 0, with its sign (C17, annex G.5.1). */
static inline void x87_box(struct x87 *a)
{
    unsigned sign = a->top & X87_SIGN;
    bool one = x87_is_infinite(a);
    x87_set(a, one ? UINT64_C(1) << 63 : 0, one ? sign | 0x3fff : sign);
}

static inline void x87_no_nan(struct x87 *a)
{
    if (x87_is_nan(a)) {
        x87_set(a, 0, a->top & X87_SIGN);
    }
}

static inline void x87_complex_terms(const struct x87 *a, const struct x87 *b, struct x87 *term)
{
    x87_multiply(&term[0], &a[0], &b[0]);
    x87_multiply(&term[1], &a[1], &b[1]);
    x87_multiply(&term[2], &a[0], &b[1]);
    x87_multiply(&term[3], &a[1], &b[0]);
}

static inline void x87_complex_sum(const struct x87 *term, struct x87 *to)
{
    struct x87 less = term[1];
    x87_negate(&less);
    x87_add(&to[0], &term[0], &less);
    x87_add(&to[1], &term[2], &term[3]);
}

/* Computes a complex product with an infinite factor: it is infinite, although some of its terms
 * may be NaN. */
static inline void x87_complex_infinite(struct x87 *a, struct x87 *b, struct x87 *term,
                                        struct x87 *to)
{
    bool again = false;
    struct x87 *side[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct x87 *this = side[i], *other = side[1 - i];
        if (x87_is_infinite(&this[0]) || x87_is_infinite(&this[1])) {
            x87_box(&this[0]);
            x87_box(&this[1]);
            x87_no_nan(&other[0]);
            x87_no_nan(&other[1]);
            again = true;
        }
    }
    for (int i = 0; i < 4 && !again; i++) {
        if (x87_is_infinite(&term[i])) {
            x87_no_nan(&a[0]);
            x87_no_nan(&a[1]);
            x87_no_nan(&b[0]);
            x87_no_nan(&b[1]);
            i = 4;
            again = true;
        }
    }
    if (again) {
        const struct x87 infinity = {UINT64_C(1) << 63, X87_SPECIAL, {0}};
        struct x87 sum[2];
        x87_complex_terms(a, b, term);
        x87_complex_sum(term, sum);
        x87_multiply(&to[0], &infinity, &sum[0]);
        x87_multiply(&to[1], &infinity, &sum[1]);
    }
}

X87_APART void x87_complex_multiply(struct x87 *to, const struct x87 *b)
{
    struct x87 term[4], x[2] = {to[0], to[1]}, y[2] = {b[0], b[1]};
    x87_complex_terms(x, y, term);
    x87_complex_sum(term, to);
    if (x87_is_nan(&to[0]) && x87_is_nan(&to[1])) {
        x87_complex_infinite(x, y, term, to);
    }
}

#endif
