/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that share a table of Firehose.
 *
 * fair: each puts 32 KiB to random places of a peer, which pins by mlock(), with firehoses for one
 * put only: how many puts each thread gets, and how often deadlock was avoided. The peer is a
 * second table of this process, which pins in the call that sends it a message: a process of its
 * own would get its turns from the same scheduler as the threads.
 *
 * lazy: each pins and releases random pages, most of them from a few. A page is put in its place
 * among the victims when it is looked at; so a thread may replace another page than the one that
 * was released first. All accesses are noted in their order and done again by one thread, for which
 * the order is exact: how much the misses differ.
 *
 * Usage: threads [fair|lazy|all [THREADS [SECONDS]]]
 */
#include "peer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PUT = 32 << 10, FIREHOSES = PUT / PAGE, WINDOW = 64 << 20, MOST = 64 };
/* lazy: pages of all, of those that most accesses are to, that may be pinned; accesses */
enum { PAGES = 4096, HOT = 512, PINNED = 640, ACCESSES = 1 << 21 };

struct thread {
    _Alignas(64) pthread_t id;
    unsigned number;
    uint64_t random, done;
};

static struct pw_firehose *table, *node[2]; /* node: of this node, and of its peer */
static unsigned number[] = {0, 1};
static char *memory; /* of the peer */
static _Atomic bool stop;
static _Atomic uint64_t ticket;
static uint16_t *order; /* the page of each access */

static uint64_t random_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static void give_up(const char *what, int error)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(-error));
    exit(1);
}

/* Runs threads; `seconds` of 0: until they end. */
static void run(struct thread *t, unsigned threads, void *(*work)(void *), unsigned seconds)
{
    atomic_store(&stop, false);
    for (unsigned i = 0; i < threads; i++) {
        t[i] = (struct thread){.number = i, .random = 88172645 + i * UINT64_C(7919)};
        pthread_create(&t[i].id, NULL, work, &t[i]);
    }
    for (uint64_t begin = nanoseconds(); nanoseconds() - begin < seconds * UINT64_C(1000000000);) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    atomic_store(&stop, seconds > 0);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(t[i].id, NULL);
    }
}

/* ---- fair ---- */

static int send(void *client, unsigned to, const void *bytes, size_t length)
{
    return pw_firehose_deliver(node[to], *(unsigned *)client, bytes, length);
}

static void yield(void *client)
{
    sched_yield();
}

static void pinned(void *context, struct pw_firehose_request *request, int error, int local_hit)
{
    atomic_store((_Atomic int *)context, error == 0 ? 1 : error);
}

static void *put(void *argument)
{
    static const char from[PUT];
    struct thread *t = argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        struct pw_firehose_request r = {0}, *one = &r;
        char *to = memory + random_number(&t->random) % (WINDOW / PUT) * PUT;
        _Atomic int done = 0;
        int rc = pw_firehose_remote_pin(node[0], 1, (uintptr_t)to, PUT, 0, one, NULL, pinned,
                                        (void *)&done);
        while (rc >= 0 && atomic_load(&done) == 0) {
            pw_firehose_poll(node[1]); /* its move may have to wait for another one */
            pw_firehose_poll(node[0]);
            sched_yield();
        }
        rc = rc < 0 ? rc : atomic_load(&done) == 1 ? 0 : atomic_load(&done);
        if (rc != 0) {
            give_up("no pin", rc);
        }
        memcpy(to, from, PUT);
        pw_firehose_release(node[0], &one, 1);
        t->done++;
    }
    return NULL;
}

static void open_nodes(void)
{
    static const struct pw_firehose_ops ops = {.move = peer_move, .send = send, .poll = yield};
    memory = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        give_up("no memory", -errno);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct pw_firehose_config c = {.nodes = 2,
                                       .self = i,
                                       .flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV |
                                                PW_FIREHOSE_IN_HANDLER,
                                       .page = PAGE,
                                       .max_pinnable = 2 * FIREHOSES * PAGE,
                                       .m = FIREHOSES * PAGE,
                                       .maxvictim = FIREHOSES * PAGE,
                                       .ops = &ops,
                                       .client = &number[i]};
        int rc = pw_firehose_init(&c, &node[i], NULL);
        if (rc != 0) {
            give_up("no table", rc);
        }
    }
}

static int fair(unsigned threads, unsigned seconds)
{
    struct thread t[MOST];
    struct pw_firehose_stats s;
    uint64_t all = 0, least = UINT64_MAX, most = 0;
    open_nodes();
    run(t, threads, put, seconds);
    printf("fair: %u threads, %d firehoses, puts of %d bytes; puts a second:", threads, FIREHOSES,
           PUT);
    for (unsigned i = 0; i < threads; i++) {
        all += t[i].done;
        least = t[i].done < least ? t[i].done : least;
        most = t[i].done > most ? t[i].done : most;
        printf(" %.0f", (double)t[i].done / seconds);
    }
    pw_firehose_stats(node[0], &s);
    double mean = (double)all / threads;
    printf("\n  all: %.0f; the slowest %.1f %% below the mean, the fastest %.1f %% above it\n"
           "  %lu of %lu requests declared deadlock (%.1f %%), %lu rollbacks, %lu hits\n",
           (double)all / seconds, 100 * (1 - (double)least / mean), 100 * ((double)most / mean - 1),
           (unsigned long)s.deadlocks_avoided, (unsigned long)s.remote.pin,
           100.0 * (double)s.deadlocks_avoided / (double)s.remote.pin, (unsigned long)s.rollbacks,
           (unsigned long)s.remote.hit);
    return pw_firehose_fini(node[0]) + pw_firehose_fini(node[1]);
}

/* ---- lazy ---- */

static int move(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                struct pw_firehose_region *pins, size_t pin_count)
{
    return 0;
}

static void open_table(void)
{
    static const struct pw_firehose_ops ops = {.move = move};
    struct pw_firehose_config c = {.nodes = 1,
                                   .flags = PW_FIREHOSE_LOCAL_ONLY | PW_FIREHOSE_REDUCED |
                                            PW_FIREHOSE_NO_ENV,
                                   .page = PAGE,
                                   .max_pinnable = PINNED * PAGE,
                                   .ops = &ops};
    int rc = pw_firehose_init(&c, &table, NULL);
    if (rc != 0) {
        give_up("no table", rc);
    }
}

static void touch(uint64_t page)
{
    struct pw_firehose_request r = {0}, *one = &r;
    int rc = pw_firehose_local_pin(table, page * PAGE, 8, one);
    if (rc != 0 || (rc = pw_firehose_release(table, &one, 1)) != 0) {
        give_up("no pin", rc);
    }
}

static void *wander(void *argument)
{
    struct thread *t = argument;
    for (;;) {
        uint64_t r = random_number(&t->random);
        uint16_t page = (uint16_t)((r >> 32) % (r % 8 != 0 ? HOT : PAGES));
        uint64_t at = atomic_fetch_add(&ticket, 1);
        if (at >= ACCESSES) {
            return NULL;
        }
        order[at] = page;
        touch(page);
    }
}

static uint64_t misses(void)
{
    struct pw_firehose_stats s;
    pw_firehose_stats(table, &s);
    pw_firehose_fini(table);
    return s.local.miss;
}

static int lazy(unsigned threads)
{
    struct thread t[MOST];
    order = calloc(ACCESSES, sizeof(*order));
    if (order == NULL) {
        give_up("no memory", -12);
    }
    atomic_store(&ticket, 0);
    open_table();
    run(t, threads, wander, 0);
    uint64_t found = misses();
    open_table();
    for (unsigned i = 0; i < ACCESSES; i++) {
        touch(order[i]);
    }
    uint64_t exact = misses();
    printf("lazy: %u threads, %d accesses, %d of %d pages pinned: %lu misses, in exact order %lu: "
           "%+.3f %%\n",
           threads, ACCESSES, PINNED, PAGES, (unsigned long)found, (unsigned long)exact,
           100 * ((double)found / (double)exact - 1));
    free(order);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 8;
    unsigned seconds = argc > 3 ? (unsigned)atoi(argv[3]) : 5;
    bool all = strcmp(what, "all") == 0;
    int status = 0;
    if (threads < 1 || threads > MOST || seconds < 1 || argc > 4 ||
        (!all && strcmp(what, "fair") != 0 && strcmp(what, "lazy") != 0)) {
        fprintf(stderr,
                "usage: bench_firehose_threads [fair|lazy|all [THREADS 1..64 [SECONDS]]]\n");
        return 2;
    }
    if (all || strcmp(what, "fair") == 0) {
        status |= fair(threads, seconds);
    }
    if (all || strcmp(what, "lazy") == 0) {
        status |= lazy(threads);
    }
    return status;
}
