/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others see of stores to mapped memory, and when: litmus tests, each on many pairs of words.
 * Ranks 0 and 1 own x and y.
 *
 *      store buffering      0: x = 1; flush; read y         1: y = 1; flush; read x     not 0 and 0
 *      message passing      0: x = 1; flush; y = 1          1: read y; flush; read x    not 1 and 0
 *      independent reads    0: x = 1     1: y = 1           2: read x; flush; read y    not 1 and
 * 0, 3: read y; flush; read x    in both
 *
 * A store is a put, an accumulate or a fetch_op; a read is a get, a fetch_op, or a load through
 * pw_rma_map(). Each rank goes direct, or by messages. TEST_RMA_LITMUS says how many pairs.
 */
#include "region.h"

#include <stdlib.h>

enum { RANKS = 4, BATCH = 256, LINE = 64, SPINS = 3000, BOTH = PW_RMA_READ | PW_RMA_WRITE };
enum store { PUT, ACCUMULATE, FETCH };
enum load { GET, FETCH_READ, LOAD };
enum shape { BUFFERING, PASSING, INDEPENDENT, SHAPES };

/* A rank's memory: the words that others store to, and what it tells them. */
struct shared {
    struct {
        _Alignas(LINE) uint64_t is;
    } words[BATCH];
    uint64_t first[BATCH], second[BATCH]; /* what it has read */
    _Alignas(LINE) uint64_t at;           /* how far it is */
};

struct scene {
    struct ends e;
    struct pw_rma_region *region;
    struct shared *all[RANKS];
    struct pw_rma_key *direct[RANKS], *native[RANKS];
    int rank;
    uint64_t state;
    /* of this trial */
    enum store store;
    enum load load;
    bool by_message;
};

static struct pw_rma_key *key_for(struct scene *s, int owner)
{
    return s->by_message ? s->native[owner] : s->direct[owner];
}

/* DONE() would be a fence. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0) {                                                                         \
            FAIL("%s", #call);                                                                     \
        }                                                                                          \
    } while (0)

static void store_one(struct scene *s, int owner, int i)
{
    const uint64_t one = 1;
    uint64_t old;
    struct pw_rma_key *key = key_for(s, owner);
    uint64_t at = offsetof(struct shared, words) + LINE * (uint64_t)i;
    if (s->store == PUT) {
        MUST(pw_rma_put(key, &one, 8, at, NULL));
    } else if (s->store == ACCUMULATE) {
        MUST(pw_rma_accumulate(key, &one, 1, at, PW_RMA_REPLACE, PW_RMA_UINT64, NULL));
    } else {
        MUST(pw_rma_fetch_op(key, &one, &old, at, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        MUST(pw_rma_flush(pw_rma_key_peer(key)));
    }
}

static void flush(struct scene *s, int owner)
{
    MUST(pw_rma_flush(pw_rma_key_peer(key_for(s, owner))));
}

static uint64_t read_one(struct scene *s, int owner, int i)
{
    uint64_t value = 2;
    struct pw_rma_key *key = key_for(s, owner);
    uint64_t at = offsetof(struct shared, words) + LINE * (uint64_t)i;
    if (s->load == LOAD) {
        return __atomic_load_n(&s->all[owner]->words[i].is, __ATOMIC_RELAXED);
    }
    if (s->load == GET) {
        MUST(pw_rma_get(key, &value, 8, at, NULL));
    } else {
        MUST(pw_rma_fetch_op(key, NULL, &value, at, PW_RMA_NO_OP, PW_RMA_UINT64, NULL));
    }
    flush(s, owner);
    return value;
}

/* Waits a little for the others to come as far: what follows shall be at the same time. All have
 * both words in their caches by then, so that a store waits for the others' and a read does not. */
static void together(struct scene *s, int i, int ranks)
{
    for (int r = 0; r < 2; r++) {
        __atomic_load_n(&s->all[r]->words[i].is, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->all[s->rank]->at, (uint64_t)i, __ATOMIC_RELAXED);
    bool there = false;
    for (int n = 0; n < SPINS && !there; n++) {
        there = true;
        for (int r = 0; r < ranks; r++) {
            there &= __atomic_load_n(&s->all[r]->at, __ATOMIC_RELAXED) >= (uint64_t)i;
        }
    }
    for (uint64_t n = splitmix(&s->state) % 8; n > 0; n--) {
        __asm__ volatile("" ::: "memory");
    }
}

/* What this rank does with one pair. */
static void act(struct scene *s, enum shape shape, int i)
{
    struct shared *mine = s->all[s->rank];
    int other = 1 - s->rank % 2;
    bool reads = shape == BUFFERING || (shape == PASSING && s->rank == 1) || s->rank >= 2;
    switch (shape) {
    case BUFFERING:
        store_one(s, s->rank, i);
        flush(s, s->rank);
        mine->first[i] = read_one(s, other, i);
        return;
    case PASSING:
        if (s->rank == 0) {
            store_one(s, 0, i);
            flush(s, 0);
            store_one(s, 1, i);
        }
        break;
    default:
        if (s->rank < 2) {
            store_one(s, s->rank, i);
        }
    }
    if (reads) {
        mine->first[i] = read_one(s, s->rank == 2 ? 0 : 1, i);
        flush(s, s->rank == 2 ? 0 : 1);
        mine->second[i] = read_one(s, s->rank == 2 ? 1 : 0, i);
    }
}

static void judge(const struct scene *s, enum shape shape, int i)
{
    struct shared *const *all = s->all;
    bool wrong = shape == BUFFERING ? all[0]->first[i] == 0 && all[1]->first[i] == 0
                 : shape == PASSING ? all[1]->first[i] == 1 && all[1]->second[i] == 0
                                    : all[2]->first[i] == 1 && all[2]->second[i] == 0 &&
                                          all[3]->first[i] == 1 && all[3]->second[i] == 0;
    if (wrong) {
        FAIL("shape %d, store %d, read %d: pair %d was seen in no order", (int)shape, (int)s->store,
             (int)s->load, i);
    }
}

static void batch(struct scene *s, enum shape shape)
{
    int ranks = shape == INDEPENDENT ? 4 : 2;
    memset(s->all[s->rank], 0, sizeof(struct shared));
    BARRIER();
    for (int i = 0; i < BATCH && s->rank < ranks; i++) {
        together(s, i, ranks);
        act(s, shape, i);
    }
    DONE(pw_rma_flush_all(s->e.rma));
    BARRIER();
    for (int i = 0; i < BATCH && s->rank == 0; i++) {
        judge(s, shape, i);
    }
    BARRIER();
}

static void scene_open(struct scene *s, int rank, int size)
{
    void *at;
    s->rank = rank;
    s->state = 77 + (uint64_t)rank;
    ends_open(&s->e, KIND_ML, rank, size);
    s->region = region_shared(s->e.rma, sizeof(struct shared), BOTH, &at);
    key_show(s->region);
    BARRIER();
    for (int r = 0; r < RANKS; r++) {
        s->direct[r] = key_of(s->e.rma, r);
        s->native[r] = key_of(s->e.rma, r);
        DONE(pw_rma_key_limit(s->native[r], PW_RMA_NATIVE));
        DONE(pw_rma_map(s->direct[r], &at));
        s->all[r] = at;
    }
    BARRIER();
}

static void scene_close(struct scene *s)
{
    BARRIER();
    for (int r = 0; r < RANKS; r++) {
        pw_rma_key_close(s->direct[r]);
        pw_rma_key_close(s->native[r]);
    }
    BARRIER();
    region_end(s->region);
    ends_close(&s->e);
}

/* `mixed`: which ranks go by messages, as bits. */
static void try_all(struct scene *s, enum shape shape, long pairs, unsigned mixed)
{
    s->by_message = (mixed >> s->rank & 1) != 0;
    for (int means = 0; means < 9; means++) {
        s->store = (enum store)(means % 3);
        s->load = (enum load)(means / 3);
        for (long done = 0; done < pairs; done += BATCH) {
            batch(s, shape);
        }
    }
}

PTEST_LIMIT(seen, RANKS, 3000)
{
    static struct scene s;
    const char *text = getenv("TEST_RMA_LITMUS");
    long pairs = text != NULL ? atol(text) : 2 * BATCH;
    scene_open(&s, rank, size);
    for (int shape = 0; shape < SHAPES; shape++) {
        try_all(&s, (enum shape)shape, pairs * 16, 0);
        try_all(&s, (enum shape)shape, pairs, 1);
        try_all(&s, (enum shape)shape, pairs, 2 + 4);
        try_all(&s, (enum shape)shape, pairs, 15);
    }
    scene_close(&s);
}
