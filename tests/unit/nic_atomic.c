/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of atomics: every operation on every type against a model; what is
 * legal and what is not. Bad addresses and threads are in nic_atomic_target.c.
 */
#include "nic/atomic.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LARGEST ((size_t)32) /* element */

/* ---- The model: numbers wide enough for all types, arithmetic in the type's own ---- */

static bool is_integer(ptl_datatype_t type)
{
    return type <= PTL_UINT32_T || type == PTL_INT64_T || type == PTL_UINT64_T;
}

static bool is_complex(ptl_datatype_t type)
{
    return type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX ||
           type == PTL_LONG_DOUBLE_COMPLEX;
}

static size_t size_of(ptl_datatype_t type)
{
    static const size_t sizes[PTL_DATATYPE_LAST] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32};
    return sizes[type];
}

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

struct number {
    wide i;
    long double part[2]; /* real, imaginary */
};

union bytes {
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f[2];
    double d[2];
    long double ld[2];
    wide i;
    uint8_t all[LARGEST];
};

static struct number decode(ptl_datatype_t type, const void *element)
{
    union bytes b = {.all = {0}};
    memcpy(&b, element, size_of(type));
    switch (type) {
    case PTL_INT8_T:
        return (struct number){.i = b.i8};
    case PTL_UINT8_T:
        return (struct number){.i = b.u8};
    case PTL_INT16_T:
        return (struct number){.i = b.i16};
    case PTL_UINT16_T:
        return (struct number){.i = b.u16};
    case PTL_INT32_T:
        return (struct number){.i = b.i32};
    case PTL_UINT32_T:
        return (struct number){.i = b.u32};
    case PTL_INT64_T:
        return (struct number){.i = b.i64};
    case PTL_UINT64_T:
        return (struct number){.i = b.u64};
    case PTL_FLOAT:
    case PTL_FLOAT_COMPLEX:
        return (struct number){.part = {b.f[0], b.f[1]}};
    case PTL_DOUBLE:
    case PTL_DOUBLE_COMPLEX:
        return (struct number){.part = {b.d[0], b.d[1]}};
    default:
        return (struct number){.part = {b.ld[0], b.ld[1]}};
    }
}

static void encode(ptl_datatype_t type, struct number n, void *element)
{
    union bytes b = {.all = {0}};
    if (is_integer(type)) {
        b.i = n.i; /* the low bytes count */
    } else if (type == PTL_FLOAT || type == PTL_FLOAT_COMPLEX) {
        b.f[0] = (float)n.part[0], b.f[1] = (float)n.part[1];
    } else if (type == PTL_DOUBLE || type == PTL_DOUBLE_COMPLEX) {
        b.d[0] = (double)n.part[0], b.d[1] = (double)n.part[1];
    } else {
        b.ld[0] = n.part[0], b.ld[1] = n.part[1];
    }
    memcpy(element, &b, size_of(type));
}

/* Sum and product, rounded as the type of a part rounds. */
static long double sum(ptl_datatype_t type, long double a, long double b)
{
    switch (type) {
    case PTL_FLOAT:
    case PTL_FLOAT_COMPLEX:
        return (float)a + (float)b;
    case PTL_DOUBLE:
    case PTL_DOUBLE_COMPLEX:
        return (double)a + (double)b;
    default:
        return a + b;
    }
}

static long double product(ptl_datatype_t type, long double a, long double b)
{
    switch (type) {
    case PTL_FLOAT:
    case PTL_FLOAT_COMPLEX:
        return (float)a * (float)b;
    case PTL_DOUBLE:
    case PTL_DOUBLE_COMPLEX:
        return (double)a * (double)b;
    default:
        return a * b;
    }
}

static struct number arithmetic(ptl_op_t op, ptl_datatype_t type, struct number t, struct number d)
{
    const long double *a = t.part, *b = d.part;
    if (op == PTL_SUM) {
        return (struct number){.part = {sum(type, a[0], b[0]), sum(type, a[1], b[1])}};
    }
    if (!is_complex(type)) {
        return (struct number){.part = {product(type, a[0], b[0])}};
    }
    return (struct number){
        .part = {sum(type, product(type, a[0], b[0]), -product(type, a[1], b[1])),
                 sum(type, product(type, a[0], b[1]), product(type, a[1], b[0]))}};
}

static wide integer_arithmetic(ptl_op_t op, wide t, wide d, wide o)
{
    switch (op) {
    case PTL_SUM:
        return (wide)((unsigned_wide)t + (unsigned_wide)d);
    case PTL_PROD:
        return (wide)((unsigned_wide)t * (unsigned_wide)d);
    case PTL_LOR:
        return t || d ? 1 : 0;
    case PTL_LAND:
        return t && d ? 1 : 0;
    case PTL_LXOR:
        return !t == !d ? 0 : 1;
    case PTL_BOR:
        return t | d;
    case PTL_BAND:
        return t & d;
    case PTL_BXOR:
        return t ^ d;
    default:
        assert_int_equal(op, PTL_MSWAP);
        return t ^ ((t ^ d) & o);
    }
}

/* Operations that leave the target or replace it by the data, bit by bit. */
static bool chooses(ptl_op_t op)
{
    return op <= PTL_MAX || (op >= PTL_SWAP && op <= PTL_CSWAP_GT);
}

static bool data_is_chosen(ptl_op_t op, ptl_datatype_t type, struct number t, struct number d,
                           struct number o)
{
    bool i = is_integer(type);
    bool equal =
        i ? o.i == t.i : o.part[0] == t.part[0] && (!is_complex(type) || o.part[1] == t.part[1]);
    bool less = i ? o.i < t.i : o.part[0] < t.part[0];
    bool greater = i ? o.i > t.i : o.part[0] > t.part[0];
    switch (op) {
    case PTL_MIN:
        return i ? d.i < t.i : d.part[0] < t.part[0];
    case PTL_MAX:
        return i ? d.i > t.i : d.part[0] > t.part[0];
    case PTL_SWAP:
        return true;
    case PTL_CSWAP:
        return equal;
    case PTL_CSWAP_NE:
        return !equal;
    case PTL_CSWAP_LE:
        return less || equal;
    case PTL_CSWAP_LT:
        return less;
    case PTL_CSWAP_GE:
        return greater || equal;
    default:
        assert_int_equal(op, PTL_CSWAP_GT);
        return greater;
    }
}

static void model(ptl_op_t op, ptl_datatype_t type, const void *target, const void *data,
                  const void *operand, void *result)
{
    struct number t = decode(type, target), d = decode(type, data), o = decode(type, operand);
    if (chooses(op)) {
        memcpy(result, data_is_chosen(op, type, t, d, o) ? data : target, size_of(type));
    } else if (is_integer(type)) {
        encode(type, (struct number){.i = integer_arithmetic(op, t.i, d.i, o.i)}, result);
    } else {
        encode(type, arithmetic(op, type, t, d), result);
    }
}

/* Bit by bit, but for the payload of computed NaNs and what pads a long double. Of a
 * product of complex numbers with infinite or huge parts C says more than the model. */
static bool as_the_model(ptl_op_t op, ptl_datatype_t type, const void *expected, const void *got)
{
    if (memcmp(expected, got, size_of(type)) == 0) {
        return true;
    }
    if (chooses(op) || is_integer(type)) {
        return false;
    }
    struct number a = decode(type, expected), b = decode(type, got);
    bool all = true, unsure = false;
    for (int i = 0; i < 1 + is_complex(type); i++) {
        long double x = a.part[i], y = b.part[i];
        all = all && ((isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y)));
        unsure = unsure || !isfinite(x);
    }
    return all || (op == PTL_PROD && is_complex(type) && unsure);
}

/* ---- Every legal pair ---- */

#define VALUES 12

static void value(ptl_datatype_t type, size_t index, void *element)
{
    wide top = (wide)1 << ((8 * size_of(type) - 1) % 64);
    const wide integers[VALUES] = {0, 1, -1, 2, 7, -100, 85, top, top - 1, top + 1, -2, 3};
    bool f = type == PTL_FLOAT || type == PTL_FLOAT_COMPLEX;
    bool d = type == PTL_DOUBLE || type == PTL_DOUBLE_COMPLEX;
    long double most = f ? FLT_MAX : d ? DBL_MAX : LDBL_MAX;
    long double least = f ? FLT_TRUE_MIN : d ? DBL_TRUE_MIN : LDBL_TRUE_MIN;
    const long double reals[VALUES] = {0,    -0.0L, 1,        -1.5L,     3,   0.1L,
                                       most, least, INFINITY, -INFINITY, NAN, -1e10L};
    struct number n = {.i = 0};
    index %= VALUES;
    if (is_integer(type)) {
        n.i = integers[index];
    } else {
        n.part[0] = reals[index];
        n.part[1] = reals[index * 5 % VALUES];
    }
    encode(type, n, element);
    for (size_t i = 0; type >= PTL_LONG_DOUBLE && i < size_of(type); i++) {
        if (i % 16 >= 10) {
            ((uint8_t *)element)[i] = (uint8_t)(index + i); /* what pads it */
        }
    }
}

static bool is_defined(ptl_op_t op, ptl_datatype_t type)
{
    return atomic_is_legal(ATOMIC_PLAIN, op, type) || atomic_is_legal(ATOMIC_SWAP, op, type);
}

/* How a call of nic_atomic() lies in memory. */
struct shape {
    size_t count, target, data; /* elements, and offsets in bytes */
    enum { NO_BEFORE, BEFORE, BEFORE_IS_DATA } kind;
};

#define ELEMENTS ((size_t)40)
#define ROOM (ELEMENTS * LARGEST + 192)

static uint8_t filler[ROOM]; /* what is beside the elements */

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROOM; i++) {
        filler[i] = (uint8_t)(0xa5 + 31 * i);
    }
    return 0;
}

static void check(ptl_op_t op, ptl_datatype_t type, const struct shape *s, size_t t, size_t d,
                  size_t o)
{
    static _Alignas(64) uint8_t target[ROOM], data[ROOM], before[ROOM], was[ROOM], expected[ROOM];
    uint8_t operand[LARGEST + 1];
    size_t size = size_of(type), bytes = s->count * size, at = 64 + s->target;
    size_t all = at + bytes + 64;
    assert_true(all <= ROOM);
    memcpy(target, filler, all);
    memcpy(before, filler, all);
    memcpy(was, filler, all);
    memcpy(expected, filler, all);
    value(type, o, operand + 1);
    for (size_t i = 0; i < s->count; i++) {
        uint8_t *from = data + s->data + i * size;
        value(type, t + i, was + at + i * size);
        value(type, d + 3 * i, from);
        model(op, type, was + at + i * size, from, operand + 1, expected + at + i * size);
    }
    memcpy(target + at, was + at, bytes);
    uint8_t *out = s->kind == NO_BEFORE ? NULL : s->kind == BEFORE ? before + at : data + s->data;
    assert_int_equal(nic_atomic(target + at, data + s->data, op > PTL_SWAP ? operand + 1 : NULL,
                                out, bytes, op, type),
                     0);
    for (size_t i = 0; i < s->count; i++) {
        if (!as_the_model(op, type, expected + at + i * size, target + at + i * size)) {
            fail_msg("wrong result: op %d type %d values %zu %zu %zu, element %zu of %zu, target "
                     "at %zu",
                     op, type, t, d, o, i, s->count, s->target);
        }
    }
    assert_memory_equal(target, expected, at);
    assert_memory_equal(target + at + bytes, expected + at + bytes, 64);
    if (out != NULL) {
        assert_memory_equal(out, was + at, bytes);
    }
    if (s->kind == BEFORE) {
        assert_memory_equal(before, was, all);
    }
}

static void every_pair_of_values(void **state)
{
    (void)state;
    static const struct shape aligned = {1, 0, 1, BEFORE}, silent = {1, 0, 0, NO_BEFORE},
                              misaligned = {1, 1, 3, BEFORE};
    for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
        for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
            size_t operands = op > PTL_SWAP ? VALUES : 1;
            for (size_t i = 0; is_defined(op, type) && i < VALUES * VALUES * operands; i++) {
                size_t t = i % VALUES, d = i / VALUES % VALUES, o = i / VALUES / VALUES;
                check(op, type, &aligned, t, d, o);
                check(op, type, &silent, t, d, o);
                check(op, type, &misaligned, t, d, o);
            }
        }
    }
}

static void many_elements_anywhere(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 5, 17, ELEMENTS};
    static const size_t offsets[] = {0, 1, 2, 4, 8, 13, 16, 60};
    for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
        for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
            for (size_t i = 0; is_defined(op, type) && i < 7 * 8; i++) {
                struct shape s = {counts[i / 8], offsets[i % 8], i % 4, BEFORE};
                check(op, type, &s, i, i / 2, i / 3);
                s.kind = NO_BEFORE;
                check(op, type, &s, i + 1, i / 3, i / 2);
                s.kind = BEFORE_IS_DATA;
                check(op, type, &s, i, i, i);
            }
        }
    }
}

/* C, Annex G: no NaN where a factor is infinite and the other one is not 0. */
static void infinite_complex_products_are_infinite(void **state)
{
    (void)state;
    double _Complex z = __builtin_complex((double)INFINITY, (double)NAN);
    double _Complex factor = __builtin_complex(2.0, 1.0);
    assert_int_equal(nic_atomic(&z, &factor, NULL, NULL, sizeof(z), PTL_PROD, PTL_DOUBLE_COMPLEX),
                     0);
    assert_true(isinf(__real__ z) || isinf(__imag__ z));
}

/* ---- What is not legal ---- */

static bool should_be_legal(unsigned call, unsigned op, unsigned type)
{
    bool integer = type <= 5 || type == 7 || type == 8;
    bool complex = type == 10 || type == 11 || type == 13;
    if (op > 17 || type > 13 || (call == ATOMIC_SWAP) != (op >= 10)) {
        return false;
    }
    switch (op) {
    case PTL_SUM:
    case PTL_PROD:
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
        return true;
    case PTL_MIN:
    case PTL_MAX:
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT:
        return !complex;
    default:
        return integer;
    }
}

static void illegal_ones_are_refused(void **state)
{
    (void)state;
    unsigned legal[3] = {0, 0, 0};
    uint8_t word[LARGEST] = {1, 2, 3}, zero[LARGEST] = {0};
    for (unsigned i = 0; i < 3 * 256 * 256; i++) {
        unsigned call = i >> 16, op = i >> 8 & 255, type = i & 255;
        bool is = atomic_is_legal((enum atomic_call)call, (ptl_op_t)op, (ptl_datatype_t)type);
        assert_int_equal(is, should_be_legal(call, op, type));
        legal[call] += is;
        if (!is_defined((ptl_op_t)op, (ptl_datatype_t)type)) {
            assert_int_equal(
                nic_atomic(word, zero, zero, NULL, LARGEST, (ptl_op_t)op, (ptl_datatype_t)type),
                -EINVAL);
        }
    }
    assert_memory_equal(word, ((uint8_t[LARGEST]){1, 2, 3}), LARGEST);
    assert_int_equal(legal[ATOMIC_PLAIN], 2 * 11 + 2 * 14 + 6 * 8);
    assert_int_equal(legal[ATOMIC_FETCH], legal[ATOMIC_PLAIN]);
    assert_int_equal(legal[ATOMIC_SWAP], 3 * 14 + 4 * 11 + 8);
}

static void calls_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    uint64_t word = 5, one = 1;
    assert_int_equal(nic_atomic(&word, &one, NULL, NULL, 7, PTL_SUM, PTL_INT64_T), -EINVAL);
    assert_int_equal(nic_atomic(&word, &one, NULL, NULL, 8, PTL_CSWAP, PTL_INT64_T), -EINVAL);
    assert_int_equal(nic_atomic(&word, &one, NULL, NULL, 8, PTL_MSWAP, PTL_INT64_T), -EINVAL);
    assert_int_equal(word, 5);
    for (unsigned type = 0; type < 256; type++) {
        assert_int_equal(atomic_size((ptl_datatype_t)type),
                         type < PTL_DATATYPE_LAST ? size_of((ptl_datatype_t)type) : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_values),
        cmocka_unit_test(many_elements_anywhere),
        cmocka_unit_test(infinite_complex_products_are_infinite),
        cmocka_unit_test(illegal_ones_are_refused),
        cmocka_unit_test(calls_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
