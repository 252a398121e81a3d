/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/x87.h against the processor's own 80-bit reals: sums, products, comparisons and
 * products of complex numbers, of every kind of number: around one, denormal, huge, infinite,
 * NaNs of all sorts. The bits must be the same; of a NaN in a complex product, that it is one.
 */
#include "x87.h"

#include <complex.h>
#include <stdio.h>
#include <string.h>

enum { TRIALS = 300000 };

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 2685821657736338717u;
}

static struct x87 from_real(long double value)
{
    struct x87 x = {0};
    memcpy(&x, &value, 10);
    return x;
}

static uint64_t mantissa(void)
{
    const uint64_t top = UINT64_C(1) << 63;
    switch (next() % 4) {
    case 0:
        return top | next() % 3;
    case 1:
        return top | ~UINT64_C(0) << next() % 60;
    default:
        return top | next();
    }
}

static long double number(void)
{
    struct x87 x = {.mantissa = mantissa()};
    long double value = 0;
    unsigned exponent = 0x3fff - 70 + (unsigned)(next() % 140);
    switch (next() % 10) {
    case 0: /* denormal, zero */
        x.mantissa = x.mantissa << 1 >> 1 >> next() % 64;
        x.mantissa = next() % 4 == 0 ? 0 : x.mantissa;
        exponent = 0;
        break;
    case 1:
        exponent = 1 + (unsigned)(next() % 4);
        break;
    case 2:
        exponent = 0x7ffe - (unsigned)(next() % 4);
        break;
    case 3: /* infinite, NaN, quiet or not */
        x.mantissa = UINT64_C(1) << 63 | (next() % 3 == 0 ? next() >> 2 | next() % 2 << 62 : 0);
        exponent = 0x7fff;
        break;
    case 4: /* products of these are denormal */
        exponent = 0x1fff + (unsigned)(next() % 80);
        break;
    default:
        break;
    }
    x.top = (uint16_t)(exponent | next() % 2 << 15);
    memcpy(&value, &x, 10);
    return value;
}

static int check(const char *what, const struct x87 *got, volatile long double want)
{
    struct x87 x = from_real(want);
    if (got->mantissa == x.mantissa && got->top == x.top) {
        return 0;
    }
    printf("%s: got %04x.%016llx, not %04x.%016llx\n", what, got->top,
           (unsigned long long)got->mantissa, x.top, (unsigned long long)x.mantissa);
    return 1;
}

static int check_part(const char *what, const struct x87 *got, long double want)
{
    return x87_is_nan(got) && want != want ? 0 : check(what, got, want);
}

static int try_reals(void)
{
    volatile long double a = number(), b = number();
    struct x87 x = from_real(a), y = from_real(b), z = {0};
    int want = a < b ? X87_LESS : a == b ? X87_EQUAL : a > b ? X87_GREATER : X87_UNORDERED;
    x87_add(&z, &x, &y);
    int bad = check("sum", &z, a + b);
    x87_multiply(&z, &x, &y);
    bad += check("product", &z, a * b);
    if (x87_compare(&x, &y) != want) {
        printf("compare: got %d, not %d\n", x87_compare(&x, &y), want);
        bad++;
    }
    return bad;
}

static int try_complex(void)
{
    volatile long double v[4] = {number(), number(), number(), number()};
    struct x87 x[2] = {from_real(v[0]), from_real(v[1])};
    struct x87 y[2] = {from_real(v[2]), from_real(v[3])};
    volatile long double _Complex p = __builtin_complex((long double)v[0], (long double)v[1]);
    volatile long double _Complex q = __builtin_complex((long double)v[2], (long double)v[3]);
    long double _Complex product = p * q;
    x87_complex_multiply(x, y);
    return check_part("real part", &x[0], creall(product)) +
           check_part("imaginary part", &x[1], cimagl(product));
}

int main(void)
{
    int bad = 0;
    for (int i = 0; i < TRIALS && bad < 10; i++) {
        bad += try_reals() + try_complex();
    }
    if (bad == 0) {
        printf("%d sums, products and comparisons are those of the processor\n", 4 * TRIALS);
    }
    return bad != 0;
}
