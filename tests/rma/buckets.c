/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that are mapped in buckets: more than may be mapped at once, by several threads, so that
 * buckets give way while others are copied from; what the user was handed stays; where hits are
 * rare nothing is mapped but to find out.
 */
#include "region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BUCKET_KIB
#define BUCKET_KIB 16
#endif
enum { BUCKET = BUCKET_KIB * 1024, BUCKETS = 6, LENGTH = 64 * BUCKET + 1000, THREADS = 4 };
enum { ROUNDS = BUCKET_KIB < 2048 ? 3000 : 300 };
enum { BOTH = PW_RMA_READ | PW_RMA_WRITE };

static unsigned char model[LENGTH];

struct scene {
    struct ends e;
    struct pw_rma_region *region;
    unsigned char *memory;
    struct pw_rma_key *key;
};

static void scene_open(struct scene *s, int rank, int size, const char *hits)
{
    char text[32];
    snprintf(text, sizeof(text), "%d", BUCKET * BUCKETS);
    CHECK_EQ(setenv("PINWHEEL_RMA_MAP", "0", 1), 0);
    CHECK_EQ(setenv("PINWHEEL_RMA_LAZY", text, 1), 0);
    snprintf(text, sizeof(text), "%d", BUCKET);
    CHECK_EQ(setenv("PINWHEEL_RMA_BUCKET", text, 1), 0);
    CHECK_EQ(setenv("PINWHEEL_RMA_LAZY_HITS", hits, 1), 0);
    ends_open(&s->e, KIND_ML, rank, size);
    s->region = NULL;
    if (rank == 1) {
        s->region = region_shared(s->e.rma, LENGTH, BOTH, &s->memory);
        key_show(s->region);
    }
    BARRIER();
    s->key = key_of(s->e.rma, 1);
}

static void scene_close(struct scene *s)
{
    pw_rma_key_close(s->key);
    BARRIER();
    if (s->region != NULL) {
        region_end(s->region);
    }
    ends_close(&s->e);
}

static struct pw_rma_statistics statistics_of(const struct scene *s)
{
    struct pw_rma_statistics is;
    pw_rma_statistics(s->e.rma, &is);
    return is;
}

/* Random operations on all of the region, against a copy of it. */
PTEST_OWN(all_over, 2, "sets variables")
{
    static unsigned char from[3 * BUCKET], to[3 * BUCKET];
    struct scene s;
    uint64_t state = 3;
    scene_open(&s, rank, size, "0");
    for (int i = 0; i < ROUNDS && rank == 0; i++) {
        size_t n = splitmix(&state) % (i % 8 == 0 ? sizeof(from) : 64);
        size_t at = splitmix(&state) % (LENGTH - n - 8);
        uint64_t one = splitmix(&state), old, was;
        size_t word = at / 8 * 8;
        ptest_fill(from, n, (unsigned)i);
        DONE(pw_rma_put(s.key, from, n, at, NULL));
        memcpy(model + at, from, n);
        memcpy(&was, model + word, 8);
        DONE(pw_rma_fetch_op(s.key, &one, &old, word, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        CHECK_EQ(old, was);
        was += one;
        memcpy(model + word, &was, 8);
        at = splitmix(&state) % (LENGTH - n);
        DONE(pw_rma_get(s.key, to, n, at, NULL));
        CHECK_EQ(memcmp(to, model + at, n), 0);
    }
    if (rank == 0) {
        struct pw_rma_statistics is = statistics_of(&s);
        CHECK_EQ(pw_rma_path(s.key, PW_RMA_PUT, PW_RMA_UINT8), PW_RMA_DIRECT);
        CHECK_EQ(is.messages, 0);
        CHECK(is.bucket_evictions > ROUNDS / 30 && is.bucket_hits > 0);
        CHECK(is.mapped <= BUCKET * BUCKETS);
        DONE(pw_rma_put(s.key, model, LENGTH, 0, NULL)); /* longer than all buckets: a message */
        DONE(pw_rma_flush(pw_rma_key_peer(s.key)));
        CHECK(statistics_of(&s).messages > 0);
        REFUSED(pw_rma_put(s.key, model, LENGTH, 1, NULL), EINVAL);
    }
    BARRIER();
    scene_close(&s);
}

/* ---- Threads ---- */

struct worker {
    struct scene *s;
    int number;
};

/* Copies to and from a slice of its own, which is in all buckets. */
static void *work(void *owner)
{
    enum { SLICE = BUCKET / THREADS };
    const struct worker *w = owner;
    unsigned char from[SLICE], to[SLICE];
    uint64_t state = 50 + (uint64_t)w->number;
    static unsigned seeds[THREADS][64];
    for (int i = 0; i < ROUNDS; i++) {
        unsigned b = (unsigned)(splitmix(&state) % 64);
        uint64_t at = (uint64_t)b * BUCKET + (uint64_t)w->number * SLICE;
        if (seeds[w->number][b] != 0) {
            DONE(pw_rma_get(w->s->key, to, SLICE, at, NULL));
            CHECK_FILL(to, SLICE, seeds[w->number][b]);
        }
        seeds[w->number][b] = (unsigned)i + 1;
        ptest_fill(from, SLICE, (unsigned)i + 1);
        DONE(pw_rma_put(w->s->key, from, SLICE, at, NULL));
    }
    return NULL;
}

PTEST_OWN(threads, 2, "sets variables")
{
    struct scene s;
    scene_open(&s, rank, size, "0");
    if (rank == 0) {
        pthread_t threads[THREADS];
        struct worker workers[THREADS];
        CHECK_EQ(pw_rma_path(s.key, PW_RMA_PUT, PW_RMA_UINT8), PW_RMA_DIRECT);
        for (int i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){&s, i};
            CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        CHECK(statistics_of(&s).bucket_evictions > ROUNDS / 3);
        CHECK_EQ(statistics_of(&s).messages, 0);
    }
    BARRIER();
    scene_close(&s);
}

/* What the user has been handed is mapped whole, and stays so. */
PTEST_OWN(handed, 2, "sets variables")
{
    struct scene s;
    scene_open(&s, rank, size, "0");
    if (rank == 0) {
        void *at, *again;
        DONE(pw_rma_map(s.key, &at));
        unsigned char *all = at;
        for (unsigned i = 0; i < 64 * 8; i++) {
            unsigned char byte = (unsigned char)(i * 7);
            DONE(pw_rma_put(s.key, &byte, 1, (uint64_t)i % 64 * BUCKET + i, NULL));
            CHECK_EQ(all[i % 64 * BUCKET + i], byte);
        }
        CHECK(statistics_of(&s).bucket_evictions > 0);
        for (size_t i = 0; i < LENGTH; i += 4096) {
            all[i] = 1;
        }
        DONE(pw_rma_map(s.key, &again));
        CHECK(again == at);
    }
    BARRIER();
    CHECK(rank == 0 || s.memory[63 * BUCKET] == 1);
    BARRIER();
    scene_close(&s);
}

/* Bytes here and there in a region of many buckets: hits are rare. Then all in one bucket. */
PTEST_OWN(rare, 2, "sets variables")
{
    struct scene s;
    uint64_t state = 9;
    scene_open(&s, rank, size, "80");
    if (rank == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t at = splitmix(&state) % 64 * BUCKET + (uint64_t)i;
            unsigned char byte = (unsigned char)i, back = (unsigned char)~i;
            DONE(pw_rma_put(s.key, &byte, 1, at, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(s.key)));
            DONE(pw_rma_get(s.key, &back, 1, at, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(s.key)));
            CHECK_EQ(back, byte);
        }
        struct pw_rma_statistics before = statistics_of(&s), after;
        CHECK(before.messages > ROUNDS);
        CHECK(before.bucket_maps < ROUNDS / 2);
        uint64_t word = 0;
        for (int i = 0; i < ROUNDS; i++) {
            DONE(pw_rma_get(s.key, &word, 8, 8 * (uint64_t)(i % 100), NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(s.key)));
        }
        after = statistics_of(&s);
        CHECK(after.messages - before.messages < 50);
        CHECK(after.bucket_hits - before.bucket_hits >= ROUNDS - 50);
    }
    BARRIER();
    scene_close(&s);
}

/* Keys come and go with buckets mapped; two of one region; the region goes. */
PTEST_OWN(keys, 2, "sets variables")
{
    struct scene s;
    scene_open(&s, rank, size, "0");
    uint64_t word = 5;
    if (rank == 0) {
        for (int i = 0; i < 50; i++) {
            struct pw_rma_key *more = key_of(s.e.rma, 1);
            uint64_t back = 0;
            word = (uint64_t)i;
            DONE(pw_rma_put(more, &word, 8, (uint64_t)i * BUCKET, NULL));
            DONE(pw_rma_get(s.key, &back, 8, (uint64_t)i * BUCKET, NULL));
            CHECK_EQ(back, word);
            pw_rma_key_close(more);
        }
    }
    BARRIER();
    if (rank == 1) {
        region_end(s.region);
        s.region = NULL;
    }
    BARRIER();
    DONE(pw_rma_put(s.key, &word, 8, 0, NULL));
    REFUSED(pw_rma_flush(pw_rma_key_peer(s.key)), ESTALE);
    scene_close(&s);
}
