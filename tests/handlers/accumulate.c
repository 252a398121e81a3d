/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/accumulate: every operation on every type against what PtlAtomic() and
 * PtlSwap() make of the same data, all lengths and places against a plain loop, and
 * many senders at once.
 *
 *      rank 0 ──put──► rank 1: entry with handlers          `memory`
 *             ──PtlAtomic, PtlSwap──► entry without         `expected`
 */
#include "kit.h"

#include "accumulate.h"

#include <complex.h>
#include <math.h>

enum { BITS = 1, ORACLE_BITS = 2 };

static struct accumulate_locks locks;

static ptl_handle_me_t post_with(struct kit *k, void *memory, size_t length, ptl_op_t op,
                                 ptl_datatype_t type, const void *operand, unsigned options,
                                 ptl_handle_ct_t ct)
{
    struct accumulate_state state;
    ptl_handlers_t h;
    OK(accumulate_handlers(op, type, operand, length, &locks, &state, &h));
    return kit_entry(k, memory, length, BITS, options, ct, &h);
}

static ptl_handle_me_t post(struct kit *k, void *memory, size_t length, ptl_op_t op,
                            ptl_datatype_t type, const void *operand, ptl_handle_ct_t ct)
{
    return post_with(k, memory, length, op, type, operand, PTL_ME_USE_ONCE, ct);
}

/* ---- Every operation on every type ---- */

/* Few different values, so that comparisons go all ways. No NaN where arithmetic would
 * have a choice which of two NaNs to give back. */
static void fill(void *buffer, size_t count, ptl_datatype_t type, bool nan_too, uint64_t seed)
{
    static const double values[] = {0, 1, -1, 1.5, -2.25, 3, 1e9, -1e-9, INFINITY};
    uint64_t r = seed;
    size_t size = combine_size(type);
    bool complex_type =
        type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
    memset(buffer, 0, count * size); /* what a long double does not use, too */
    for (size_t i = 0; i < count << complex_type; i++) {
        uint64_t n = splitmix(&r) % 10;
        double x = n == 9 ? nan_too ? NAN : 7 : values[n == 8 && !nan_too ? 0 : n];
        if (type == PTL_FLOAT || type == PTL_FLOAT_COMPLEX) {
            ((float *)buffer)[i] = (float)x;
        } else if (type == PTL_DOUBLE || type == PTL_DOUBLE_COMPLEX) {
            ((double *)buffer)[i] = x;
        } else if (type == PTL_LONG_DOUBLE || type == PTL_LONG_DOUBLE_COMPLEX) {
            ((long double *)buffer)[i] = (long double)x / 3;
        } else {
            uint64_t v = n < 6 ? n - 2 : splitmix(&r);
            memcpy((char *)buffer + i * size, &v, size);
        }
    }
}

/* What Portals itself makes of it, in pieces that one atomic may have. */
static void oracle(struct kit *k, void *data, size_t count, ptl_op_t op, ptl_datatype_t type,
                   const void *operand)
{
    size_t size = combine_size(type), whole = k->p.limits.max_atomic_size / size * size;
    size_t swap = k->p.limits.max_fetch_atomic_size / size * size;
    void *found = kit_memory(count * size);
    ptl_handle_ct_t ct = port_ct(&k->p);
    ptl_handle_md_t md = port_quiet_md(&k->p, data, count * size, PTL_MD_EVENT_CT_ACK, ct);
    ptl_handle_md_t get = port_quiet_md(&k->p, found, count * size, PTL_MD_EVENT_CT_REPLY, ct);
    uint64_t calls = 0;
    for (size_t at = 0, n; at < count * size; at += n, calls++) {
        n = op > PTL_SWAP ? size : op == PTL_SWAP ? swap : whole;
        n = n < count * size - at ? n : count * size - at;
        if (op >= PTL_SWAP) {
            OK(PtlSwap(get, at, md, at, n, k->p.id[1], k->p.pt, ORACLE_BITS, at, NULL, 0, operand,
                       op, type));
        } else {
            OK(PtlAtomic(md, at, n, PTL_CT_ACK_REQ, k->p.id[1], k->p.pt, ORACLE_BITS, at, NULL, 0,
                         op, type));
        }
        kit_wait(ct, calls + 1);
    }
    port_release(md);
    port_release(get);
    OK(PtlCTFree(ct));
    free(found);
}

static void try_operation(struct kit *k, ptl_op_t op, ptl_datatype_t type, size_t count)
{
    static _Alignas(64) unsigned char memory[8192], expected[8192], data[8192], operand[64];
    size_t size = combine_size(type);
    bool nan_too = op != PTL_SUM && op != PTL_PROD;
    fill(memory, count, type, nan_too, 1 + op);
    fill(expected, count, type, nan_too, 1 + op);
    fill(data, count, type, nan_too, 1000 + op * 100u + type);
    fill(operand, 1, type, false, 7 + op);
    if (k->p.rank == 1) {
        post(k, memory, count * size, op, type, operand, PTL_CT_NONE);
        ptl_me_t me = port_entry(&k->p, expected, count * size,
                                 PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                     PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
        me.match_bits = ORACLE_BITS;
        me.ignore_bits = 0;
        ptl_handle_me_t plain = port_append(&k->p, &me, NULL);
        BARRIER();
        BARRIER();
        port_unlink(&k->p, plain);
        OK(PtlAtomicSync());
        CHECK_SAME(memory, expected, count * size);
    } else {
        BARRIER();
        kit_put_once(k, data, count * size, 1, BITS, 0, 0, PTL_NI_OK);
        oracle(k, data, count, op, type, operand);
        BARRIER();
    }
    BARRIER();
}

PTEST_LIMIT(as_portals_does, 2, 120)
{
    struct kit k;
    kit_open(&k, rank, size);
    int tried = 0;
    for (unsigned o = 0; o < PTL_OP_LAST; o++) {
        for (unsigned t = 0; t < PTL_DATATYPE_LAST; t++) {
            ptl_op_t op = (ptl_op_t)o;
            ptl_datatype_t type = (ptl_datatype_t)t;
            if (combine_defined(op, type)) {
                try_operation(&k, op, type, 1);
                try_operation(&k, op, type, 131);
                tried++;
            }
        }
    }
    CHECK_EQ(tried, 8 * 18 + 3 * 11 + 3 * 5); /* integers, reals, complex numbers */
    kit_close(&k);
}

/* ---- Lengths and places: the product of complex numbers ---- */

PTEST(complex_product, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    size_t count = kit_largest(&k) / 16 + 200;
    double _Complex *memory = kit_memory(count * 16), *data = kit_memory(count * 16),
                    *want = kit_memory(count * 16);
    for (int i = 0; i < KIT_SIZES; i++) {
        size_t n = kit_size(&k, i) / 16, at = (size_t)i * 13;
        uint64_t r = (uint64_t)i;
        for (size_t j = 0; j < count; j++) {
            memory[j] = want[j] = (double)(splitmix(&r) % 1000) + 1.0 * I * (double)(j % 77);
            data[j] = (double)(splitmix(&r) % 1000) / 8 - 1.0 * I * (double)(j % 5);
        }
        for (size_t j = 0; j < n; j++) {
            want[at + j] *= data[j];
        }
        if (rank == 1) {
            post(&k, memory, count * 16, PTL_PROD, PTL_DOUBLE_COMPLEX, NULL, PTL_CT_NONE);
        }
        BARRIER();
        if (rank == 0) {
            kit_put_once(&k, data, n * 16, 1, BITS, at * 16, 0, PTL_NI_OK);
        }
        BARRIER();
        if (rank == 1) {
            CHECK_SAME(memory, want, count * 16);
        }
    }
    kit_close(&k);
}

/* ---- Many at once ---- */

/* What message m of a rank adds, and where. */
static size_t message(const struct kit *k, int rank, int m, size_t count, size_t *at)
{
    uint64_t r = (uint64_t)rank * 1000 + (uint64_t)m;
    size_t n = splitmix(&r) % (m % 4 == 0 ? 9 * k->packet / 8 : 40);
    *at = splitmix(&r) % (count - n);
    return n;
}

/* To an entry for each message, or one for all. */
enum { MESSAGES = 60 };

static void many(int rank, int size, int entries, unsigned options)
{
    struct kit k;
    kit_open(&k, rank, size);
    size_t count = 10 * k.packet / 8, at;
    uint64_t *memory = kit_memory(count * 8), *want = kit_memory(count * 8),
             *data = kit_memory(count * 8);
    for (size_t j = 0; j < count; j++) {
        data[j] = (uint64_t)rank * 1000000 + j;
    }
    ptl_handle_ct_t ct = port_ct(&k.p);
    if (rank == 3) {
        for (int m = 0; m < entries; m++) {
            post_with(&k, memory, count * 8, PTL_SUM, PTL_UINT64_T, NULL, options, ct);
        }
    }
    BARRIER();
    if (rank < 3) {
        struct kit_sender s = kit_sender(&k, data, count * 8);
        for (int m = 0; m < MESSAGES; m++) {
            size_t n = message(&k, rank, m, count, &at);
            kit_put(&s, 0, n * 8, 3, BITS, at * 8, 0);
        }
        kit_flush(&s);
        kit_release(&s);
    } else {
        kit_wait(ct, 3 * MESSAGES);
        for (int from = 0; from < 3; from++) {
            for (int m = 0; m < MESSAGES; m++) {
                size_t n = message(&k, from, m, count, &at);
                for (size_t j = 0; j < n; j++) {
                    want[at + j] += (uint64_t)from * 1000000 + j;
                }
            }
        }
        CHECK_SAME(memory, want, count * 8);
    }
    kit_close(&k);
}

PTEST(many_senders, 4)
{
    many(rank, size, 3 * MESSAGES, PTL_ME_USE_ONCE);
}

PTEST(many_senders_to_one_entry, 4)
{
    many(rank, size, 1, 0);
}

/* ---- Refused ---- */

PTEST(refused, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    static _Alignas(64) unsigned char memory[256], data[512];
    struct accumulate_state state;
    ptl_handlers_t h;
    const struct {
        size_t length, offset;
    } bad[] = {{8, 4}, {12, 8}, {264, 0}, {8, 256}, {16, 248}, {8, ~(size_t)7}};
    INVALID(accumulate_handlers(PTL_BOR, PTL_DOUBLE, NULL, 8, &locks, &state, &h));
    INVALID(accumulate_handlers(PTL_MIN, PTL_FLOAT_COMPLEX, NULL, 8, &locks, &state, &h));
    INVALID(accumulate_handlers(PTL_OP_LAST, PTL_INT8_T, data, 8, &locks, &state, &h));
    INVALID(accumulate_handlers(PTL_SUM, PTL_DATATYPE_LAST, NULL, 8, &locks, &state, &h));
    INVALID(accumulate_handlers(PTL_CSWAP, PTL_INT8_T, NULL, 8, &locks, &state, &h));
    INVALID(accumulate_handlers(PTL_SUM, PTL_INT8_T, NULL, 8, NULL, &state, &h));
    memset(data, 1, sizeof(data));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (rank == 1) {
            post(&k, memory, sizeof(memory), PTL_SUM, PTL_INT64_T, NULL, PTL_CT_NONE);
        }
        BARRIER();
        if (rank == 0) {
            kit_put_once(&k, data, bad[i].length, 1, BITS, bad[i].offset, 0, PTL_NI_HANDLER_FAIL);
        } else {
            EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
            CHECK_BYTES(memory, sizeof(memory), 0);
        }
        BARRIER();
    }
    kit_close(&k);
}
