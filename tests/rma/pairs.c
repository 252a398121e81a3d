/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on pairs, which handlers at the target do: against plain code; by several
 * processes at once; in order with others; and messages that no origin of ours would send. */
#include "region.h"

#include <math.h>
#include <stdlib.h>

enum { ELEMENTS = 300, WIDEST = 32, LENGTH = ELEMENTS * WIDEST };
enum { ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS };

static _Alignas(64) unsigned char memory[LENGTH], model[LENGTH], data[LENGTH], old[LENGTH],
    found[LENGTH];

struct float_int {
    float value;
    int32_t index;
};
struct double_int {
    double value;
    int32_t index;
};
struct long_int {
    int64_t value;
    int32_t index;
};
struct int_int {
    int32_t value, index;
};
struct short_int {
    int16_t value;
    int32_t index;
};
struct long_double_int {
    long double value;
    int32_t index;
};
struct float_float {
    float value, index;
};
struct double_double {
    double value, index;
};

static const enum pw_rma_op ops[] = {PW_RMA_MINLOC, PW_RMA_MAXLOC, PW_RMA_REPLACE, PW_RMA_NO_OP};

/* Values of which many are equal, and some special; of integers those near the ends, too. */
static double value_of(uint64_t *state)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-310, -1e-310, 1e300};
    uint64_t r = splitmix(state);
    return r % 4 < 3 ? (double)(int)(r >> 8 & 7) - 4.0 : special[(r >> 8) % 8];
}

static int64_t whole_of(uint64_t *state)
{
    uint64_t r = splitmix(state);
    return r % 4 < 3 ? (int64_t)(r >> 8 & 7) - 4 : (int64_t)splitmix(state);
}

/* Fills elements, and the memory between their members; combines them. */
#define PAIRS(name, from)                                                                          \
    static void fill_##name(struct name *p, uint64_t *state)                                       \
    {                                                                                              \
        for (int i = 0; i < ELEMENTS; i++) {                                                       \
            struct name one;                                                                       \
            memset(&one, (int)splitmix(state), sizeof(one));                                       \
            one.value = (__typeof__(one.value))from(state);                                        \
            one.index = (__typeof__(one.index))(int)(splitmix(state) % 9);                         \
            memcpy(&p[i], &one, sizeof(one));                                                      \
        }                                                                                          \
    }                                                                                              \
    static void run_##name(enum pw_rma_op op, struct name *t, const struct name *d, size_t count)  \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            bool better = op == PW_RMA_MINLOC ? d[i].value < t[i].value : d[i].value > t[i].value; \
            better |= d[i].value == t[i].value && d[i].index < t[i].index;                         \
            if (op == PW_RMA_REPLACE || (op != PW_RMA_NO_OP && better)) {                          \
                memcpy(&t[i], &d[i], sizeof(t[i]));                                                \
            }                                                                                      \
        }                                                                                          \
    }

PAIRS(float_int, value_of)
PAIRS(double_int, value_of)
PAIRS(long_int, whole_of)
PAIRS(int_int, whole_of)
PAIRS(short_int, whole_of)
PAIRS(long_double_int, value_of)
PAIRS(float_float, value_of)
PAIRS(double_double, value_of)

#define ROW(type, name)                                                                            \
    {                                                                                              \
        type, sizeof(struct name), (void (*)(void *, uint64_t *))fill_##name,                      \
            (void (*)(enum pw_rma_op, void *, const void *, size_t))run_##name                     \
    }
static const struct row {
    enum pw_rma_type type;
    size_t size;
    void (*fill)(void *, uint64_t *);
    void (*run)(enum pw_rma_op, void *, const void *, size_t);
} rows[] = {
    ROW(PW_RMA_FLOAT_INT, float_int),     ROW(PW_RMA_DOUBLE_INT, double_int),
    ROW(PW_RMA_LONG_INT, long_int),       ROW(PW_RMA_INT_INT, int_int),
    ROW(PW_RMA_SHORT_INT, short_int),     ROW(PW_RMA_LONG_DOUBLE_INT, long_double_int),
    ROW(PW_RMA_FLOAT_FLOAT, float_float), ROW(PW_RMA_DOUBLE_DOUBLE, double_double),
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static void same(const struct row *row, enum pw_rma_op op, const unsigned char *a,
                 const unsigned char *b)
{
    for (size_t i = 0; i < ELEMENTS * row->size; i++) {
        if (a[i] != b[i]) {
            FAIL("type %d, operation %d, element %zu: byte %zu is %02x, not %02x", (int)row->type,
                 (int)op, i / row->size, i % row->size, a[i], b[i]);
        }
    }
}

static void one(struct pw_rma_key *key, const struct row *row, enum pw_rma_op op, bool fetches,
                unsigned shift, uint64_t *state)
{
    struct pw_rma_request request;
    struct pw_rma_request *r = splitmix(state) % 2 == 0 ? &request : NULL;
    size_t whole = (ELEMENTS - 1) * row->size, first = splitmix(state) % 20;
    size_t count = ELEMENTS - 20 - splitmix(state) % 40, at = first * row->size;
    CHECK_EQ(pw_rma_path(key, op, row->type), PW_RMA_HANDLER);
    CHECK_EQ(pw_rma_type_size(row->type), row->size);
    memset(model, 0, sizeof(model));
    row->fill(model, state);
    row->fill(data, state);
    memset(old, 0x5a, sizeof(old));
    memcpy(found, old, sizeof(found));
    DONE(pw_rma_put(key, model, whole, shift, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    if (fetches) {
        memcpy(old + at, model + at, count * row->size);
        DONE(
            pw_rma_get_accumulate(key, data + at, found + at, count, shift + at, op, row->type, r));
    } else {
        DONE(pw_rma_accumulate(key, data + at, count, shift + at, op, row->type, r));
    }
    DONE(r != NULL ? pw_rma_wait(r) : pw_rma_flush(pw_rma_key_peer(key)));
    same(row, op, found, old);
    row->run(op, model + at, data + at, count);
    memcpy(found, model, sizeof(found));
    DONE(pw_rma_get(key, found, whole, shift, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    same(row, op, found, model);
}

static void each(unsigned kind, int rank, int size, int target)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    uint64_t state = 3;
    ends_open(&e, kind, rank, size);
    if (rank == target) {
        region = region_of(e.rma, memory, LENGTH, ALL);
        key_show(region);
    }
    BARRIER();
    if (rank == 0) {
        struct pw_rma_key *key = key_of(e.rma, target);
        for (int i = 0; i < ROWS; i++) {
            for (int turn = 0; turn < 16; turn++) {
                one(key, &rows[i], ops[turn % 4], turn / 4 % 2 == 1,
                    turn < 8 ? 0 : (unsigned)(splitmix(&state) % rows[i].size), &state);
            }
        }
        pw_rma_key_close(key);
    }
    BARRIER();
    if (rank == target) {
        region_end(region);
    }
    ends_close(&e);
}

PTEST_MATCHING(each_of_another, 2)
{
    each(kind, rank, size, 1);
}

PTEST(each_of_oneself, 1)
{
    each(KIND_ML, rank, size, 0);
}

/* Ranks swap rows of pairs at one place: each pair that is put in comes out once. And they look for
 * a maximum. */
PTEST_MATCHING(together, 4)
{
    enum { EACH = 200, RANKS = 4, ROW = 200 };
    static struct long_int places[ROW + 1], mine[ROW], was[ROW], best[EACH];
    static int64_t sums[ROW];
    struct ends e;
    struct pw_rma_region *region = NULL;
    ends_open(&e, kind, rank, size);
    if (rank == 0) {
        places[ROW].value = INT64_MIN;
        region = region_of(e.rma, places, sizeof(places), ALL);
        key_show(region);
    }
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 0);
    for (int i = 0; i < EACH; i++) {
        struct pw_rma_request request;
        best[i] = (struct long_int){(int64_t)(rank + 1) * 7919 * i % 5003, rank * EACH + i};
        for (int k = 0; k < ROW; k++) {
            mine[k] = (struct long_int){rank * EACH + i + 1, -(rank * EACH + i + 1)};
        }
        DONE(
            pw_rma_accumulate(key, &best[i], 1, sizeof(was), PW_RMA_MAXLOC, PW_RMA_LONG_INT, NULL));
        DONE(pw_rma_get_accumulate(key, mine, was, ROW, 0, PW_RMA_REPLACE, PW_RMA_LONG_INT,
                                   &request));
        DONE(pw_rma_wait(&request));
        for (int k = 0; k < ROW; k++) {
            CHECK_EQ(was[k].value, -was[k].index);
            CHECK_EQ(was[k].value, was[0].value);
            sums[k] += was[k].value;
        }
    }
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    pw_rma_key_close(key);
    for (int k = 0; k < ROW; k++) {
        CHECK_EQ(sums[k], sums[0]);
    }
    ptest_show(60, (uint64_t)sums[0]);
    BARRIER();
    if (rank == 0) {
        struct long_int most = {INT64_MIN, 0};
        int64_t all = places[0].value;
        for (int r = 0; r < RANKS; r++) {
            all += (int64_t)ptest_look(r, 60);
            for (int i = 0; i < EACH; i++) {
                struct long_int p = {(int64_t)(r + 1) * 7919 * i % 5003, r * EACH + i};
                if (p.value > most.value || (p.value == most.value && p.index < most.index)) {
                    most = p;
                }
            }
        }
        CHECK_EQ(all, (int64_t)RANKS * EACH * (RANKS * EACH + 1) / 2);
        CHECK_EQ(places[ROW].value, most.value);
        CHECK_EQ(places[ROW].index, most.index);
        region_end(region);
    }
    ends_close(&e);
}

/* Operations of both ways on the same memory are done in the order of the calls. */
PTEST_MATCHING(order, 2)
{
    enum { STEPS = 500 };
    static struct int_int pairs[STEPS], was[STEPS];
    static uint32_t words[STEPS];
    struct ends e;
    struct pw_rma_region *region = NULL;
    ends_open(&e, kind, rank, size);
    if (rank == 1) {
        region = region_of(e.rma, memory, LENGTH, ALL);
        key_show(region);
    }
    BARRIER();
    if (rank == 0) {
        struct pw_rma_key *key = key_of(e.rma, 1);
        const uint32_t one = 1;
        for (int i = 0; i < STEPS; i++) {
            pairs[i] = (struct int_int){3 * i, 5 * i};
            DONE(pw_rma_accumulate(key, &pairs[i], 1, 0, PW_RMA_REPLACE, PW_RMA_INT_INT, NULL));
            DONE(pw_rma_fetch_op(key, &one, &words[i], 4, PW_RMA_SUM, PW_RMA_INT32, NULL));
            DONE(pw_rma_fetch_op(key, NULL, &was[i], 0, PW_RMA_NO_OP, PW_RMA_INT_INT, NULL));
        }
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        for (int i = 0; i < STEPS; i++) {
            CHECK_EQ(words[i], 5 * i);
            CHECK_EQ(was[i].value, 3 * i);
            CHECK_EQ(was[i].index, 5 * i + 1);
        }
        pw_rma_key_close(key);
    }
    BARRIER();
    if (rank == 1) {
        region_end(region);
    }
    ends_close(&e);
}

/* Messages to the handlers' entry by who has its match bits: none but those that make sense changes
 * anything, each is answered, and the next origin is served. */
PTEST_MATCHING(hostile, 2)
{
    enum { MESSAGES = 2000, REGION = LENGTH / 2, KEY_PT = 40 };
    struct ends e;
    struct port *p = &e.port;
    struct pw_rma_region *region = NULL;
    uint64_t state = 99;
    ends_open(&e, kind, rank, size);
    if (rank == 1) {
        memset(memory, 0xa5, LENGTH);
        region = region_of(e.rma, memory, REGION, ALL);
        key_show(region);
    }
    BARRIER();
    if (rank == 0) {
        unsigned char bytes[PW_RMA_KEY];
        ptl_match_bits_t bits;
        ptl_pt_index_t pt;
        key_look(1, bytes);
        memcpy(&bits, bytes + KEY_BITS, 8);
        memcpy(&pt, bytes + KEY_PT, 4);
        bits |= 1;
        ptl_handle_md_t md = port_md(p, data, LENGTH, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t get = port_md(p, found, LENGTH, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        for (int i = 0; i < MESSAGES; i++) {
            uint64_t length = splitmix(&state) % 100, offset = splitmix(&state) % (REGION + 100);
            uint64_t call = splitmix(&state), operand = 0;
            /* half of them have the right version, but no operation, type or length that fits it */
            if (i % 2 == 0) {
                call = UINT64_C(1) << 48 | (call & 0xffff);
                length = length % 7 == 0 ? 1 : length - length % 8 + 1 + length % 7;
            }
            switch (splitmix(&state) % 5) {
            case 0:
                OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], pt, bits, offset, NULL, call));
                break;
            case 1:
                OK(PtlGet(get, 0, length, p->id[1], pt, bits, offset, NULL));
                break;
            case 2:
                OK(PtlAtomic(md, 0, length, PTL_ACK_REQ, p->id[1], pt, bits, offset, NULL, call,
                             PTL_BXOR, PTL_UINT8_T));
                break;
            case 3:
                OK(PtlFetchAtomic(get, 0, md, 0, length, p->id[1], pt, bits, offset, NULL, call,
                                  PTL_SUM, PTL_UINT8_T));
                break;
            default:
                OK(PtlSwap(get, 0, md, 0, 8, p->id[1], pt, bits, offset, NULL, call, &operand,
                           PTL_CSWAP, PTL_UINT64_T));
            }
            ptl_event_t event;
            unsigned which;
            OK(PtlEQPoll(&p->mdeq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
            CHECK(event.ni_fail_type != PTL_NI_OK);
        }
        struct pw_rma_key *key = key_of(e.rma, 1);
        struct int_int one = {1, 2}, was = {0, 0};
        DONE(pw_rma_fetch_op(key, &one, &was, 8, PW_RMA_REPLACE, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        CHECK_BYTES(&was, sizeof(was), 0xa5);
        pw_rma_key_close(key);
        port_release(md);
        port_release(get);
    }
    BARRIER();
    if (rank == 1) {
        CHECK_BYTES(memory, 8, 0xa5);
        CHECK_BYTES(memory + 16, LENGTH - 16, 0xa5);
        region_end(region);
    }
    ends_close(&e);
}

/* Memory of the region that is not there, and regions without handlers. */
PTEST_MATCHING(refused, 2)
{
    struct ends e;
    struct pw_rma_region *regions[2] = {NULL, NULL};
    struct pw_rma_key *key;
    const struct int_int one = {1, 2};
    ends_open(&e, kind, rank, size);
    REFUSED(pw_rma_register(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_PAIRS, &regions[0]),
            EINVAL);
    if (rank == 1) {
        regions[0] = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
        regions[1] = region_of(e.rma, (void *)4096, 4096, ALL);
        key_show(regions[0]);
    }
    BARRIER();
    if (rank == 0) {
        key = key_of(e.rma, 1);
        CHECK_EQ(pw_rma_path(key, PW_RMA_MINLOC, PW_RMA_INT_INT), PW_RMA_NONE);
        REFUSED(pw_rma_accumulate(key, &one, 1, 0, PW_RMA_MINLOC, PW_RMA_INT_INT, NULL),
                EOPNOTSUPP);
        pw_rma_key_close(key);
    }
    BARRIER();
    if (rank == 1) {
        key_show(regions[1]);
    }
    BARRIER();
    if (rank == 0) {
        key = key_of(e.rma, 1);
        DONE(pw_rma_accumulate(key, &one, 1, 0, PW_RMA_MINLOC, PW_RMA_INT_INT, NULL));
        int rc = pw_rma_flush(pw_rma_key_peer(key));
        CHECK(rc == -EFAULT || rc == -EIO);
        for (int type = 0; type < 32; type++) {
            CHECK(type >= PW_RMA_FLOAT_INT ||
                  pw_rma_path(key, PW_RMA_MINLOC, (enum pw_rma_type)type) == PW_RMA_NONE);
        }
        CHECK_EQ(pw_rma_path(key, PW_RMA_SUM, PW_RMA_INT_INT), PW_RMA_NONE);
        CHECK_EQ(pw_rma_path(key, PW_RMA_COMPARE_SWAP, PW_RMA_INT_INT), PW_RMA_NONE);
        pw_rma_key_close(key);
    }
    BARRIER();
    if (rank == 1) {
        region_end(regions[0]);
        region_end(regions[1]);
    }
    ends_close(&e);
}
