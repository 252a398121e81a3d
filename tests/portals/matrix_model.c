/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of atomics; see matrix_model.h. Integers are computed in 64 bits and cut,
 * which is how they wrap; floating point numbers in their own type, so that they are
 * rounded once.
 */
#include "matrix_model.h"

#include "suite.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum family { INTEGER, REAL, COMPLEX };

static enum family family(ptl_datatype_t type)
{
    switch (type) {
    case PTL_FLOAT:
    case PTL_DOUBLE:
    case PTL_LONG_DOUBLE:
        return REAL;
    case PTL_FLOAT_COMPLEX:
    case PTL_DOUBLE_COMPLEX:
    case PTL_LONG_DOUBLE_COMPLEX:
        return COMPLEX;
    default:
        return INTEGER;
    }
}

static bool is_signed(ptl_datatype_t type)
{
    return type == PTL_INT8_T || type == PTL_INT16_T || type == PTL_INT32_T || type == PTL_INT64_T;
}

/* ---- Integers --------------------------------------------------------------- */

static uint64_t load(ptl_datatype_t type, const void *element)
{
    uint64_t bits = 0;
    memcpy(&bits, element, suite_type_size(type)); /* this machine is little-endian */
    return bits;
}

static bool less(ptl_datatype_t type, uint64_t a, uint64_t b)
{
    if (is_signed(type)) {
        uint64_t sign = UINT64_C(1) << (8 * suite_type_size(type) - 1);
        return (a ^ sign) < (b ^ sign);
    }
    return a < b;
}

static bool chosen(ptl_op_t op, bool is_less, bool is_equal, bool is_greater)
{
    switch (op) {
    case PTL_CSWAP:
        return is_equal;
    case PTL_CSWAP_NE:
        return !is_equal;
    case PTL_CSWAP_LE:
        return is_less || is_equal;
    case PTL_CSWAP_LT:
        return is_less;
    case PTL_CSWAP_GE:
        return is_greater || is_equal;
    case PTL_CSWAP_GT:
        return is_greater;
    default:
        abort();
    }
}

static uint64_t integer(ptl_op_t op, ptl_datatype_t type, uint64_t t, uint64_t d, uint64_t o)
{
    switch (op) {
    case PTL_MIN:
        return less(type, d, t) ? d : t;
    case PTL_MAX:
        return less(type, t, d) ? d : t;
    case PTL_SUM:
        return t + d;
    case PTL_PROD:
        return t * d; /* the low bits are the same with and without sign */
    case PTL_LOR:
        return t != 0 || d != 0;
    case PTL_LAND:
        return t != 0 && d != 0;
    case PTL_LXOR:
        return (t != 0) != (d != 0);
    case PTL_BOR:
        return t | d;
    case PTL_BAND:
        return t & d;
    case PTL_BXOR:
        return t ^ d;
    case PTL_SWAP:
        return d;
    case PTL_MSWAP:
        return (o & d) | (~o & t);
    default:
        return chosen(op, less(type, o, t), o == t, less(type, t, o)) ? d : t;
    }
}

/* ---- Floating point numbers ------------------------------------------------- */

/* One number, in the type it has; wide holds any of them exactly. */
static long double wide(size_t size, const void *number)
{
    float f;
    double d;
    long double l;
    switch (size) {
    case sizeof(f):
        memcpy(&f, number, sizeof(f));
        return (long double)f;
    case sizeof(d):
        memcpy(&d, number, sizeof(d));
        return (long double)d;
    default:
        memcpy(&l, number, sizeof(l));
        return l;
    }
}

/* Stores a number that its type holds exactly, or rounded. */
static void narrow(size_t size, long double value, void *number)
{
    float f = (float)value;
    double d = (double)value;
    memcpy(number, size == sizeof(f) ? (void *)&f : size == sizeof(d) ? (void *)&d : &value, size);
}

static void sum_or_product(bool sum, size_t size, void *target, const void *data)
{
    if (size == sizeof(float)) {
        float a, b;
        memcpy(&a, target, sizeof(a));
        memcpy(&b, data, sizeof(b));
        a = sum ? a + b : a * b;
        memcpy(target, &a, sizeof(a));
    } else if (size == sizeof(double)) {
        double a, b;
        memcpy(&a, target, sizeof(a));
        memcpy(&b, data, sizeof(b));
        a = sum ? a + b : a * b;
        memcpy(target, &a, sizeof(a));
    } else {
        long double a, b;
        memcpy(&a, target, sizeof(a));
        memcpy(&b, data, sizeof(b));
        a = sum ? a + b : a * b;
        memcpy(target, &a, sizeof(a));
    }
}

static void real(ptl_op_t op, size_t size, void *target, const void *data, const void *operand)
{
    long double t = wide(size, target), d = wide(size, data);
    long double o = operand != NULL ? wide(size, operand) : 0;
    bool take;
    switch (op) {
    case PTL_SUM:
    case PTL_PROD:
        sum_or_product(op == PTL_SUM, size, target, data);
        return;
    case PTL_MIN:
        take = d < t;
        break;
    case PTL_MAX:
        take = d > t;
        break;
    case PTL_SWAP:
        take = true;
        break;
    default:
        take = chosen(op, o<t, o == t, o> t);
    }
    if (take) {
        memcpy(target, data, size);
    }
}

/* Products are tried with numbers whose products no type rounds: see model_value(). */
static void complex_product(size_t half, unsigned char *target, const unsigned char *data)
{
    long double a = wide(half, target), b = wide(half, target + half);
    long double c = wide(half, data), d = wide(half, data + half);
    narrow(half, a * c - b * d, target);
    narrow(half, a * d + b * c, target + half);
}

static void complex(ptl_op_t op, size_t size, unsigned char *target, const unsigned char *data,
                    const unsigned char *operand)
{
    size_t half = size / 2;
    bool equal = operand != NULL && wide(half, operand) == wide(half, target) &&
                 wide(half, operand + half) == wide(half, target + half);
    if (op == PTL_SUM) {
        sum_or_product(true, half, target, data);
        sum_or_product(true, half, target + half, data + half);
    } else if (op == PTL_PROD) {
        complex_product(half, target, data);
    } else if (op == PTL_SWAP || chosen(op, false, equal, false)) {
        memcpy(target, data, size);
    }
}

void model_apply(ptl_op_t op, ptl_datatype_t type, void *target, const void *data,
                 const void *operand)
{
    size_t size = suite_type_size(type);
    if (family(type) == INTEGER) {
        uint64_t o = operand != NULL ? load(type, operand) : 0;
        uint64_t result = integer(op, type, load(type, target), load(type, data), o);
        memcpy(target, &result, size);
    } else if (family(type) == REAL) {
        real(op, size, target, data, operand);
    } else {
        complex(op, size, target, data, operand);
    }
}

/* ---- Values ----------------------------------------------------------------- */

static const uint64_t integers[] = {0,
                                    1,
                                    UINT64_MAX, /* -1 */
                                    UINT64_C(0x8000000080008080),
                                    UINT64_C(0x7fffffff7fff7f7f),
                                    2,
                                    UINT64_C(0xa5c3965a0ff05a3c),
                                    UINT64_C(0xfffffffffffffff3), /* -13 */
                                    0x55};

/* The least and greatest value of a type, which its low bits above are not. */
static uint64_t edge(ptl_datatype_t type, bool greatest)
{
    uint64_t sign = UINT64_C(1) << (8 * suite_type_size(type) - 1);
    return greatest ? (is_signed(type) ? sign - 1 : UINT64_MAX) : (is_signed(type) ? sign : 0);
}

/* Numbers whose sums and products are exact or rounded once, in every type. */
static const long double reals[] = {0, 1, -1, 0.5L, -2.25L, 1e30L, -3e-30L, 0.1L, 16777216, 3};

/* Beyond the end of those: only where they are compared or carried, not computed with. */
static long double special(unsigned i, ptl_datatype_t type)
{
    size_t size = suite_type_size(type) / (family(type) == COMPLEX ? 2 : 1);
    switch (i) {
    case 0:
        return INFINITY;
    case 1:
        return -INFINITY;
    case 2:
        return size == sizeof(float) ? FLT_MAX : size == sizeof(double) ? DBL_MAX : LDBL_MAX;
    case 3:
        return -0.0L;
    default:
        return NAN;
    }
}

/* MIN and MAX of NaN, or of zeros of two signs, are open. */
static unsigned specials(ptl_op_t op)
{
    return op == PTL_SUM || op == PTL_PROD ? 0 : op == PTL_MIN || op == PTL_MAX ? 3 : 5;
}

static const int small[] = {0, 1, -1, 3, -7, 20, 5};

unsigned model_values(ptl_op_t op, ptl_datatype_t type)
{
    if (family(type) == INTEGER) {
        return (unsigned)(sizeof(integers) / sizeof(integers[0])) + 2; /* and the edges */
    }
    if (family(type) == COMPLEX && op == PTL_PROD) {
        return sizeof(small) / sizeof(small[0]);
    }
    return (unsigned)(sizeof(reals) / sizeof(reals[0])) + specials(op);
}

static long double number(ptl_op_t op, ptl_datatype_t type, unsigned i)
{
    unsigned n = sizeof(reals) / sizeof(reals[0]);
    if (family(type) == COMPLEX && op == PTL_PROD) {
        return small[i % (sizeof(small) / sizeof(small[0]))] / 2.0L;
    }
    i %= n + specials(op);
    return i < n ? reals[i] : special(i - n, type);
}

void model_value(ptl_op_t op, ptl_datatype_t type, unsigned i, void *element)
{
    size_t size = suite_type_size(type);
    unsigned char *bytes = element;
    memset(element, 0, size);
    i %= model_values(op, type);
    if (family(type) == INTEGER) {
        unsigned n = sizeof(integers) / sizeof(integers[0]);
        uint64_t value = i < n ? integers[i] : edge(type, i == n);
        memcpy(element, &value, size);
    } else if (family(type) == REAL) {
        narrow(size, number(op, type, i), bytes);
    } else {
        narrow(size / 2, number(op, type, i), bytes);
        narrow(size / 2, number(op, type, 3 * i + 1), bytes + size / 2);
    }
}

bool model_padding(ptl_datatype_t type, size_t byte)
{
    bool wide_type = type == PTL_LONG_DOUBLE || type == PTL_LONG_DOUBLE_COMPLEX;
    return wide_type && byte % sizeof(long double) >= 10; /* the x87 format has ten bytes */
}
