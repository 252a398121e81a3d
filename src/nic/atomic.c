/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see atomic.h.
 *
 *   nic_atomic() ─► words()    each: word()  ─► nic_word()            one instruction
 *                │                          └► apply(), nic_word()   compare-and-swap
 *                │             (small elements that fill an aligned word: all of it at once)
 *                └► strips()   each: nic_copy(), apply() to all, nic_copy()
 *
 * - apply() knows operations and types, and works on memory of the NIC; the other functions
 *   know how to access the target. An address that a program or a peer named is a uintptr_t: it
 *   may wrap, and only nic_word() and nic_copy() dereference it.
 * - An operation that leaves the value as it is writes it all the same: otherwise read-only
 *   memory would be refused for some values and accepted for others.
 */
#include "nic/atomic.h"

#include "base/mutex.h"
#include "base/nic_copy.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { INTEGER = ATOMIC_INTEGER, REAL = ATOMIC_REAL, COMPLEX = ATOMIC_COMPLEX };
enum { ORDERED = INTEGER | REAL, ANY = ORDERED | COMPLEX };

const struct atomic_kind atomic_kinds[PTL_DATATYPE_LAST] = {
    [PTL_INT8_T] = {1, INTEGER, true},
    [PTL_UINT8_T] = {1, INTEGER, false},
    [PTL_INT16_T] = {2, INTEGER, true},
    [PTL_UINT16_T] = {2, INTEGER, false},
    [PTL_INT32_T] = {4, INTEGER, true},
    [PTL_UINT32_T] = {4, INTEGER, false},
    [PTL_FLOAT] = {sizeof(float), REAL, true},
    [PTL_INT64_T] = {8, INTEGER, true},
    [PTL_UINT64_T] = {8, INTEGER, false},
    [PTL_DOUBLE] = {sizeof(double), REAL, true},
    [PTL_FLOAT_COMPLEX] = {sizeof(float _Complex), COMPLEX, true},
    [PTL_DOUBLE_COMPLEX] = {sizeof(double _Complex), COMPLEX, true},
    [PTL_LONG_DOUBLE] = {sizeof(long double), REAL, true},
    [PTL_LONG_DOUBLE_COMPLEX] = {sizeof(long double _Complex), COMPLEX, true},
};

/* Outcomes of a comparison of two numbers, as bits. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

const struct atomic_operation atomic_operations[PTL_OP_LAST] = {
    [PTL_MIN] = {ORDERED, LESS, NULL}, /* the data is compared with the target */
    [PTL_MAX] = {ORDERED, GREATER, NULL},
    [PTL_SUM] = {ANY, 0, nic_add_raw},
    [PTL_PROD] = {ANY, 0, NULL},
    [PTL_LOR] = {INTEGER, 0, NULL},
    [PTL_LAND] = {INTEGER, 0, NULL},
    [PTL_BOR] = {INTEGER, 0, nic_or_raw},
    [PTL_BAND] = {INTEGER, 0, nic_and_raw},
    [PTL_LXOR] = {INTEGER, 0, NULL},
    [PTL_BXOR] = {INTEGER, 0, nic_xor_raw},
    [PTL_SWAP] = {ANY, LESS | EQUAL | GREATER | UNORDERED, NULL},
    [PTL_CSWAP] = {ANY, EQUAL, NULL}, /* the operand is compared with the target */
    [PTL_CSWAP_NE] = {ANY, LESS | GREATER | UNORDERED, NULL},
    [PTL_CSWAP_LE] = {ORDERED, LESS | EQUAL, NULL},
    [PTL_CSWAP_LT] = {ORDERED, LESS, NULL},
    [PTL_CSWAP_GE] = {ORDERED, GREATER | EQUAL, NULL},
    [PTL_CSWAP_GT] = {ORDERED, GREATER, NULL},
    [PTL_MSWAP] = {INTEGER, 0, NULL},
};

/* ---- One element, in memory of the NIC ---- */

union element {
    /* the whole element if it has up to 8 bytes; a shorter one is widened with zeros */
    uint64_t word;
    float f;
    double d;
    float _Complex fc;
    double _Complex dc;
    long double ld;
    long double _Complex ldc;
};

#define ELEMENT_MAX ((size_t)32)
_Static_assert(sizeof(union element) == ELEMENT_MAX, "a buffer of an element holds each of them");

/* A switch over the sizes, since the compiler turns each memcpy() of a constant size into one
 * move. */
static inline void word_copy(void *to, const void *from, size_t size)
{
    switch (size) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, 8);
        break;
    }
}

static inline void element_copy(void *to, const void *from, size_t size)
{
    if (size <= sizeof(uint64_t)) {
        word_copy(to, from, size);
    } else {
        memcpy(to, from, size);
    }
}

/* Copies by way of a register: a load of the word right after stores of its parts would stall. */
static inline void element_load(union element *e, const void *from, size_t size)
{
    if (size <= sizeof(uint64_t)) {
        uint64_t word = 0;
        word_copy(&word, from, size);
        e->word = word;
    } else {
        memcpy(e, from, size);
    }
}

/* Maps a value to an unsigned integer, by a shift and a flip of the sign bit, such that these
 * compare as the values of the element's type do. */
static inline uint64_t rank(const struct atomic_kind *kind, uint64_t word)
{
    uint64_t top = word << (64 - 8 * kind->size);
    return kind->is_signed ? top ^ (UINT64_C(1) << 63) : top;
}

static inline unsigned order(uint64_t a, uint64_t b)
{
    return a < b ? LESS : a > b ? GREATER : EQUAL;
}

/* Computes an operation on integers. Bits of the result beyond the size of the element are garbage,
 * which the caller drops. */
static uint64_t integer_result(ptl_op_t op, const struct atomic_kind *kind, uint64_t target,
                               uint64_t data, uint64_t operand)
{
    switch (op) {
    case PTL_SUM:
        return target + data;
    case PTL_PROD:
        return target * data;
    case PTL_LOR:
        return target != 0 || data != 0;
    case PTL_LAND:
        return target != 0 && data != 0;
    case PTL_LXOR:
        return (target != 0) != (data != 0);
    case PTL_BOR:
        return target | data;
    case PTL_BAND:
        return target & data;
    case PTL_BXOR:
        return target ^ data;
    case PTL_MSWAP:
        return (operand & data) | (~operand & target);
    default: {
        uint64_t against = op <= PTL_MAX ? data : operand;
        unsigned found = order(rank(kind, against), rank(kind, target));
        return (atomic_operations[op].takes & found) != 0 ? data : target;
    }
    }
}

#define ORDER_REAL(a, b) ((a) < (b) ? LESS : (a) > (b) ? GREATER : (a) == (b) ? EQUAL : UNORDERED)
#define ORDER_COMPLEX(a, b) ((a) == (b) ? EQUAL : UNORDERED)

/* A macro, since C has no other way to write one function for several types. It copies by memcpy(),
 * which takes along the padding of a long double, as an assignment need not. */
#define APPLY(name, member, ORDER)                                                                 \
    static void name(ptl_op_t op, union element *target, const union element *data,                \
                     const union element *operand)                                                 \
    {                                                                                              \
        const union element *against = op <= PTL_MAX ? data : operand;                             \
        if (op == PTL_SUM) {                                                                       \
            target->member += data->member;                                                        \
        } else if (op == PTL_PROD) {                                                               \
            target->member *= data->member;                                                        \
        } else if (op == PTL_SWAP ||                                                               \
                   (atomic_operations[op].takes & ORDER(against->member, target->member)) != 0) {  \
            memcpy(&target->member, &data->member, sizeof(target->member));                        \
        }                                                                                          \
    }

APPLY(apply_float, f, ORDER_REAL)
APPLY(apply_double, d, ORDER_REAL)
APPLY(apply_long_double, ld, ORDER_REAL)
APPLY(apply_float_complex, fc, ORDER_COMPLEX)
APPLY(apply_double_complex, dc, ORDER_COMPLEX)
APPLY(apply_long_double_complex, ldc, ORDER_COMPLEX)

static void apply(ptl_op_t op, ptl_datatype_t type, union element *target,
                  const union element *data, const union element *operand)
{
    static void (*const of_type[PTL_DATATYPE_LAST])(
        ptl_op_t, union element *, const union element *, const union element *) = {
        [PTL_FLOAT] = apply_float,
        [PTL_DOUBLE] = apply_double,
        [PTL_LONG_DOUBLE] = apply_long_double,
        [PTL_FLOAT_COMPLEX] = apply_float_complex,
        [PTL_DOUBLE_COMPLEX] = apply_double_complex,
        [PTL_LONG_DOUBLE_COMPLEX] = apply_long_double_complex,
    };
    if (of_type[type] != NULL) {
        of_type[type](op, target, data, operand);
    } else {
        target->word =
            integer_result(op, &atomic_kinds[type], target->word, data->word, operand->word);
    }
}

/* ---- The calling thread's floating-point settings ---- */

/* The program may have enabled traps: without this, data that a peer sent would raise SIGFPE in it.
 * And its rounding mode must not show in results, nor the NIC's exception flags in its own
 * computations. */

struct float_settings {
    uint32_t sse;
    struct {
        uint32_t words[7];
    } x87; /* saved for long double only: it takes longer than most operations */
};

static void float_settings_enter(struct float_settings *saved, bool x87)
{
    /* the SSE settings with which a process starts: SysV ABI, 3.4.1 */
    static const uint32_t initial = 0x1f80;
    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(saved->sse) : "m"(initial) : "memory");
    if (x87) {
        __asm__ volatile("fnstenv %0\n\tfninit" : "=m"(saved->x87) : : "memory");
    }
}

static void float_settings_leave(const struct float_settings *saved, bool x87)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(saved->sse) : "memory");
    if (x87) {
        __asm__ volatile("fldenv %0" : : "m"(saved->x87) : "memory");
    }
}

/* ---- The elements at the target ---- */

/* The arguments of nic_atomic(). */
struct job {
    uintptr_t target;
    const char *data;
    char *before; /* or NULL */
    size_t length;
    union element operand;
    ptl_op_t op;
    ptl_datatype_t type;
    uint8_t size;
    bool integer;
};

/* Adds the integers that are packed in a word: no carry goes beyond the top bit of each. */
static uint64_t packed_sum(uint64_t target, uint64_t data, size_t size)
{
    uint64_t tops = UINT64_MAX / ((UINT64_C(1) << 8 * size) - 1) << (8 * size - 1);
    return ((target & ~tops) + (data & ~tops)) ^ ((target ^ data) & tops);
}

static uint64_t packed_result(const struct job *job, uint64_t target, uint64_t data)
{
    if (job->integer && job->op == PTL_SUM) {
        return packed_sum(target, data, job->size);
    }
    unsigned bits = 8u * job->size;
    uint64_t mask = (UINT64_C(1) << bits) - 1, result = 0;
    for (unsigned at = 0; at < 64; at += bits) {
        union element next = {.word = target >> at & mask}, one = {.word = data >> at & mask};
        apply(job->op, job->type, &next, &one, &job->operand);
        result |= (next.word & mask) << at;
    }
    return result;
}

static int word_by_loop(const struct job *job, void *at, const union element *data, uint64_t *found,
                        size_t size)
{
    *found = 0;
    /* A first guess of the value. It may race with other threads, so it is read in a way that TSan
     * does not see; the compare-and-swap tells whether it was right. */
    int rc = nic_copy_raw(found, at, size, SIZE_MAX, SIZE_MAX);
    while (rc == 0) {
        union element next = {.word = *found};
        uint64_t expected = *found;
        if (size > job->size) {
            next.word = packed_result(job, expected, data->word);
        } else {
            apply(job->op, job->type, &next, data, &job->operand);
        }
        rc = nic_word(nic_cas_raw, at, next.word, found, size);
        if (*found == expected) {
            break;
        }
    }
    return rc;
}

/* Does the operation on one word of `size` bytes: an element, or several that fill a word of 8
 * bytes. */
static inline int word(const struct job *job, void *at, const union element *data, uint64_t *found,
                       size_t size)
{
    if (job->op == PTL_SWAP) {
        return nic_word(nic_swap_raw, at, data->word, found, size);
    }
    if (job->integer && job->op == PTL_CSWAP) {
        *found = job->operand.word;
        return nic_word(nic_cas_raw, at, data->word, found, size);
    }
    nic_word_raw *raw = job->integer ? atomic_operations[job->op].instruction : NULL;
    bool one = job->op == PTL_SUM ? size == job->size : job->before == NULL;
    return raw != NULL && one ? nic_word(raw, at, data->word, found, size)
                              : word_by_loop(job, at, data, found, size);
}

static int words(const struct job *job)
{
    bool pack = job->op <= PTL_SWAP; /* an operation with an operand is one on a single element */
    for (size_t i = 0, size; i < job->length; i += size) {
        uintptr_t at = job->target + i;
        bool fills = pack && at % sizeof(uint64_t) == 0 && job->length - i >= sizeof(uint64_t);
        size = fills ? sizeof(uint64_t) : job->size;
        union element data, found;
        element_load(&data, job->data + i, size);
        int rc = word(job, (void *)at, &data, &found.word, size);
        if (rc != 0) {
            return rc;
        }
        if (job->before != NULL) {
            element_copy(job->before + i, &found, size);
        }
    }
    return 0;
}

/* A strip is the elements that begin in one cache line of the target; its last one may reach into
 * the next line. A lock, chosen by that line's address, guards it. */
#define LINE ((size_t)64)
#define STRIPES ((size_t)64)

static struct stripe {
    _Alignas(64) struct mutex lock;
} stripes[STRIPES];

/* Threads of the parent that do not exist in a forked child may hold the locks: the child resets
 * them. */
static void free_stripes(void)
{
    for (size_t i = 0; i < STRIPES; i++) {
        stripes[i].lock = (struct mutex){0};
    }
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, free_stripes);
}

static int strip(const struct job *job, size_t start, size_t length)
{
    void *target = (void *)(job->target + start);
    char found[LINE + ELEMENT_MAX], result[LINE + ELEMENT_MAX];
    struct stripe *stripe = &stripes[(job->target + start) / LINE % STRIPES];
    mutex_take(&stripe->lock);
    int rc = nic_copy(found, target, length);
    if (rc == 0) {
        for (size_t i = 0; i < length; i += job->size) {
            union element element, data;
            element_load(&element, found + i, job->size);
            element_load(&data, job->data + start + i, job->size);
            apply(job->op, job->type, &element, &data, &job->operand);
            element_copy(result + i, &element, job->size);
        }
        rc = nic_copy(target, result, length);
    }
    mutex_give(&stripe->lock);
    if (rc == 0 && job->before != NULL) {
        memcpy(job->before + start, found, length);
    }
    return rc;
}

static int strips(const struct job *job)
{
    for (size_t start = 0; start < job->length;) {
        size_t room = LINE - (job->target + start) % LINE;
        size_t length = (room + job->size - 1) / job->size * job->size;
        if (length > job->length - start) {
            length = job->length - start;
        }
        int rc = strip(job, start, length);
        if (rc != 0) {
            return rc;
        }
        start += length;
    }
    return 0;
}

int nic_atomic(void *target, const void *data, const void *operand, void *before, size_t length,
               ptl_op_t op, ptl_datatype_t type)
{
    if (!atomic_is_defined(op, type) || atomic_rest(length, type) != 0 ||
        (op > PTL_SWAP && operand == NULL)) {
        return -EINVAL;
    }
    /* The usual case: one aligned element, changed by one instruction. Of these instructions only
     * that of PTL_SUM returns the old value. */
    bool one = before == NULL || op == PTL_SUM;
    nic_word_raw *raw = one ? atomic_instruction(op, type, length) : NULL;
    if (raw != NULL && atomic_is_aligned(target, length)) {
        union element value, found;
        element_load(&value, data, length);
        int rc = nic_word(raw, target, value.word, &found.word, length);
        if (before != NULL && rc == 0) {
            element_copy(before, &found, length);
        }
        return rc;
    }
    size_t size = atomic_size(type);
    struct job job = {.target = (uintptr_t)target,
                      .data = data,
                      .before = before,
                      .length = length,
                      .op = op,
                      .type = type,
                      .size = (uint8_t)size,
                      .integer = atomic_kinds[type].class == INTEGER};
    if (op > PTL_SWAP) {
        element_load(&job.operand, operand, job.size);
    }
    bool by_word = size <= sizeof(uint64_t) && (job.target & (size - 1)) == 0;
    if (job.integer) {
        return by_word ? words(&job) : strips(&job);
    }
    struct float_settings saved;
    bool x87 = type == PTL_LONG_DOUBLE || type == PTL_LONG_DOUBLE_COMPLEX;
    float_settings_enter(&saved, x87);
    int rc = by_word ? words(&job) : strips(&job);
    float_settings_leave(&saved, x87);
    return rc;
}
