/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on a region: which message of Portals does each, and how it is cut. On mapped
 * memory there is no message (direct_atomic.c).
 *
 *      operation                          message
 *      MIN ... BXOR                       PtlAtomic, or PtlFetchAtomic if the old values are wanted
 *      REPLACE                            PtlSwap; old values that nobody wants go to `scratch`
 *      NO_OP (to read), 1 to 8 bytes      PtlFetchAtomic, which ors zeros
 *      NO_OP, 16 and 32 bytes             PtlSwap of one element, if it equals NaN, which none does
 *      compare_swap, 1 to 8 bytes         PtlSwap of one element, compared bit by bit
 *      on pairs                           PtlAtomic, PtlFetchAtomic to the entry with handlers
 *
 * Where the target has no handlers, its library does pairs (call.h). Handlers do what the header
 * data says in place of the message's operation (pairs.c).
 *
 * A type takes one way in all of its operations to the target's memory, by its interface, so that
 * they are atomic towards each other. A cut is whole elements.
 */
#include "inside.h"
#include "pairs.h"

#include <complex.h>
#include <math.h>

enum { INTEGER = 1, REAL = 2, COMPLEX = 4, PAIR = 8, ALL = INTEGER | REAL | COMPLEX };

static const struct {
    uint8_t size, class;
} types[] = {
    [PW_RMA_INT8] = {1, INTEGER},
    [PW_RMA_UINT8] = {1, INTEGER},
    [PW_RMA_INT16] = {2, INTEGER},
    [PW_RMA_UINT16] = {2, INTEGER},
    [PW_RMA_INT32] = {4, INTEGER},
    [PW_RMA_UINT32] = {4, INTEGER},
    [PW_RMA_FLOAT] = {sizeof(float), REAL},
    [PW_RMA_INT64] = {8, INTEGER},
    [PW_RMA_UINT64] = {8, INTEGER},
    [PW_RMA_DOUBLE] = {sizeof(double), REAL},
    [PW_RMA_FLOAT_COMPLEX] = {sizeof(float complex), COMPLEX},
    [PW_RMA_DOUBLE_COMPLEX] = {sizeof(double complex), COMPLEX},
    [PW_RMA_LONG_DOUBLE] = {sizeof(long double), REAL},
    [PW_RMA_LONG_DOUBLE_COMPLEX] = {sizeof(long double complex), COMPLEX},
    [PW_RMA_FLOAT_INT] = {8, PAIR},
    [PW_RMA_DOUBLE_INT] = {16, PAIR},
    [PW_RMA_LONG_INT] = {16, PAIR},
    [PW_RMA_INT_INT] = {8, PAIR},
    [PW_RMA_SHORT_INT] = {8, PAIR},
    [PW_RMA_LONG_DOUBLE_INT] = {32, PAIR},
    [PW_RMA_FLOAT_FLOAT] = {8, PAIR},
    [PW_RMA_DOUBLE_DOUBLE] = {16, PAIR},
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* The classes for which each operation is there. */
static const uint8_t operations[] = {
    [PW_RMA_MIN] = INTEGER | REAL, [PW_RMA_MAX] = INTEGER | REAL, [PW_RMA_SUM] = ALL,
    [PW_RMA_PROD] = ALL,           [PW_RMA_LOR] = INTEGER,        [PW_RMA_LAND] = INTEGER,
    [PW_RMA_BOR] = INTEGER,        [PW_RMA_BAND] = INTEGER,       [PW_RMA_LXOR] = INTEGER,
    [PW_RMA_BXOR] = INTEGER,       [PW_RMA_REPLACE] = ALL | PAIR, [PW_RMA_NO_OP] = ALL | PAIR,
    [PW_RMA_MINLOC] = PAIR,        [PW_RMA_MAXLOC] = PAIR,
};

static const unsigned char zeros[ATOMIC_MOST];

size_t pw_rma_type_size(enum pw_rma_type type)
{
    return (unsigned)type < TYPES ? types[type].size : 0;
}

/* The unsigned integer of so many bytes. */
static ptl_datatype_t bits_of(size_t size)
{
    return size == 1   ? PTL_UINT8_T
           : size == 2 ? PTL_UINT16_T
           : size == 4 ? PTL_UINT32_T
                       : PTL_UINT64_T;
}

/* How messages do an operation. */
static enum pw_rma_path path_of(const struct pw_rma_key *key, enum pw_rma_op op,
                                enum pw_rma_type type)
{
    size_t size = pw_rma_type_size(type);
    if (size == 0) {
        return PW_RMA_NONE;
    }
    if (op == PW_RMA_PUT || op == PW_RMA_GET) {
        return PW_RMA_NATIVE;
    }
    if (op == PW_RMA_COMPARE_SWAP) {
        return size <= 8 && types[type].class != PAIR ? PW_RMA_NATIVE : PW_RMA_NONE;
    }
    if ((unsigned)op >= sizeof(operations) || (operations[op] & types[type].class) == 0) {
        return PW_RMA_NONE;
    }
    if (types[type].class != PAIR) {
        return PW_RMA_NATIVE;
    }
    return (key->is.access & TWO_SIDED) != 0      ? PW_RMA_TWO_SIDED
           : (key->is.access & PW_RMA_PAIRS) != 0 ? PW_RMA_HANDLER
                                                  : PW_RMA_NONE;
}

enum pw_rma_path pw_rma_path(const struct pw_rma_key *key, enum pw_rma_op op, enum pw_rma_type type)
{
    enum pw_rma_path path = path_of(key, op, type);
    bool can = op == PW_RMA_PUT || op == PW_RMA_GET || direct_atomic_can(op, type);
    /* to ask may be the first that is done with a key */
    return path != PW_RMA_NONE && can && direct_way((struct pw_rma_key *)key) != MAP_NONE
               ? PW_RMA_DIRECT
               : path;
}

/* ---- One message each: `at` bytes of the operation are done, `n` go now ---- */

static int send_swap(struct atomic *a, const void *from, uint64_t at, uint64_t n,
                     const void *operand, ptl_op_t op, ptl_datatype_t type)
{
    const struct pw_rma_key *key = a->o.key;
    void *to = a->result != NULL ? (char *)a->result + at : (void *)key->rail->scratch;
    return PtlSwap(a->o.md, (uintptr_t)to, a->o.md, (uintptr_t)from, n, key->is.id, key->is.pt,
                   entry_bits(key->is.bits, ENTRY_PLAIN), a->offset + at, a->o.user_ptr, 0, operand,
                   op, type);
}

/* Sends to an entry of the region, with header data for its handlers, if it has some. */
static int send_to(struct atomic *a, enum entry_kind kind, const void *from, uint64_t at,
                   uint64_t n, ptl_hdr_data_t call, ptl_op_t op, ptl_datatype_t type)
{
    const struct pw_rma_key *key = a->o.key;
    ptl_match_bits_t bits = entry_bits(key->is.bits, kind);
    if (a->result == NULL) {
        return PtlAtomic(a->o.md, (uintptr_t)from, n, PTL_ACK_REQ, key->is.id, key->is.pt, bits,
                         a->offset + at, a->o.user_ptr, call, op, type);
    }
    return PtlFetchAtomic(a->o.md, (uintptr_t)a->result + at, a->o.md, (uintptr_t)from, n,
                          key->is.id, key->is.pt, bits, a->offset + at, a->o.user_ptr, call, op,
                          type);
}

static int send_read(struct atomic *a, uint64_t at, uint64_t n)
{
    static const double nothing[2] = {NAN, NAN};
    static const long double nothing_long[2] = {NAN, NAN};
    size_t size = types[a->type].size;
    if (size <= 8) {
        return send_to(a, ENTRY_PLAIN, zeros, at, n, 0, PTL_BOR, bits_of(size));
    }
    return send_swap(a, zeros, at, n,
                     a->type == PW_RMA_DOUBLE_COMPLEX ? (const void *)nothing : nothing_long,
                     PTL_CSWAP, (ptl_datatype_t)a->type);
}

static int send_part(struct atomic *a, uint64_t at, uint64_t n)
{
    const char *from = (const char *)a->from + at;
    if (types[a->type].class == PAIR) {
        atomic_fetch_add_explicit(&a->o.key->peer->rma->by_handlers, 1, memory_order_relaxed);
        return send_to(a, ENTRY_PAIRS, a->op == PW_RMA_NO_OP ? (const char *)zeros : from, at, n,
                       pairs_call(a->op, a->type), PTL_SUM, PTL_UINT8_T);
    }
    switch (a->op) {
    case PW_RMA_REPLACE:
        return send_swap(a, from, at, n, NULL, PTL_SWAP, (ptl_datatype_t)a->type);
    case PW_RMA_NO_OP:
        return send_read(a, at, n);
    default:
        break;
    }
    return send_to(a, ENTRY_PLAIN, from, at, n, 0, (ptl_op_t)a->op, (ptl_datatype_t)a->type);
}

/* ---- The calls ---- */

/* The longest message of an operation: what the origin sends and the target takes. */
static uint64_t longest_part(const struct atomic *a)
{
    const struct pw_rma_key *key = a->o.key;
    uint64_t size = types[a->type].size, most = least(ATOMIC_MOST, key->is.max_atomic);
    most = least(most,
                 least(key->rail->limits.max_atomic_size, key->rail->limits.max_fetch_atomic_size));
    bool one = a->op == PW_RMA_NO_OP && size > 8 && types[a->type].class != PAIR;
    return one ? size : most / size * size;
}

int atomic_check(const struct atomic *a, const struct pw_rma_key *key, size_t length)
{
    unsigned access = a->result != NULL ? PW_RMA_READ | PW_RMA_WRITE : PW_RMA_WRITE;
    if (path_of(key, a->op, a->type) == PW_RMA_NONE || a->op > PW_RMA_MAXLOC) {
        return -EOPNOTSUPP;
    }
    if (length % types[a->type].size != 0 || (uintptr_t)a->result + length < length) {
        return -EINVAL;
    }
    return operation_check(key, a->op == PW_RMA_NO_OP ? NULL : a->from, length, a->offset, access);
}

int atomic_send(struct atomic *a, size_t length)
{
    bool sends = a->op != PW_RMA_NO_OP || a->result != NULL;
    uint64_t part = longest_part(a);
    if (sends && path_of(a->o.key, a->op, a->type) == PW_RMA_TWO_SIDED) {
        return call_send(a, length, types[a->type].size);
    }
    int rc = calls_wait(a->o.key->peer, a->o.key->is.rail); /* call.h, D2 */
    for (uint64_t at = 0, n = 0; sends && at < length && rc == 0; at += n) {
        n = least(length - at, part);
        rc = operation_message(&a->o);
        if (rc == 0) {
            atomic_went(&a->o);
            operation_sent(&a->o, send_part(a, at, n), true);
        }
    }
    return rc;
}

static int run(struct atomic *a, struct pw_rma_key *key, size_t count,
               struct pw_rma_request *request)
{
    size_t length;
    if (__builtin_mul_overflow(count, pw_rma_type_size(a->type), &length)) {
        return -EINVAL;
    }
    int rc = atomic_check(a, key, length);
    if (rc != 0) {
        return rc;
    }
    if (direct_atomic(a, key, length, NULL)) {
        request_over(key, request);
        return 0;
    }
    operation_begin(&a->o, key, request);
    rc = atomic_send(a, length);
    operation_begun(&a->o);
    return rc;
}

int pw_rma_accumulate(struct pw_rma_key *key, const void *from, size_t count, uint64_t offset,
                      enum pw_rma_op op, enum pw_rma_type type, struct pw_rma_request *request)
{
    struct atomic a = {.from = from, .offset = offset, .op = op, .type = type};
    return run(&a, key, count, request);
}

int pw_rma_get_accumulate(struct pw_rma_key *key, const void *from, void *result, size_t count,
                          uint64_t offset, enum pw_rma_op op, enum pw_rma_type type,
                          struct pw_rma_request *request)
{
    struct atomic a = {.from = from, .result = result, .offset = offset, .op = op, .type = type};
    if (result == NULL) {
        return -EINVAL;
    }
    return run(&a, key, count, request);
}

int pw_rma_fetch_op(struct pw_rma_key *key, const void *from, void *result, uint64_t offset,
                    enum pw_rma_op op, enum pw_rma_type type, struct pw_rma_request *request)
{
    return pw_rma_get_accumulate(key, from, result, 1, offset, op, type, request);
}

int pw_rma_compare_swap(struct pw_rma_key *key, const void *value, const void *compare,
                        void *result, uint64_t offset, enum pw_rma_type type,
                        struct pw_rma_request *request)
{
    struct atomic a = {.from = value, .result = result, .offset = offset, .type = type};
    size_t size = pw_rma_type_size(type);
    if (path_of(key, PW_RMA_COMPARE_SWAP, type) == PW_RMA_NONE) {
        return -EOPNOTSUPP;
    }
    if ((uintptr_t)result + size < size) {
        return -EINVAL;
    }
    int rc = operation_check(key, value, size, offset, PW_RMA_READ | PW_RMA_WRITE);
    if (rc != 0) {
        return rc;
    }
    if (direct_atomic(&a, key, size, compare)) {
        request_over(key, request);
        return 0;
    }
    operation_begin(&a.o, key, request);
    rc = calls_wait(key->peer, key->is.rail);
    if (rc == 0) {
        rc = operation_message(&a.o);
    }
    if (rc == 0) {
        atomic_went(&a.o);
        operation_sent(&a.o, send_swap(&a, value, 0, size, compare, PTL_CSWAP, bits_of(size)),
                       true);
    }
    operation_begun(&a.o);
    return rc;
}
