/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on arrays; see combine.h. Each type has a function, with a loop for each operation, so
 * that the compiler can vectorise the loops. Macros make these functions, since C has no other way
 * to write code for several types.
 *
 * Integers are added and multiplied as uint64_t, in which overflow is defined. A minimum or maximum
 * keeps the target's element if one of the two is NaN, as the NIC's does.
 */
#include "combine.h"

enum { INTEGER = 1, REAL = 2, COMPLEX = 4, ORDERED = INTEGER | REAL, ANY = ORDERED | COMPLEX };

static const uint8_t classes[PTL_DATATYPE_LAST] = {
    [PTL_INT8_T] = INTEGER,
    [PTL_UINT8_T] = INTEGER,
    [PTL_INT16_T] = INTEGER,
    [PTL_UINT16_T] = INTEGER,
    [PTL_INT32_T] = INTEGER,
    [PTL_UINT32_T] = INTEGER,
    [PTL_INT64_T] = INTEGER,
    [PTL_UINT64_T] = INTEGER,
    [PTL_FLOAT] = REAL,
    [PTL_DOUBLE] = REAL,
    [PTL_LONG_DOUBLE] = REAL,
    [PTL_FLOAT_COMPLEX] = COMPLEX,
    [PTL_DOUBLE_COMPLEX] = COMPLEX,
    [PTL_LONG_DOUBLE_COMPLEX] = COMPLEX,
};

static const uint8_t sizes[PTL_DATATYPE_LAST] = {
    [PTL_INT8_T] = 1,
    [PTL_UINT8_T] = 1,
    [PTL_INT16_T] = 2,
    [PTL_UINT16_T] = 2,
    [PTL_INT32_T] = 4,
    [PTL_UINT32_T] = 4,
    [PTL_INT64_T] = 8,
    [PTL_UINT64_T] = 8,
    [PTL_FLOAT] = sizeof(float),
    [PTL_DOUBLE] = sizeof(double),
    [PTL_LONG_DOUBLE] = sizeof(long double),
    [PTL_FLOAT_COMPLEX] = sizeof(float _Complex),
    [PTL_DOUBLE_COMPLEX] = sizeof(double _Complex),
    [PTL_LONG_DOUBLE_COMPLEX] = sizeof(long double _Complex),
};

/* The types for which Portals defines each operation (section 3.15.4). */
static const uint8_t defined_for[PTL_OP_LAST] = {
    [PTL_MIN] = ORDERED,      [PTL_MAX] = ORDERED,      [PTL_SUM] = ANY,
    [PTL_PROD] = ANY,         [PTL_LOR] = INTEGER,      [PTL_LAND] = INTEGER,
    [PTL_BOR] = INTEGER,      [PTL_BAND] = INTEGER,     [PTL_LXOR] = INTEGER,
    [PTL_BXOR] = INTEGER,     [PTL_SWAP] = ANY,         [PTL_CSWAP] = ANY,
    [PTL_CSWAP_NE] = ANY,     [PTL_CSWAP_LE] = ORDERED, [PTL_CSWAP_LT] = ORDERED,
    [PTL_CSWAP_GE] = ORDERED, [PTL_CSWAP_GT] = ORDERED, [PTL_MSWAP] = INTEGER,
};

uint32_t combine_size(ptl_datatype_t type)
{
    return type < PTL_DATATYPE_LAST ? sizes[type] : 0;
}

bool combine_defined(ptl_op_t op, ptl_datatype_t type)
{
    return op < PTL_OP_LAST && type < PTL_DATATYPE_LAST && (defined_for[op] & classes[type]) != 0;
}

/* In `expression` t is an element of the target, d of the data, o the operand. */
#define EACH(T, expression)                                                                        \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        const T t = target[i], d = data[i];                                                        \
        (void)t, (void)d;                                                                          \
        target[i] = (T)(expression);                                                               \
    }                                                                                              \
    break

#define HEAD(name, T)                                                                              \
    static void name(ptl_op_t op, T *target, const T *data, const T *operand, uint64_t count)      \
    {                                                                                              \
        const T o = op > PTL_SWAP ? *operand : 0;                                                  \
        switch (op) {

#define TAIL                                                                                       \
    default:                                                                                       \
        break;                                                                                     \
        }                                                                                          \
        }

/* Operations of all types; the conditional swaps compare the operand with the target. */
#define ANY_TYPE(T)                                                                                \
    case PTL_SWAP:                                                                                 \
        EACH(T, d);                                                                                \
    case PTL_CSWAP:                                                                                \
        EACH(T, o == t ? d : t);                                                                   \
    case PTL_CSWAP_NE:                                                                             \
        EACH(T, o != t ? d : t);

#define ORDERED_TYPE(T)                                                                            \
    ANY_TYPE(T)                                                                                    \
    case PTL_MIN:                                                                                  \
        EACH(T, d < t ? d : t);                                                                    \
    case PTL_MAX:                                                                                  \
        EACH(T, d > t ? d : t);                                                                    \
    case PTL_CSWAP_LE:                                                                             \
        EACH(T, o <= t ? d : t);                                                                   \
    case PTL_CSWAP_LT:                                                                             \
        EACH(T, o < t ? d : t);                                                                    \
    case PTL_CSWAP_GE:                                                                             \
        EACH(T, o >= t ? d : t);                                                                   \
    case PTL_CSWAP_GT:                                                                             \
        EACH(T, o > t ? d : t);

#define SUMS(T, wide)                                                                              \
    case PTL_SUM:                                                                                  \
        EACH(T, (wide)t + (wide)d);                                                                \
    case PTL_PROD:                                                                                 \
        EACH(T, (wide)t *(wide)d);

#define INTEGERS(name, T)                                                                          \
    HEAD(name, T)                                                                                  \
    ORDERED_TYPE(T)                                                                                \
    SUMS(T, uint64_t)                                                                              \
    case PTL_LOR:                                                                                  \
        EACH(T, t != 0 || d != 0);                                                                 \
    case PTL_LAND:                                                                                 \
        EACH(T, t != 0 && d != 0);                                                                 \
    case PTL_LXOR:                                                                                 \
        EACH(T, (t != 0) != (d != 0));                                                             \
    case PTL_BOR:                                                                                  \
        EACH(T, t | d);                                                                            \
    case PTL_BAND:                                                                                 \
        EACH(T, t &d);                                                                             \
    case PTL_BXOR:                                                                                 \
        EACH(T, t ^ d);                                                                            \
    case PTL_MSWAP:                                                                                \
        EACH(T, (o & d) | (~o & t));                                                               \
        TAIL

#define REALS(name, T) HEAD(name, T) ORDERED_TYPE(T) SUMS(T, T) TAIL
#define COMPLEXES(name, T) HEAD(name, T) ANY_TYPE(T) SUMS(T, T) TAIL

INTEGERS(int8s, int8_t)
INTEGERS(uint8s, uint8_t)
INTEGERS(int16s, int16_t)
INTEGERS(uint16s, uint16_t)
INTEGERS(int32s, int32_t)
INTEGERS(uint32s, uint32_t)
INTEGERS(int64s, int64_t)
INTEGERS(uint64s, uint64_t)
REALS(floats, float)
REALS(doubles, double)
COMPLEXES(float_complexes, float _Complex)
COMPLEXES(double_complexes, double _Complex)
#ifndef __riscv
REALS(long_doubles, long double)
COMPLEXES(long_double_complexes, long double _Complex)
#else

#include "x87.h"

/* True if a swap, minimum or maximum of x87 numbers stores the data in the target. */
static bool takes(ptl_op_t op, const struct x87 *t, const struct x87 *d, const struct x87 *o,
                  uint32_t parts)
{
    static const uint8_t for_which[PTL_OP_LAST] = {
        [PTL_MIN] = X87_LESS,         [PTL_MAX] = X87_GREATER,
        [PTL_CSWAP_LT] = X87_LESS,    [PTL_CSWAP_LE] = X87_LESS | X87_EQUAL,
        [PTL_CSWAP_GT] = X87_GREATER, [PTL_CSWAP_GE] = X87_GREATER | X87_EQUAL};
    bool equal = true;
    switch (op) {
    case PTL_SWAP:
        return true;
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
        for (uint32_t i = 0; i < parts; i++) {
            equal &= x87_compare(&o[i], &t[i]) == X87_EQUAL;
        }
        return equal == (op == PTL_CSWAP);
    default:
        return (x87_compare(op > PTL_SWAP ? o : d, t) & for_which[op]) != 0;
    }
}

static void x87_numbers(ptl_op_t op, struct x87 *target, const struct x87 *data,
                        const struct x87 *operand, uint64_t count, uint32_t parts)
{
    for (uint64_t i = 0; i < count; i++, target += parts, data += parts) {
        if (op == PTL_PROD && parts == 2) {
            x87_complex_multiply(target, data);
            continue;
        }
        bool take = op != PTL_SUM && op != PTL_PROD && takes(op, target, data, operand, parts);
        for (uint32_t k = 0; k < parts; k++) {
            if (op == PTL_SUM) {
                x87_add(&target[k], &target[k], &data[k]);
            } else if (op == PTL_PROD) {
                x87_multiply(&target[k], &target[k], &data[k]);
            } else if (take) {
                x87_set(&target[k], data[k].mantissa, data[k].top);
            }
        }
    }
}

static void long_doubles(ptl_op_t op, void *target, const void *data, const void *operand,
                         uint64_t count)
{
    x87_numbers(op, target, data, operand, count, 1);
}

static void long_double_complexes(ptl_op_t op, void *target, const void *data, const void *operand,
                                  uint64_t count)
{
    x87_numbers(op, target, data, operand, count, 2);
}
#endif

void combine(ptl_op_t op, ptl_datatype_t type, void *target, const void *data, const void *operand,
             uint64_t count)
{
    switch (type) {
    case PTL_INT8_T:
        int8s(op, target, data, operand, count);
        break;
    case PTL_UINT8_T:
        uint8s(op, target, data, operand, count);
        break;
    case PTL_INT16_T:
        int16s(op, target, data, operand, count);
        break;
    case PTL_UINT16_T:
        uint16s(op, target, data, operand, count);
        break;
    case PTL_INT32_T:
        int32s(op, target, data, operand, count);
        break;
    case PTL_UINT32_T:
        uint32s(op, target, data, operand, count);
        break;
    case PTL_INT64_T:
        int64s(op, target, data, operand, count);
        break;
    case PTL_UINT64_T:
        uint64s(op, target, data, operand, count);
        break;
    case PTL_FLOAT:
        floats(op, target, data, operand, count);
        break;
    case PTL_DOUBLE:
        doubles(op, target, data, operand, count);
        break;
    case PTL_LONG_DOUBLE:
        long_doubles(op, target, data, operand, count);
        break;
    case PTL_FLOAT_COMPLEX:
        float_complexes(op, target, data, operand, count);
        break;
    case PTL_DOUBLE_COMPLEX:
        double_complexes(op, target, data, operand, count);
        break;
    case PTL_LONG_DOUBLE_COMPLEX:
        long_double_complexes(op, target, data, operand, count);
        break;
    default:
        break;
    }
}
