/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a hit of Firehose: try_remote_pin's fast sibling, a remote pin of one bucket that is
 * pinned, and its release, by 1 and more threads that hit buckets of their own. Usage:
 * bench_firehose [THREADS [BUCKETS]] */
#include "pinwheel_firehose.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, ROUNDS = 2000000, REPEAT = 7 };

struct wire {
    struct pw_firehose *table[2];
};

struct side {
    struct wire *wire;
    unsigned self;
};

static int move(void *client, const struct pw_firehose_region *unpins, size_t u,
                struct pw_firehose_region *pins, size_t n)
{
    return 0;
}

static int send(void *client, unsigned node, const void *bytes, size_t length)
{
    struct side *s = client;
    return pw_firehose_deliver(s->wire->table[node], s->self, bytes, length);
}

static const struct pw_firehose_ops ops = {.move = move, .send = send};

struct work {
    struct pw_firehose *table;
    uint64_t first;
    unsigned buckets;
    double ns;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *hit(void *argument)
{
    struct work *w = argument;
    struct pw_firehose_request r = {0}, *one = &r;
    double best = 1e18;
    for (unsigned k = 0; k < REPEAT; k++) {
        double begin = now();
        for (unsigned i = 0; i < ROUNDS; i++) {
            uint64_t bucket = w->first + i * 7 % w->buckets;
            if (pw_firehose_remote_pin(w->table, 1, bucket * PAGE, 8, PW_FIREHOSE_RETURN_IF_PINNED,
                                       one, NULL, NULL, NULL) != 0 ||
                pw_firehose_release(w->table, &one, 1) != 0) {
                fprintf(stderr, "bench_firehose: bucket %lu is no hit\n", (unsigned long)bucket);
                exit(1);
            }
        }
        double each = (now() - begin) / ROUNDS;
        best = each < best ? each : best;
    }
    w->ns = best;
    return NULL;
}

/* Pins all buckets that are going to be hit. */
static void warm(struct wire *wire, uint64_t first, unsigned buckets)
{
    for (unsigned i = 0; i < buckets; i++) {
        struct pw_firehose_request r = {0}, *one = &r;
        pw_firehose_remote_pin(wire->table[0], 1, (first + i) * PAGE, 8, 0, one, NULL, NULL, NULL);
        while (pw_firehose_release(wire->table[0], &one, 1) == -EBUSY) {
            pw_firehose_poll(wire->table[1]);
            pw_firehose_poll(wire->table[0]);
        }
    }
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    unsigned buckets = argc > 2 ? (unsigned)atoi(argv[2]) : 256;
    struct wire wire;
    struct side side[2];
    struct work work[64];
    pthread_t thread[64];
    if (threads < 1 || threads > 64 || buckets < 1 || buckets > 65536) {
        fprintf(stderr, "usage: bench_firehose [THREADS 1..64 [BUCKETS 1..65536]]\n");
        return 2;
    }
    for (unsigned i = 0; i < 2; i++) {
        side[i] = (struct side){&wire, i};
        struct pw_firehose_config c = {.nodes = 2,
                                       .self = i,
                                       .page = PAGE,
                                       .max_pinnable = UINT64_C(1) << 40,
                                       .m = (uint64_t)threads * buckets * PAGE + (1 << 20),
                                       .maxvictim = 4096 * PAGE,
                                       .flags = PW_FIREHOSE_NO_ENV,
                                       .ops = &ops,
                                       .client = &side[i]};
        int rc = pw_firehose_init(&c, &wire.table[i], NULL);
        if (rc != 0) {
            fprintf(stderr, "bench_firehose: no table: %s\n", strerror(-rc));
            return 1;
        }
    }
    for (unsigned n = 1; n <= threads; n = n < threads && 2 * n > threads ? threads : 2 * n) {
        double slowest = 0;
        for (unsigned i = 0; i < n; i++) {
            work[i] = (struct work){wire.table[0], 1 + (uint64_t)i * buckets, buckets, 0};
            warm(&wire, work[i].first, buckets);
        }
        for (unsigned i = 0; i < n; i++) {
            pthread_create(&thread[i], NULL, hit, &work[i]);
        }
        for (unsigned i = 0; i < n; i++) {
            pthread_join(thread[i], NULL);
            slowest = work[i].ns > slowest ? work[i].ns : slowest;
        }
        printf("%u threads, %u buckets each: %.1f ns for a hit and its release\n", n, buckets,
               slowest);
    }
    pw_firehose_fini(wire.table[0]);
    pw_firehose_fini(wire.table[1]);
    return 0;
}
