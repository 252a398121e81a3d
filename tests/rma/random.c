/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random operations against a sequential model. Each rank has a slice of its own in the region of
 * each rank, itself included, and works on all of them at once: it knows at any time what they hold
 * when all of its operations are over. Atomic operations need no flush between them, whatever their
 * types; puts and gets have one before and behind, where they touch what others do.
 * TEST_RMA_STEPS says how many there are; with TEST_RMA_SHARED peers map the regions, but for some
 * keys with `mixed`.
 */
#include "region.h"

#include "combine.h"

#include <stdlib.h>

enum { SLICE = 4096, RANKS = 3, POOL = 1 << 18, LONGEST = 1500, PENDING = 200 };

struct pair {
    int32_t value, index;
};

/* What an operation brings, and what it should bring. */
struct result {
    size_t at, length;
};

static _Alignas(64) unsigned char memory[RANKS * SLICE], model[RANKS][SLICE], from[POOL], to[POOL],
    expected[POOL];

struct run {
    struct ends e;
    struct pw_rma_key *keys[RANKS];
    uint64_t state;
    int rank;
    size_t used; /* bytes of the pools */
    int pending;
    bool atomics[RANKS], moves[RANKS]; /* since the last flush */
    struct pw_rma_request requests[PENDING];
    bool asked[PENDING];
};

/* Ends all operations, and looks at what they have brought. */
static void settle(struct run *r)
{
    for (int i = 0; i < r->pending; i++) {
        if (r->asked[i]) {
            DONE(pw_rma_wait(&r->requests[i]));
        }
    }
    if (splitmix(&r->state) % 2 == 0) {
        DONE(pw_rma_flush_all(r->e.rma));
    } else {
        for (int t = 0; t < RANKS; t++) {
            DONE(pw_rma_flush(pw_rma_key_peer(r->keys[t])));
        }
    }
    CHECK_EQ(memcmp(to, expected, r->used), 0);
    r->used = 0;
    r->pending = 0;
    memset(r->atomics, 0, sizeof(r->atomics));
    memset(r->moves, 0, sizeof(r->moves));
}

static struct pw_rma_request *request_of(struct run *r)
{
    r->asked[r->pending] = splitmix(&r->state) % 3 == 0;
    r->pending++;
    return r->asked[r->pending - 1] ? &r->requests[r->pending - 1] : NULL;
}

/* Takes a piece of the pools, with random bytes to send. */
static size_t piece(struct run *r, size_t length)
{
    size_t at = (r->used + 31) / 32 * 32;
    for (size_t i = 0; i < length; i++) {
        from[at + i] = (unsigned char)splitmix(&r->state);
    }
    memset(to + r->used, 0, at + length - r->used);
    memset(expected + r->used, 0, at + length - r->used);
    r->used = at + length;
    return at;
}

static void move(struct run *r, int target, size_t offset, size_t length, bool put)
{
    if (r->atomics[target] || r->moves[target]) {
        settle(r);
    }
    size_t at = piece(r, length);
    uint64_t there = (uint64_t)r->rank * SLICE + offset;
    if (put) {
        DONE(pw_rma_put(r->keys[target], from + at, length, there, request_of(r)));
        memcpy(model[target] + offset, from + at, length);
    } else {
        DONE(pw_rma_get(r->keys[target], to + at, length, there, request_of(r)));
        memcpy(expected + at, model[target] + offset, length);
    }
    r->moves[target] = true;
}

static void model_pairs(struct pair *t, const struct pair *d, size_t count, enum pw_rma_op op)
{
    for (size_t i = 0; i < count; i++) {
        bool better = op == PW_RMA_MINLOC ? d[i].value < t[i].value : d[i].value > t[i].value;
        if (op == PW_RMA_REPLACE || better ||
            (d[i].value == t[i].value && d[i].index < t[i].index)) {
            t[i] = d[i];
        }
    }
}

static void atomic(struct run *r, int target, size_t offset, size_t length)
{
    static const enum pw_rma_type types[] = {PW_RMA_INT8,  PW_RMA_UINT16, PW_RMA_INT32,
                                             PW_RMA_INT64, PW_RMA_UINT64, PW_RMA_INT_INT};
    enum pw_rma_type type = types[splitmix(&r->state) % 6];
    bool pairs = type == PW_RMA_INT_INT, fetches = splitmix(&r->state) % 2 == 0;
    size_t size = pw_rma_type_size(type), count = length / size;
    enum pw_rma_op op = (enum pw_rma_op)(splitmix(&r->state) % (PW_RMA_REPLACE + 1));
    if (pairs) {
        op = splitmix(&r->state) % 3 == 0 ? PW_RMA_REPLACE
                                          : (enum pw_rma_op)(PW_RMA_MINLOC + op % 2);
    }
    offset = !pairs && splitmix(&r->state) % 4 == 0 ? offset : offset / 8 * 8;
    if (r->moves[target]) {
        settle(r);
    }
    size_t at = piece(r, count * size);
    uint64_t there = (uint64_t)r->rank * SLICE + offset;
    if (fetches) {
        memcpy(expected + at, model[target] + offset, count * size);
        DONE(pw_rma_get_accumulate(r->keys[target], from + at, to + at, count, there, op, type,
                                   request_of(r)));
    } else {
        DONE(pw_rma_accumulate(r->keys[target], from + at, count, there, op, type, request_of(r)));
    }
    void *mine = model[target] + offset;
    if (pairs) {
        model_pairs(mine, (const struct pair *)(from + at), count, op);
    } else {
        combine(op == PW_RMA_REPLACE ? PTL_SWAP : (ptl_op_t)op, (ptl_datatype_t)type, mine,
                from + at, NULL, count);
    }
    r->atomics[target] = true;
}

static void step(struct run *r)
{
    int target = (int)(splitmix(&r->state) % RANKS);
    size_t length =
        splitmix(&r->state) % 4 == 0 ? splitmix(&r->state) % LONGEST : splitmix(&r->state) % 40;
    size_t offset = splitmix(&r->state) % (SLICE - length);
    if (r->used + 2 * LONGEST > POOL || r->pending == PENDING) {
        settle(r);
    }
    switch (splitmix(&r->state) % 8) {
    case 0:
        move(r, target, offset, length, true);
        break;
    case 1:
        move(r, target, offset, length, false);
        break;
    default:
        atomic(r, target, offset, length);
    }
}

PTEST_LIMIT(operations, RANKS, 1200)
{
    static struct run r;
    const char *text = getenv("TEST_RMA_STEPS");
    long steps = text != NULL ? atol(text) : 4000;
    r.state = 1000 + (uint64_t)rank;
    r.rank = rank;
    ends_open(&r.e, KIND_ML, rank, size);
    const char *shared = getenv("TEST_RMA_SHARED");
    unsigned access = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS;
    void *start;
    struct pw_rma_region *region = shared != NULL
                                       ? region_shared(r.e.rma, sizeof(memory), access, &start)
                                       : region_of(r.e.rma, memory, sizeof(memory), access);
    key_show(region);
    BARRIER();
    for (int t = 0; t < RANKS; t++) {
        r.keys[t] = key_of(r.e.rma, t);
        if (shared != NULL && strcmp(shared, "mixed") == 0 && (t + rank) % 2 == 0) {
            DONE(pw_rma_key_limit(r.keys[t], PW_RMA_NATIVE));
        }
        CHECK_EQ(pw_rma_path(r.keys[t], PW_RMA_PUT, PW_RMA_INT8) == PW_RMA_DIRECT,
                 shared != NULL && (strcmp(shared, "mixed") != 0 || (t + rank) % 2 != 0));
    }
    for (long i = 0; i < steps; i++) {
        step(&r);
    }
    settle(&r);
    for (int t = 0; t < RANKS; t++) {
        DONE(pw_rma_get(r.keys[t], from, SLICE, (uint64_t)rank * SLICE, NULL));
        DONE(pw_rma_flush_all(r.e.rma));
        CHECK_EQ(memcmp(from, model[t], SLICE), 0);
    }
    BARRIER();
    for (int t = 0; t < RANKS; t++) {
        pw_rma_key_close(r.keys[t]);
    }
    region_end(region);
    ends_close(&r.e);
}
