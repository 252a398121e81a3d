/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on pairs, which handlers at the target do: against plain code; by several
 * processes at once; in order with others; and messages that no origin of ours would send. */
#include "elements.h"

#include <math.h>
#include <stdlib.h>

enum { ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS };

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

/* The rows are in the order of the types. */
static const struct row *row_of(enum pw_rma_type type)
{
    const struct row *row = &rows[type - PW_RMA_FLOAT_INT];
    CHECK_EQ(row->type, type);
    CHECK_EQ(row->size, pw_rma_type_size(type));
    return row;
}

static void row_fill(unsigned char *to, enum pw_rma_type type, uint64_t *state)
{
    row_of(type)->fill(to, state);
}

static void row_run(enum pw_rma_op op, enum pw_rma_type type, unsigned char *target,
                    const unsigned char *from, size_t count)
{
    row_of(type)->run(op, target, from, count);
}

static struct elements how = {row_fill, row_run, PW_RMA_HANDLER};

static void each(unsigned kind, int rank, int size, int target)
{
    struct ends e;
    uint64_t state = 3;
    const char *path = getenv("PINWHEEL_RMA_PATH");
    if (path != NULL && strcmp(path, "two-sided") == 0) {
        how.path = PW_RMA_TWO_SIDED;
    }
    ends_serve(&e, kind, rank, size, target, memory, LENGTH, ALL);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        for (int i = 0; i < ROWS; i++) {
            for (int turn = 0; turn < 16; turn++) {
                elements_try(&how, key, ops[turn % 4], rows[i].type, turn / 4 % 2 == 1,
                             turn < 8 ? 0 : (unsigned)(splitmix(&state) % rows[i].size), &state);
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

/* Ranks swap rows of pairs at one place: each pair that is put in comes out once. And they look for
 * a maximum. */
PTEST_MATCHING(together, 4)
{
    enum { EACH = 200, RANKS = 4, ROW = 200 };
    static struct long_int places[ROW + 1], mine[ROW], was[ROW], best[EACH];
    static int64_t sums[ROW];
    struct ends e;
    if (rank == 0) {
        places[ROW].value = INT64_MIN;
    }
    ends_serve(&e, kind, rank, size, 0, places, sizeof(places), ALL);
    struct pw_rma_key *key = e.key;
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
    }
    ends_served(&e);
}

/* Operations of both ways on the same memory are done in the order of the calls. */
PTEST_MATCHING(order, 2)
{
    enum { STEPS = 500 };
    static struct int_int pairs[STEPS], was[STEPS];
    static uint32_t words[STEPS];
    struct ends e;
    ends_serve(&e, kind, rank, size, 1, memory, LENGTH, ALL);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
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
    }
    ends_served(&e);
}

/* Messages to the handlers' entry by who has its match bits: none but those that make sense changes
 * anything, each is answered, and the next origin is served. */
PTEST_MATCHING(hostile, 2)
{
    enum { MESSAGES = 2000, REGION = LENGTH / 2, KEY_PT = 40 };
    struct ends e;
    struct port *p = &e.port;
    uint64_t state = 99;
    if (rank == 1) {
        memset(memory, 0xa5, LENGTH);
    }
    ends_serve(&e, kind, rank, size, 1, memory, REGION, ALL);
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
        struct pw_rma_key *key = e.key;
        struct int_int one = {1, 2}, was = {0, 0};
        DONE(pw_rma_fetch_op(key, &one, &was, 8, PW_RMA_REPLACE, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        CHECK_BYTES(&was, sizeof(was), 0xa5);
        port_release(md);
        port_release(get);
    }
    BARRIER();
    if (rank == 1) {
        CHECK_BYTES(memory, 8, 0xa5);
        CHECK_BYTES(memory + 16, LENGTH - 16, 0xa5);
    }
    ends_served(&e);
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
