/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics done one by one; see atomics.h. */
#include "atomics.h"

#include "portals4.h"

#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t type_size(unsigned type)
{
    static const uint8_t sizes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32};
    return sizes[type];
}

static bool is_complex(unsigned type)
{
    return type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX ||
           type == PTL_LONG_DOUBLE_COMPLEX;
}

static bool is_real(unsigned type)
{
    return type == PTL_FLOAT || type == PTL_DOUBLE || type == PTL_LONG_DOUBLE;
}

bool op_has_operand(unsigned op)
{
    return op >= PTL_CSWAP;
}

bool op_is_legal(unsigned act, unsigned op, unsigned type)
{
    if ((act == ACT_SWAP) != (op >= PTL_SWAP)) {
        return false;
    }
    if (is_complex(type)) {
        return op == PTL_SUM || op == PTL_PROD || op == PTL_SWAP || op == PTL_CSWAP ||
               op == PTL_CSWAP_NE;
    }
    return !is_real(type) || op <= PTL_PROD || (op >= PTL_SWAP && op != PTL_MSWAP);
}

/* What all types have, what ordered ones have, what integers have. */
#define COMMON(T)                                                                                  \
    case PTL_SWAP:                                                                                 \
        t = p;                                                                                     \
        break;                                                                                     \
    case PTL_CSWAP:                                                                                \
        t = c == t ? p : t;                                                                        \
        break;                                                                                     \
    case PTL_CSWAP_NE:                                                                             \
        t = c != t ? p : t;                                                                        \
        break;
#define ORDERED(T)                                                                                 \
    case PTL_MIN:                                                                                  \
        t = p < t ? p : t;                                                                         \
        break;                                                                                     \
    case PTL_MAX:                                                                                  \
        t = p > t ? p : t;                                                                         \
        break;                                                                                     \
    case PTL_CSWAP_LE:                                                                             \
        t = c <= t ? p : t;                                                                        \
        break;                                                                                     \
    case PTL_CSWAP_LT:                                                                             \
        t = c < t ? p : t;                                                                         \
        break;                                                                                     \
    case PTL_CSWAP_GE:                                                                             \
        t = c >= t ? p : t;                                                                        \
        break;                                                                                     \
    case PTL_CSWAP_GT:                                                                             \
        t = c > t ? p : t;                                                                         \
        break;
#define FLOATING(T)                                                                                \
    case PTL_SUM:                                                                                  \
        t = t + p;                                                                                 \
        break;                                                                                     \
    case PTL_PROD:                                                                                 \
        t = t * p;                                                                                 \
        break;
#define INTEGER(T)                                                                                 \
    case PTL_SUM:                                                                                  \
        t = (T)((uint64_t)t + (uint64_t)p);                                                        \
        break;                                                                                     \
    case PTL_PROD:                                                                                 \
        t = (T)((uint64_t)t * (uint64_t)p);                                                        \
        break;                                                                                     \
    case PTL_LOR:                                                                                  \
        t = t != 0 || p != 0;                                                                      \
        break;                                                                                     \
    case PTL_LAND:                                                                                 \
        t = t != 0 && p != 0;                                                                      \
        break;                                                                                     \
    case PTL_LXOR:                                                                                 \
        t = (t != 0) != (p != 0);                                                                  \
        break;                                                                                     \
    case PTL_BOR:                                                                                  \
        t = (T)(t | p);                                                                            \
        break;                                                                                     \
    case PTL_BAND:                                                                                 \
        t = (T)(t & p);                                                                            \
        break;                                                                                     \
    case PTL_BXOR:                                                                                 \
        t = (T)(t ^ p);                                                                            \
        break;                                                                                     \
    case PTL_MSWAP:                                                                                \
        t = (T)((c & p) | (~c & t));                                                               \
        break;
#define MODEL(NAME, T, ...)                                                                        \
    static void NAME(void *target, const void *put, const void *operand, unsigned op)              \
    {                                                                                              \
        T t, p, c;                                                                                 \
        memcpy(&t, target, sizeof(t));                                                             \
        memcpy(&p, put, sizeof(p));                                                                \
        memcpy(&c, operand, sizeof(c));                                                            \
        switch (op) {                                                                              \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            abort();                                                                               \
        }                                                                                          \
        memcpy(target, &t, sizeof(t));                                                             \
    }
#define MODEL_INTEGER(NAME, T) MODEL(NAME, T, COMMON(T) ORDERED(T) INTEGER(T))
#define MODEL_REAL(NAME, T) MODEL(NAME, T, COMMON(T) ORDERED(T) FLOATING(T))
#define MODEL_COMPLEX(NAME, T) MODEL(NAME, T, COMMON(T) FLOATING(T))

MODEL_INTEGER(apply_int8, int8_t)
MODEL_INTEGER(apply_uint8, uint8_t)
MODEL_INTEGER(apply_int16, int16_t)
MODEL_INTEGER(apply_uint16, uint16_t)
MODEL_INTEGER(apply_int32, int32_t)
MODEL_INTEGER(apply_uint32, uint32_t)
MODEL_INTEGER(apply_int64, int64_t)
MODEL_INTEGER(apply_uint64, uint64_t)
MODEL_REAL(apply_float, float)
MODEL_REAL(apply_double, double)
MODEL_REAL(apply_long_double, long double)
MODEL_COMPLEX(apply_float_complex, float _Complex)
MODEL_COMPLEX(apply_double_complex, double _Complex)
MODEL_COMPLEX(apply_long_double_complex, long double _Complex)

void model_apply(void *target, const void *put, const void *operand, unsigned op, unsigned type)
{
    static void (*const apply[TYPES])(void *, const void *, const void *,
                                      unsigned) = {apply_int8,          apply_uint8,
                                                   apply_int16,         apply_uint16,
                                                   apply_int32,         apply_uint32,
                                                   apply_float,         apply_int64,
                                                   apply_uint64,        apply_double,
                                                   apply_float_complex, apply_double_complex,
                                                   apply_long_double,   apply_long_double_complex};
    static const uint8_t none[ELEMENT_MAX];
    apply[type](target, put, operand != NULL ? operand : none, op);
}

bool model_equal(const void *a, const void *b, unsigned type)
{
    if (type == PTL_LONG_DOUBLE || type == PTL_LONG_DOUBLE_COMPLEX) { /* padding has no value */
        enum { USED = 10, STRIDE = 16 };
        const unsigned char *x = a, *y = b;
        return memcmp(x, y, USED) == 0 &&
               (type == PTL_LONG_DOUBLE || memcmp(x + STRIDE, y + STRIDE, USED) == 0);
    }
    return memcmp(a, b, type_size(type)) == 0;
}

void model_value(void *to, unsigned type, int number, bool careful)
{
    int n = careful ? (number & 1) * 2 - 1 : number;
    memset(to, 0, type_size(type));
    union {
        int64_t i;
        float f;
        double d;
        long double l;
        float _Complex fc;
        double _Complex dc;
        long double _Complex lc;
    } v;
    memset(&v, 0, sizeof(v));
    switch (type) {
    case PTL_FLOAT:
        v.f = (float)n;
        break;
    case PTL_DOUBLE:
        v.d = n;
        break;
    case PTL_LONG_DOUBLE:
        v.l = n;
        memcpy(to, &v, 10);
        return;
    case PTL_FLOAT_COMPLEX:
        v.fc = (float)n;
        break;
    case PTL_DOUBLE_COMPLEX:
        v.dc = n;
        break;
    case PTL_LONG_DOUBLE_COMPLEX:
        v.lc = n;
        break;
    default:
        v.i = number;
    }
    memcpy(to, &v, type_size(type));
}
