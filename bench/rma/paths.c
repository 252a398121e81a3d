/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operation and its flush take on each path: put, get, accumulate (a maximum) and
 * get_accumulate of 8 to 4096 bytes. Maxima are of integers, or where handlers or the target's
 * library do them of pairs of two integers. The paths take turns; medians, and their ratio to the
 * native one.
 *
 *      pinwheel run -n 2 bench_rma_paths [-p] [-t MS]
 *
 * With -p the other rank polls; else it sleeps, and its interface's thread answers.
 */
#include "times.h"

#include "../../examples/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 15, SIZES = 4, MOST = 4096, ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS };
enum way { DIRECT, NATIVE, HANDLER, TWO_SIDED, WAYS };
enum verb { PUT, GET, ACCUMULATE, FETCH, VERBS };

static const char *const way_names[WAYS] = {"direct", "native", "handler", "two-sided"};
static const char *const verb_names[VERBS] = {"put", "get", "accumulate", "get_accumulate"};
static const size_t sizes[SIZES] = {8, 64, 512, MOST};

struct bench {
    struct start s;
    unsigned milliseconds;
    bool polls;
    struct pw_rma *rma[2];            /* the second one's pairs go two-sided */
    struct pw_rma_region *regions[2]; /* of rank 1 */
    struct pw_rma_key *keys[WAYS];
};

static unsigned char from[MOST], to[MOST];

static bool is_there(enum verb v, enum way w)
{
    return v == ACCUMULATE || v == FETCH || w == DIRECT || w == NATIVE;
}

static void one(struct bench *b, enum verb v, enum way w, size_t size)
{
    struct pw_rma_key *key = b->keys[w];
    bool pairs = w == HANDLER || w == TWO_SIDED;
    enum pw_rma_op op = pairs ? PW_RMA_MAXLOC : PW_RMA_MAX;
    enum pw_rma_type type = pairs ? PW_RMA_INT_INT : PW_RMA_INT64;
    switch (v) {
    case PUT:
        expect(pw_rma_put(key, from, size, 0, NULL), "pw_rma_put");
        break;
    case GET:
        expect(pw_rma_get(key, to, size, 0, NULL), "pw_rma_get");
        break;
    case ACCUMULATE:
        expect(pw_rma_accumulate(key, from, size / 8, 0, op, type, NULL), "pw_rma_accumulate");
        break;
    default:
        expect(pw_rma_get_accumulate(key, from, to, size / 8, 0, op, type, NULL),
               "pw_rma_get_accumulate");
    }
    expect(pw_rma_flush(pw_rma_key_peer(key)), "pw_rma_flush");
}

/* Nanoseconds of an operation and its flush, in a turn. */
static double turn(struct bench *b, enum verb v, enum way w, size_t size)
{
    double begin = now(), end = begin + 1e-3 * b->milliseconds, t;
    unsigned n = 0;
    do {
        for (int i = 0; i < (w == DIRECT ? 64 : 4); i++, n++) {
            one(b, v, w, size);
        }
        t = now();
    } while (t < end);
    return (t - begin) / n * 1e9;
}

static void row(struct bench *b, enum verb v, size_t size)
{
    double ns[WAYS][ROUNDS], ratio[WAYS][ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        for (int w = 0; w < WAYS; w++) {
            ns[w][r] = is_there(v, (enum way)w) ? turn(b, v, (enum way)w, size) : 0;
        }
        for (int w = 0; w < WAYS; w++) {
            ratio[w][r] = ns[w][r] / ns[NATIVE][r];
        }
    }
    printf("  %-14s %5zu B", verb_names[v], size);
    for (int w = 0; w < WAYS; w++) {
        if (is_there(v, (enum way)w)) {
            printf("  %9.0f %6.2f", median(ns[w], ROUNDS), median(ratio[w], ROUNDS));
        }
    }
    printf("\n");
    fflush(stdout);
}

static void measure(struct bench *b)
{
    printf("the target %s; ns of an operation and its flush, and times the native one\n%23s",
           b->polls ? "polls" : "sleeps", "");
    for (int w = 0; w < WAYS; w++) {
        printf("  %9s %6s", way_names[w], "");
    }
    printf("\n");
    for (int v = 0; v < VERBS; v++) {
        for (int i = 0; i < SIZES; i++) {
            row(b, (enum verb)v, sizes[i]);
        }
    }
}

/* Opens the library twice, and at rank 1 a region of each. */
static void open_all(struct bench *b)
{
    ptl_ni_limits_t limits;
    start(&b->s, 1, 0);
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits,
                    &b->s.ni),
          "PtlNIInit");
    struct pw_rma_config config = {1, &b->s.ni, &limits, 0};
    expect(pw_rma_open(&config, &b->rma[0]), "pw_rma_open");
    setenv("PINWHEEL_RMA_PATH", "two-sided", 1);
    expect(pw_rma_open(&config, &b->rma[1]), "pw_rma_open");
    if (b->s.rank == 1) {
        unsigned char bytes[PW_RMA_KEY];
        void *memory, *other;
        expect(pw_rma_allocate(b->rma[0], 2 * MOST, ALL, &memory, &b->regions[0]),
               "pw_rma_allocate");
        expect(pw_rma_allocate(b->rma[1], MOST, ALL, &other, &b->regions[1]), "pw_rma_allocate");
        expect(pw_rma_key_pack(b->regions[0], bytes, sizeof(bytes)), "pw_rma_key_pack");
        publish(&b->s, bytes);
        /* the second key is in the first region */
        expect(pw_rma_key_pack(b->regions[1], (char *)memory + MOST, PW_RMA_KEY),
               "pw_rma_key_pack");
    }
    meet(&b->s);
}

static void open_keys(struct bench *b)
{
    unsigned char bytes[PW_RMA_KEY];
    look_up(&b->s, 1, bytes);
    for (int w = 0; w < TWO_SIDED; w++) {
        expect(pw_rma_key_open(b->rma[0], bytes, sizeof(bytes), &b->keys[w]), "pw_rma_key_open");
        expect(pw_rma_key_limit(b->keys[w], w == DIRECT ? PW_RMA_DIRECT : PW_RMA_NATIVE),
               "pw_rma_key_limit");
    }
    expect(pw_rma_get(b->keys[NATIVE], bytes, PW_RMA_KEY, MOST, NULL), "pw_rma_get");
    expect(pw_rma_flush_all(b->rma[0]), "pw_rma_flush_all");
    expect(pw_rma_key_open(b->rma[1], bytes, sizeof(bytes), &b->keys[TWO_SIDED]),
           "pw_rma_key_open");
    if (pw_rma_path(b->keys[DIRECT], PW_RMA_MAX, PW_RMA_INT64) != PW_RMA_DIRECT ||
        pw_rma_path(b->keys[NATIVE], PW_RMA_MAX, PW_RMA_INT64) != PW_RMA_NATIVE ||
        pw_rma_path(b->keys[HANDLER], PW_RMA_MAXLOC, PW_RMA_INT_INT) != PW_RMA_HANDLER ||
        pw_rma_path(b->keys[TWO_SIDED], PW_RMA_MAXLOC, PW_RMA_INT_INT) != PW_RMA_TWO_SIDED) {
        fail("a path is not there");
    }
}

int main(int argc, char **argv)
{
    static struct bench b = {.milliseconds = 5};
    int option;
    while ((option = getopt(argc, argv, "t:p")) != -1) {
        if (option == 't') {
            b.milliseconds = (unsigned)atoi(optarg);
        } else if (option == 'p') {
            b.polls = true;
        } else {
            fprintf(stderr, "usage: paths [-p] [-t MS]\n");
            return 2;
        }
    }
    open_all(&b);
    if (b.s.rank == 0) {
        const uint64_t word = 1;
        open_keys(&b);
        measure(&b);
        expect(pw_rma_put(b.keys[DIRECT], &word, 8, 2 * MOST - 8, NULL), "pw_rma_put");
        for (int w = 0; w < WAYS; w++) {
            pw_rma_key_close(b.keys[w]);
        }
    } else if (b.polls && b.s.rank == 1) {
        struct pw_rma_key *key;
        unsigned char bytes[PW_RMA_KEY];
        uint64_t over = 0;
        look_up(&b.s, 1, bytes);
        expect(pw_rma_key_open(b.rma[0], bytes, sizeof(bytes), &key), "pw_rma_key_open");
        expect(pw_rma_key_limit(key, PW_RMA_NATIVE), "pw_rma_key_limit");
        while (over == 0) { /* a get from itself, which polls its interface */
            expect(pw_rma_get(key, &over, 8, 2 * MOST - 8, NULL), "pw_rma_get");
            expect(pw_rma_flush_all(b.rma[0]), "pw_rma_flush_all");
        }
        pw_rma_key_close(key);
    }
    meet(&b.s);
    for (int i = 0; i < 2; i++) {
        if (b.regions[i] != NULL) {
            while (pw_rma_unregister(b.regions[i]) == -EBUSY) {
            }
        }
        expect(pw_rma_close(b.rma[i]), "pw_rma_close");
    }
    check(PtlNIFini(b.s.ni), "PtlNIFini");
    return finish(&b.s, 0);
}
