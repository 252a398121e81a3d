/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations: each on each type, against handlers/combine.c; by several processes at once;
 * their order; what is refused. */
#include "elements.h"

#include "combine.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

union element {
    unsigned char bytes[WIDEST];
    float f[2];
    double d[2];
    long double l[2];
};

static const enum pw_rma_op ops[] = {PW_RMA_MIN,  PW_RMA_MAX,  PW_RMA_SUM,     PW_RMA_PROD,
                                     PW_RMA_LOR,  PW_RMA_LAND, PW_RMA_BOR,     PW_RMA_BAND,
                                     PW_RMA_LXOR, PW_RMA_BXOR, PW_RMA_REPLACE, PW_RMA_NO_OP};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static double real(uint64_t *state)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1.5};
    uint64_t r = splitmix(state);
    return r % 8 < 7 ? (double)(int)(r >> 8 & 63) - 31.0 : special[(r >> 8) % 7];
}

/* Fills elements of a type: integers of any bits with zeros among them, reals with special ones. */
static void fill(unsigned char *to, enum pw_rma_type type, uint64_t *state)
{
    size_t size = pw_rma_type_size(type);
    for (int i = 0; i < ELEMENTS; i++) {
        union element e;
        memset(&e, 0, sizeof(e));
        switch (type) {
        case PW_RMA_FLOAT:
        case PW_RMA_FLOAT_COMPLEX:
            e.f[0] = (float)real(state);
            e.f[1] = (float)real(state);
            break;
        case PW_RMA_DOUBLE:
        case PW_RMA_DOUBLE_COMPLEX:
            e.d[0] = real(state);
            e.d[1] = real(state);
            break;
        case PW_RMA_LONG_DOUBLE:
        case PW_RMA_LONG_DOUBLE_COMPLEX:
            e.l[0] = real(state);
            e.l[1] = real(state);
            break;
        default: {
            uint64_t word = splitmix(state);
            memcpy(e.bytes, &word, 8);
            memset(e.bytes, 0, word % 5 == 0 ? 8 : 0);
        }
        }
        memcpy(to + (size_t)i * size, &e, size);
    }
}

static void run(enum pw_rma_op op, enum pw_rma_type type, unsigned char *target,
                const unsigned char *from, size_t count)
{
    combine(op == PW_RMA_REPLACE ? PTL_SWAP : (ptl_op_t)op, (ptl_datatype_t)type, target, from,
            NULL, count);
}

static bool defined(enum pw_rma_op op, enum pw_rma_type type)
{
    return op == PW_RMA_NO_OP ||
           combine_defined(op == PW_RMA_REPLACE ? PTL_SWAP : (ptl_op_t)op, (ptl_datatype_t)type);
}

static const struct elements how = {fill, run, PW_RMA_NATIVE};

static void each(unsigned kind, int rank, int size, int target)
{
    struct ends e;
    uint64_t state = 11;
    ends_serve(&e, kind, rank, size, target, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        for (int type = 0; type <= PW_RMA_LONG_DOUBLE_COMPLEX; type++) {
            CHECK_EQ(pw_rma_type_size((enum pw_rma_type)type), combine_size((ptl_datatype_t)type));
            for (int i = 0; i < OPS; i++) {
                for (int turn = 0; turn < 4 && defined(ops[i], (enum pw_rma_type)type); turn++) {
                    elements_try(&how, key, ops[i], (enum pw_rma_type)type, turn % 2 == 1,
                                 turn < 2 ? 0
                                          : (unsigned)(splitmix(&state) % pw_rma_type_size(type)),
                                 &state);
                }
            }
        }
    }
    ends_served(&e);
}

PTEST_MATCHING(each_of_another, 2)
{
    each(kind, rank, size, 1);
}

PTEST(each_of_oneself, 1)
{
    each(KIND_ML, rank, size, 0);
}

/* Compare and swap of each size, of equal and of different bits; the old value wanted or not. */
PTEST_MATCHING(compare_swaps, 2)
{
    struct ends e;
    uint64_t state = 5;
    ends_serve(&e, kind, rank, size, 1, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        struct pw_rma_peer *peer = pw_rma_key_peer(key);
        for (int n = 0; n < 400; n++) {
            enum pw_rma_type type = (enum pw_rma_type)(n % PW_RMA_DOUBLE_COMPLEX);
            size_t bytes = pw_rma_type_size(type);
            uint64_t was = splitmix(&state), value = splitmix(&state), compare = was, got = 7;
            uint64_t now = 0, offset = 8 * (splitmix(&state) % 100);
            compare ^= n % 3 == 0 ? 1u << splitmix(&state) % 8 : 0;
            DONE(pw_rma_put(key, &was, 8, offset, NULL));
            DONE(pw_rma_flush(peer));
            DONE(pw_rma_compare_swap(key, &value, &compare, n % 2 == 0 ? &got : NULL, offset, type,
                                     NULL));
            DONE(pw_rma_flush(peer));
            DONE(pw_rma_get(key, &now, 8, offset, NULL));
            DONE(pw_rma_flush(peer));
            uint64_t want = was, mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
            if (n % 3 != 0) {
                want = (was & ~mask) | (value & mask);
            }
            CHECK_EQ(now, want);
            CHECK_EQ(got, n % 2 == 0 ? (7 & ~mask) | (was & mask) : 7);
        }
        /* -0 equals 0 as a number, and NaN nothing: their bits count */
        double minus = -0.0, zero = 0.0, none = NAN, one_half = 0.5, is = 0;
        DONE(pw_rma_put(key, &minus, 8, 0, NULL));
        DONE(pw_rma_put(key, &none, 8, 8, NULL));
        DONE(pw_rma_flush(peer));
        DONE(pw_rma_compare_swap(key, &one_half, &zero, NULL, 0, PW_RMA_DOUBLE, NULL));
        DONE(pw_rma_compare_swap(key, &one_half, &none, NULL, 8, PW_RMA_DOUBLE, NULL));
        DONE(pw_rma_fetch_op(key, NULL, &is, 0, PW_RMA_NO_OP, PW_RMA_DOUBLE, NULL));
        DONE(pw_rma_flush(peer));
        CHECK(is == 0.0 && signbit(is));
        DONE(pw_rma_fetch_op(key, NULL, &is, 8, PW_RMA_NO_OP, PW_RMA_DOUBLE, NULL));
        DONE(pw_rma_flush(peer));
        CHECK(is == 0.5);
    }
    ends_served(&e);
}

/* Four ranks at one word, the owner by atomic instructions of the processor: each ticket once. */
PTEST_MATCHING(tickets, 4)
{
    enum { EACH = 500, RANKS = 4 };
    static uint64_t word, swaps;
    static unsigned char taken[RANKS * EACH];
    struct ends e;
    struct pw_rma_region *regions[2] = {NULL, NULL};
    struct pw_rma_key *keys[2];
    ends_open(&e, kind, rank, size);
    if (rank == 0) {
        regions[0] = region_of(e.rma, &word, 8, PW_RMA_READ | PW_RMA_WRITE);
        regions[1] = region_of(e.rma, taken, sizeof(taken), PW_RMA_READ | PW_RMA_WRITE);
    }
    for (int i = 0; i < 2; i++) {
        if (rank == 0) {
            key_show(regions[i]);
        }
        BARRIER();
        keys[i] = key_of(e.rma, 0);
        BARRIER();
    }
    for (int i = 0; i < EACH; i++) {
        uint64_t ticket = 0, one = 1, seen = 0;
        struct pw_rma_request request;
        if (rank == 0) {
            ticket = __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
        } else if (rank == 1) {
            DONE(pw_rma_fetch_op(keys[0], &one, &ticket, 0, PW_RMA_SUM, PW_RMA_UINT64, &request));
            DONE(pw_rma_wait(&request));
        } else {
            do {
                ticket = seen;
                uint64_t next = ticket + 1;
                DONE(pw_rma_compare_swap(keys[0], &next, &ticket, &seen, 0, PW_RMA_UINT64, NULL));
                DONE(pw_rma_flush(pw_rma_key_peer(keys[0])));
                swaps++;
            } while (seen != ticket);
        }
        unsigned char mark = 1;
        CHECK(ticket < sizeof(taken));
        DONE(pw_rma_accumulate(keys[1], &mark, 1, ticket, PW_RMA_SUM, PW_RMA_UINT8, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(keys[1])));
    }
    BARRIER();
    CHECK(rank < 2 || swaps >= EACH);
    for (int i = 0; i < 2; i++) {
        pw_rma_key_close(keys[i]);
    }
    if (rank == 0) {
        CHECK_EQ(word, RANKS * EACH);
        CHECK_BYTES(taken, sizeof(taken), 1);
        region_end(regions[0]);
        region_end(regions[1]);
    }
    ends_close(&e);
}

/* Without a flush between them atomics of one origin are done in the order of the calls. */
PTEST_MATCHING(order, 2)
{
    enum { STEPS = 2000 };
    static uint64_t values[STEPS], before[STEPS], read[STEPS];
    struct ends e;
    ends_serve(&e, kind, rank, size, 1, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        for (uint64_t i = 0; i < STEPS; i++) {
            values[i] = i + 1;
            DONE(pw_rma_fetch_op(key, &values[i], &before[i], 0,
                                 i % 2 == 0 ? PW_RMA_REPLACE : PW_RMA_MAX, PW_RMA_UINT64, NULL));
            DONE(pw_rma_fetch_op(key, NULL, &read[i], 0, PW_RMA_NO_OP, PW_RMA_UINT64, NULL));
        }
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        for (uint64_t i = 0; i < STEPS; i++) {
            CHECK_EQ(before[i], i);
            CHECK_EQ(read[i], i + 1);
        }
    }
    ends_served(&e);
}

PTEST_MATCHING(refused, 1)
{
    struct ends e;
    uint64_t word = 0, to = 0;
    ends_open(&e, kind, rank, size);
    struct pw_rma_region *region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    struct pw_rma_region *written = region_of(e.rma, memory, LENGTH, PW_RMA_WRITE);
    struct pw_rma_region *read = region_of(e.rma, memory, LENGTH, PW_RMA_READ);
    key_show(region);
    struct pw_rma_key *key = key_of(e.rma, 0);
    for (int op = -1; op < 64; op++) {
        for (int type = -1; type < 64; type++) {
            enum pw_rma_op o = (enum pw_rma_op)op;
            enum pw_rma_type t = (enum pw_rma_type)type;
            bool is = type >= 0 && type <= PW_RMA_LONG_DOUBLE_COMPLEX;
            bool there = is && op >= 0 && op <= PW_RMA_NO_OP && defined(o, t);
            there |= is && op == PW_RMA_COMPARE_SWAP && pw_rma_type_size(t) <= 8;
            CHECK_EQ(pw_rma_path(key, o, t), there ? PW_RMA_NATIVE : PW_RMA_NONE);
            if (!there) {
                REFUSED(pw_rma_accumulate(key, data, 1, 0, o, t, NULL), EOPNOTSUPP);
                REFUSED(pw_rma_get_accumulate(key, data, old, 1, 0, o, t, NULL), EOPNOTSUPP);
            }
        }
    }
    REFUSED(pw_rma_compare_swap(key, data, data, old, 0, PW_RMA_LONG_DOUBLE, NULL), EOPNOTSUPP);
    REFUSED(pw_rma_accumulate(key, data, SIZE_MAX / 4, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL), EINVAL);
    REFUSED(pw_rma_accumulate(key, data, 1, LENGTH - 7, PW_RMA_SUM, PW_RMA_UINT64, NULL), EINVAL);
    REFUSED(pw_rma_fetch_op(key, &word, NULL, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL), EINVAL);
    REFUSED(pw_rma_compare_swap(key, &word, &word, &to, LENGTH - 7, PW_RMA_UINT64, NULL), EINVAL);
    pw_rma_key_close(key);

    key_show(written);
    key = key_of(e.rma, 0);
    DONE(pw_rma_accumulate(key, &word, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
    REFUSED(pw_rma_fetch_op(key, &word, &to, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL), EACCES);
    REFUSED(pw_rma_compare_swap(key, &word, &word, &to, 0, PW_RMA_UINT64, NULL), EACCES);
    DONE(pw_rma_flush_all(e.rma));
    pw_rma_key_close(key);
    key_show(read);
    key = key_of(e.rma, 0);
    REFUSED(pw_rma_accumulate(key, &word, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL), EACCES);
    pw_rma_key_close(key);
    region_end(region);
    region_end(written);
    region_end(read);
    ends_close(&e);
}
