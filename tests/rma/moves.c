/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of all sizes, by flush and by request; many at once; by several threads. */
#include "region.h"

#include <pthread.h>
#include <stdlib.h>

enum { GUARD = 64, LONGEST = 4 << 20, SLACK = 64, REGION = LONGEST + SLACK };

static const size_t sizes[] = {0,    1,    7,    8,    63,    64,      1000,   1024,
                               1025, 4095, 4096, 4097, 65537, 1048579, 4194304};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char memory[GUARD + REGION + GUARD], from[REGION], to[GUARD + REGION + GUARD];

static int finish(struct pw_rma_key *key, struct pw_rma_request *request, int how)
{
    bool over = false;
    int rc = 0;
    switch (how) {
    case 0:
        return pw_rma_flush(pw_rma_key_peer(key));
    case 1:
        return pw_rma_wait(request);
    default:
        while (!over) {
            rc = pw_rma_test(request, &over);
        }
        return rc;
    }
}

/* Puts a pattern, gets it again, and looks at both ends that there was nothing beside it. */
static void there_and_back(struct pw_rma_key *key, size_t length, unsigned n)
{
    struct pw_rma_request request;
    int how = (int)n % 3;
    struct pw_rma_request *r = how == 0 ? NULL : &request;
    uint64_t offset = n * 7 % SLACK;
    unsigned char *mine = from + n * 5 % SLACK, *back = to + GUARD + n * 3 % SLACK;
    ptest_fill(mine, length, n);
    memset(back - GUARD, 0x5a, length + 2 * GUARD);
    DONE(pw_rma_put(key, mine, length, offset, r));
    DONE(finish(key, &request, how));
    ptest_fill(mine, length, n + 1);
    DONE(pw_rma_get(key, back, length, offset, r));
    DONE(finish(key, &request, how));
    CHECK_FILL(back, length, n);
    CHECK_BYTES(back - GUARD, GUARD, 0x5a);
    CHECK_BYTES(back + length, GUARD, 0x5a);
}

static void all_sizes(unsigned kind, int rank, int size, int target)
{
    struct ends e;
    if (rank == target) {
        memset(memory, 0xa5, sizeof(memory));
    }
    ends_serve(&e, kind, rank, size, target, memory + GUARD, REGION, PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        CHECK_EQ(pw_rma_key_length(key), REGION);
        CHECK_EQ(pw_rma_key_access(key), PW_RMA_READ | PW_RMA_WRITE);
        for (unsigned n = 0; n < 3 * SIZES; n++) {
            there_and_back(key, sizes[n / 3], n);
        }
        DONE(pw_rma_flush_all(e.rma));
    }
    BARRIER();
    if (rank == target) {
        CHECK_BYTES(memory, GUARD, 0xa5);
        CHECK_BYTES(memory + GUARD + REGION, GUARD, 0xa5);
    }
    ends_served(&e);
}

PTEST_MATCHING(to_another, 2)
{
    all_sizes(kind, rank, size, 1);
}

PTEST_MATCHING(to_oneself, 1)
{
    all_sizes(kind, rank, size, 0);
}

/* A flush of local buffers lets them be used again; it need not wait for small puts. */
PTEST_MATCHING(local, 2)
{
    enum { WORDS = 300, LONG = 100000 };
    struct ends e;
    uint64_t *words = (uint64_t *)memory;
    ends_serve(&e, kind, rank, size, 1, memory, sizeof(memory), PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        uint64_t word;
        for (uint64_t i = 0; i < WORDS; i++) {
            word = i;
            DONE(pw_rma_put(key, &word, 8, 8 * i, NULL));
            pw_rma_flush_local(pw_rma_key_peer(key));
        }
        for (unsigned i = 0; i < 20; i++) {
            ptest_fill(from, LONG, i);
            DONE(pw_rma_put(key, from, LONG, 8 * WORDS + i * LONG, NULL));
            pw_rma_flush_local_all(e.rma);
        }
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
    }
    BARRIER();
    if (rank == 1) {
        for (uint64_t i = 0; i < WORDS; i++) {
            CHECK_EQ(words[i], i);
        }
        for (unsigned i = 0; i < 20; i++) {
            CHECK_FILL(memory + 8 * WORDS + i * LONG, LONG, i);
        }
    }
    ends_served(&e);
}

/* More operations than may be under way, and requests that nobody asks for meanwhile. */
PTEST_MATCHING(many, 2)
{
    enum { MANY = 60000 };
    static struct pw_rma_request requests[MANY];
    static uint64_t values[MANY], back[MANY];
    struct ends e;
    ends_serve(&e, kind, rank, size, 1, values, sizeof(values), PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        for (uint64_t i = 0; i < MANY; i++) {
            values[i] = i * i;
            DONE(pw_rma_put(key, &values[i], 8, 8 * i, NULL));
        }
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        for (uint64_t i = 0; i < MANY; i++) {
            DONE(pw_rma_get(key, &back[i], 8, 8 * i, &requests[i]));
        }
        for (uint64_t i = 0; i < MANY; i++) {
            DONE(pw_rma_wait(&requests[i]));
            DONE(pw_rma_wait(&requests[i]));
            CHECK_EQ(back[i], i * i);
        }
    }
    ends_served(&e);
}

/* ---- Threads ---- */

enum { THREADS = 4, STEPS = 300, ROOM = 4096 };

struct worker {
    struct pw_rma *rma;
    int number;
    unsigned char mine[ROOM], back[ROOM];
};

/* Works on a part of its own, with a key of its own. */
static void *work(void *argument)
{
    struct worker *w = argument;
    struct pw_rma_key *key = key_of(w->rma, 1);
    uint64_t state = (uint64_t)w->number;
    for (unsigned i = 0; i < STEPS; i++) {
        struct pw_rma_request request;
        size_t length = splitmix(&state) % ROOM;
        uint64_t offset = (uint64_t)w->number * ROOM;
        ptest_fill(w->mine, length, i);
        DONE(pw_rma_put(key, w->mine, length, offset, i % 2 == 0 ? &request : NULL));
        DONE(i % 2 == 0 ? pw_rma_wait(&request) : pw_rma_flush(pw_rma_key_peer(key)));
        DONE(pw_rma_get(key, w->back, length, offset, i % 3 == 0 ? &request : NULL));
        DONE(i % 3 == 0 ? pw_rma_wait(&request) : pw_rma_flush_all(w->rma));
        CHECK_FILL(w->back, length, i);
    }
    pw_rma_key_close(key);
    return NULL;
}

PTEST(threads, 2)
{
    struct ends e;
    struct pw_rma_region *region = NULL;
    ends_open(&e, KIND_ML, rank, size);
    if (rank == 1) {
        region = region_of(e.rma, memory, THREADS * ROOM, PW_RMA_READ | PW_RMA_WRITE);
        key_show(region);
    }
    BARRIER();
    if (rank == 0) {
        pthread_t threads[THREADS];
        struct worker *workers = calloc(THREADS, sizeof(*workers));
        CHECK(workers != NULL);
        for (int i = 0; i < THREADS; i++) {
            workers[i].rma = e.rma;
            workers[i].number = i;
            CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        free(workers);
    }
    BARRIER();
    if (rank == 1) {
        region_end(region);
    }
    ends_close(&e);
}

/* Two interfaces: regions are spread over them, and each key knows its own. */
PTEST(two_interfaces, 2)
{
    enum { REGIONS = 6 };
    struct port ports[2];
    struct pw_rma *rma;
    struct pw_rma_region *regions[REGIONS];
    struct pw_rma_key *key;
    unsigned char bytes[PW_RMA_KEY];
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2", 1);
    for (unsigned i = 0; i < 2; i++) {
        port_open_with(&ports[i], PTL_IFACE_DEFAULT + i, KIND_ML, rank, size, NULL);
    }
    ptl_handle_ni_t interfaces[] = {ports[0].ni, ports[1].ni};
    ptl_ni_limits_t limits[] = {ports[0].limits, ports[1].limits};
    struct pw_rma_config config = {2, interfaces, limits, 0};
    DONE(pw_rma_open(&config, &rma));
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = region_of(rma, memory + 100 * i, 100, PW_RMA_READ | PW_RMA_WRITE);
        key_show(regions[i]);
        BARRIER();
        key_look(1 - rank, bytes);
        CHECK_EQ(bytes[KEY_RAIL], i % 2);
        DONE(pw_rma_key_open(rma, bytes, sizeof(bytes), &key));
        ptest_fill(from + 1000 * i, 100, (unsigned)(10 * i + rank));
        DONE(pw_rma_put(key, from + 1000 * i, 100, 0, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        pw_rma_key_close(key);
        BARRIER();
        CHECK_FILL(memory + 100 * i, 100, (unsigned)(10 * i + 1 - rank));
    }
    /* a process with one interface has no use for a key of the second */
    struct pw_rma *less = rma_open(&ports[0]);
    REFUSED(pw_rma_key_open(less, bytes, sizeof(bytes), &key), ENXIO);
    DONE(pw_rma_close(less));
    for (int i = 0; i < REGIONS; i++) {
        region_end(regions[i]);
    }
    DONE(pw_rma_close(rma));
    BARRIER();
    OK(PtlNIFini(ports[1].ni));
    PtlFini();
    port_close(&ports[0]);
}
