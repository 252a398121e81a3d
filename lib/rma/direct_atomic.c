/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on mapped memory: elements of up to 8 bytes at natural alignment, by the
 * processor's atomic instructions. The interface of the owner does the same elements in the same
 * way (docs/architecture.md, decision 11), so both are atomic towards each other. Whatever is
 * longer or not aligned the interface guards by locks of its own, and only it may do these.
 */
#include "inside.h"

#include <complex.h>
#include <string.h>

enum kind { SIGNED, UNSIGNED, F32, F64, C32, NONE };

static const uint8_t kinds[] = {
    [PW_RMA_INT8] = SIGNED,     [PW_RMA_UINT8] = UNSIGNED,    [PW_RMA_INT16] = SIGNED,
    [PW_RMA_UINT16] = UNSIGNED, [PW_RMA_INT32] = SIGNED,      [PW_RMA_UINT32] = UNSIGNED,
    [PW_RMA_FLOAT] = F32,       [PW_RMA_INT64] = SIGNED,      [PW_RMA_UINT64] = UNSIGNED,
    [PW_RMA_DOUBLE] = F64,      [PW_RMA_FLOAT_COMPLEX] = C32,
};

static enum kind kind_of(enum pw_rma_type type)
{
    return (unsigned)type < sizeof(kinds) ? (enum kind)kinds[type] : NONE;
}

bool direct_atomic_can(enum pw_rma_op op, enum pw_rma_type type)
{
    return kind_of(type) != NONE &&
           (op == PW_RMA_COMPARE_SWAP || (op != PW_RMA_MINLOC && op != PW_RMA_MAXLOC));
}

/* ---- What an operation makes of two elements, which are widened with zeros ---- */

static uint64_t of_integers(enum pw_rma_op op, bool is_signed, size_t size, uint64_t a, uint64_t b)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    uint64_t flip = is_signed ? UINT64_C(1) << 63 : 0;
    bool less = ((b << shift) ^ flip) < ((a << shift) ^ flip);
    switch (op) {
    case PW_RMA_MIN:
        return less ? b : a;
    case PW_RMA_MAX:
        return less ? a : b;
    case PW_RMA_SUM:
        return a + b;
    case PW_RMA_PROD:
        return a * b;
    case PW_RMA_LOR:
        return a != 0 || b != 0;
    case PW_RMA_LAND:
        return a != 0 && b != 0;
    case PW_RMA_LXOR:
        return (a != 0) != (b != 0);
    case PW_RMA_BOR:
        return a | b;
    case PW_RMA_BAND:
        return a & b;
    default:
        return a ^ b;
    }
}

#define OF_REALS(name, type, ordered)                                                              \
    static uint64_t name(enum pw_rma_op op, uint64_t a, uint64_t b)                                \
    {                                                                                              \
        type x, y;                                                                                 \
        memcpy(&x, &a, sizeof(x));                                                                 \
        memcpy(&y, &b, sizeof(y));                                                                 \
        x = op == PW_RMA_SUM ? x + y : op == PW_RMA_PROD ? x * y : (ordered);                      \
        a = 0;                                                                                     \
        memcpy(&a, &x, sizeof(x));                                                                 \
        return a;                                                                                  \
    }
#define BETTER (op == PW_RMA_MIN ? (y < x ? y : x) : (y > x ? y : x))
OF_REALS(of_floats, float, BETTER)
OF_REALS(of_doubles, double, BETTER)
OF_REALS(of_complex, float complex, x)

static uint64_t result_of(enum pw_rma_op op, enum kind kind, size_t size, uint64_t a, uint64_t b)
{
    switch (kind) {
    case F32:
        return of_floats(op, a, b);
    case F64:
        return of_doubles(op, a, b);
    case C32:
        return of_complex(op, a, b);
    default:
        return of_integers(op, kind == SIGNED, size, a, b);
    }
}

/* ---- One element ---- */

#define ONE(bits)                                                                                  \
    static uint64_t one_##bits(void *at, uint64_t data, enum pw_rma_op op, enum kind kind)         \
    {                                                                                              \
        uint##bits##_t *p = at, d = (uint##bits##_t)data;                                          \
        bool integer = kind == SIGNED || kind == UNSIGNED;                                         \
        if (op == PW_RMA_REPLACE) {                                                                \
            return __atomic_exchange_n(p, d, __ATOMIC_SEQ_CST);                                    \
        } else if (op == PW_RMA_NO_OP) {                                                           \
            return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                           \
        } else if (op == PW_RMA_SUM && integer) {                                                  \
            return __atomic_fetch_add(p, d, __ATOMIC_SEQ_CST);                                     \
        }                                                                                          \
        uint##bits##_t found = __atomic_load_n(p, __ATOMIC_RELAXED), next;                         \
        do {                                                                                       \
            next = (uint##bits##_t)result_of(op, kind, bits / 8, found, d);                        \
        } while (!__atomic_compare_exchange_n(p, &found, next, true, __ATOMIC_SEQ_CST,             \
                                              __ATOMIC_RELAXED));                                  \
        return found;                                                                              \
    }                                                                                              \
    static uint64_t swap_##bits(void *at, uint64_t data, uint64_t compare)                         \
    {                                                                                              \
        uint##bits##_t found = (uint##bits##_t)compare;                                            \
        __atomic_compare_exchange_n((uint##bits##_t *)at, &found, (uint##bits##_t)data, false,     \
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
        return found;                                                                              \
    }
ONE(8)
ONE(16)
ONE(32)
ONE(64)

static uint64_t one(void *at, uint64_t data, enum pw_rma_op op, enum kind kind, size_t size)
{
    return size == 8   ? one_64(at, data, op, kind)
           : size == 4 ? one_32(at, data, op, kind)
           : size == 2 ? one_16(at, data, op, kind)
                       : one_8(at, data, op, kind);
}

static uint64_t swap(void *at, uint64_t data, uint64_t compare, size_t size)
{
    return size == 8   ? swap_64(at, data, compare)
           : size == 4 ? swap_32(at, data, compare)
           : size == 2 ? swap_16(at, data, compare)
                       : swap_8(at, data, compare);
}

/* Words of 1, 2, 4 or 8 bytes from and to any address. */
static inline uint64_t word_at(const char *at, size_t size)
{
    uint64_t word = 0;
    switch (size) {
    case 1:
        memcpy(&word, at, 1);
        break;
    case 2:
        memcpy(&word, at, 2);
        break;
    case 4:
        memcpy(&word, at, 4);
        break;
    default:
        memcpy(&word, at, 8);
    }
    return word;
}

static inline void word_to(char *at, uint64_t word, size_t size)
{
    switch (size) {
    case 1:
        memcpy(at, &word, 1);
        break;
    case 2:
        memcpy(at, &word, 2);
        break;
    case 4:
        memcpy(at, &word, 4);
        break;
    default:
        memcpy(at, &word, 8);
    }
}

/* ---- All elements ---- */

/* The floating-point settings with which a process starts, as the interface computes; the program's
 * own ones, its traps and flags are put back. */
static unsigned settings_enter(void)
{
#if defined(__x86_64__)
    unsigned saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80);
    return saved;
#else
    return 0;
#endif
}

static void settings_leave(unsigned saved)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(saved);
#else
    (void)saved;
#endif
}

static void elements(const struct atomic *a, char *at, size_t length, size_t size, enum kind kind)
{
    const char *from = a->from;
    char *result = a->result;
    for (size_t i = 0; i < length; i += size) {
        uint64_t data = a->op != PW_RMA_NO_OP ? word_at(from + i, size) : 0;
        uint64_t found = one(at + i, data, a->op, kind, size);
        if (result != NULL) {
            word_to(result + i, found, size);
        }
    }
}

/* Whether all that went to this region by messages is over (H5). */
static bool in_order(const struct pw_rma_key *key)
{
    struct away *away = &key->peer->away[key->is.rail];
    uint64_t begun = atomic_load(&away->begun);
    if (atomic_load(&away->over) == begun) {
        return true;
    }
    if (!counter_is_over(key->counter) || atomic_load(&key->peer->calls[key->is.rail]) != 0) {
        return false;
    }
    atomic_store(&away->over, begun); /* an older number makes somebody look again */
    return true;
}

bool direct_atomic(struct atomic *a, struct pw_rma_key *key, size_t length, const void *compare)
{
    enum pw_rma_op op = compare != NULL ? PW_RMA_COMPARE_SWAP : a->op;
    size_t size = pw_rma_type_size(a->type);
    struct pw_firehose_request held;
    if (!direct_atomic_can(op, a->type) || (a->offset & (size - 1)) != 0 || !in_order(key)) {
        return false;
    }
    char *at = direct_begin(key, a->offset, length, &held);
    if (at == NULL) {
        return false;
    }
    enum kind kind = kind_of(a->type);
    if (compare != NULL) {
        uint64_t found = swap(at, word_at(a->from, size), word_at(compare, size), size);
        if (a->result != NULL) {
            word_to(a->result, found, size);
        }
    } else if (kind == SIGNED || kind == UNSIGNED) {
        elements(a, at, length, size, kind);
    } else {
        unsigned saved = settings_enter();
        elements(a, at, length, size, kind);
        settings_leave(saved);
    }
    direct_end(key, &held);
    KILL_POINT("rma-changed");
    direct_done(key->peer, false, true); /* a locked instruction is a full fence (x86-64) */
    return true;
}
