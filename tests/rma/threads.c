/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushes while other threads of the same process begin and end operations: what they stand for is
 * over when they return, also where later operations of others have ended before.
 */
#include "region.h"

#include "../process/ptest.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Peers share counters by their number: the sixteenth after the first has its counter. */
enum { COUNTERS = 16, LARGE = 300000, AREA = 1 << 20 };

static unsigned char buffer[LARGE];

/* A process with regions over one interface, each of a struct pw_rma of its own: so each is a peer.
 * Its memory is this process's, too. */
struct target {
    pid_t pid;
    unsigned char *memory;
    unsigned char keys[COUNTERS][PW_RMA_KEY];
};

static void be_target(const struct target *t, int pipe, int regions)
{
    struct port p;
    unsigned char key[PW_RMA_KEY];
    memset(&p, 0, sizeof(p));
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    for (int i = 0; i < regions; i++) {
        struct pw_rma_region *region =
            region_of(rma_open(&p), t->memory, AREA, PW_RMA_READ | PW_RMA_WRITE);
        DONE(pw_rma_key_pack(region, key, sizeof(key)));
        CHECK_EQ(write(pipe, key, sizeof(key)), sizeof(key));
    }
    for (;;) {
        pause();
    }
}

static struct target target_start(int regions)
{
    struct target t;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    t.memory = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(t.memory != MAP_FAILED);
    t.pid = fork();
    CHECK(t.pid >= 0);
    if (t.pid == 0) {
        be_target(&t, pipes[1], regions);
    }
    for (int i = 0; i < regions; i++) {
        CHECK_EQ(read(pipes[0], t.keys[i], PW_RMA_KEY), PW_RMA_KEY);
    }
    close(pipes[0]);
    close(pipes[1]);
    return t;
}

static void target_end(const struct target *t)
{
    kill(t->pid, SIGKILL);
    CHECK_EQ(waitpid(t->pid, NULL, 0), t->pid);
    munmap(t->memory, AREA);
}

static struct pw_rma_key *open_key(struct pw_rma *rma, const unsigned char *bytes)
{
    struct pw_rma_key *key;
    DONE(pw_rma_key_open(rma, bytes, PW_RMA_KEY, &key));
    return key;
}

/* ---- A process that is stopped, and one that shares its counter ---- */

struct scene {
    struct pw_rma_key *stopped, *other;
    atomic_bool goes_on, over, ends;
};

static void *flushes(void *arg)
{
    struct scene *s = arg;
    DONE(pw_rma_flush(pw_rma_key_peer(s->stopped)));
    CHECK(atomic_load(&s->goes_on));
    atomic_store(&s->over, true);
    return NULL;
}

static void *flushes_locally(void *arg)
{
    struct scene *s = arg;
    pw_rma_flush_local(pw_rma_key_peer(s->stopped));
    CHECK(atomic_load(&s->goes_on));
    atomic_store(&s->over, true);
    return NULL;
}

/* Operations that end while the other ones are under way. A flush may hold them back. */
static void *keeps_putting(void *arg)
{
    struct scene *s = arg;
    while (!atomic_load(&s->ends)) {
        DONE(pw_rma_put(s->other, buffer, 8, 0, NULL));
        struct timespec nap = {0, 100000};
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void with_a_stopped_one(int rank, int size, void *(*second)(void *))
{
    struct ends e;
    struct target stops = target_start(1), lives = target_start(COUNTERS);
    struct pw_rma_key *keys[COUNTERS];
    pthread_t threads[2];
    ends_open(&e, KIND_MP, rank, size);
    struct scene s = {.stopped = open_key(e.rma, stops.keys[0])};
    for (int i = 0; i < COUNTERS; i++) {
        keys[i] = open_key(e.rma, lives.keys[i]);
    }
    s.other = keys[COUNTERS - 1];
    for (int round = 0; round < 5; round++) {
        DONE(pw_rma_put(s.stopped, buffer, 8, 0, NULL));
        DONE(pw_rma_put(s.other, buffer, 8, 0, NULL));
        DONE(pw_rma_flush_all(e.rma));
        kill(stops.pid, SIGSTOP);
        CHECK_EQ(waitpid(stops.pid, NULL, WUNTRACED), stops.pid);
        DONE(pw_rma_put(s.stopped, buffer, LARGE, 0, NULL));
        atomic_store(&s.goes_on, false);
        atomic_store(&s.over, false);
        atomic_store(&s.ends, false);
        CHECK_EQ(pthread_create(&threads[0], NULL, flushes, &s), 0);
        ptest_sleep_ms(20); /* it may fail only if the flush has begun */
        CHECK_EQ(pthread_create(&threads[1], NULL, second, &s), 0);
        for (int i = 0; i < 10; i++) {
            CHECK(!atomic_load(&s.over));
            ptest_sleep_ms(10);
        }
        atomic_store(&s.goes_on, true);
        kill(stops.pid, SIGCONT);
        CHECK_EQ(pthread_join(threads[0], NULL), 0);
        atomic_store(&s.ends, true);
        CHECK_EQ(pthread_join(threads[1], NULL), 0);
    }
    for (int i = 0; i < COUNTERS; i++) {
        pw_rma_key_close(keys[i]);
    }
    pw_rma_key_close(s.stopped);
    ends_close(&e);
    target_end(&stops);
    target_end(&lives);
}

PTEST_OWN(later_ones_end_first, 1, "forks")
{
    with_a_stopped_one(rank, size, keeps_putting);
}

/* The buffer of an operation that another thread's flush waits for is not free yet. */
PTEST_OWN(local, 1, "forks")
{
    with_a_stopped_one(rank, size, flushes_locally);
}

/* ---- Threads that flush and look ---- */

enum { THREADS = 4, ROUNDS = 400, SHARE = AREA / THREADS };

struct worker {
    struct pw_rma_key *key;
    const unsigned char *memory; /* the target's */
    unsigned number;
    unsigned char from[SHARE];
};

static void *work(void *arg)
{
    struct worker *w = arg;
    const uint64_t one = 1;
    unsigned random = w->number * 2654435761u + 1;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random = random * 1103515245u + 12345u;
        size_t length =
            w->number % 2 == 0 ? 8 + random % (SHARE - 64) : 8; /* slow and quick ones */
        memset(w->from, (int)round, length);
        DONE(pw_rma_put(w->key, w->from, length, w->number * SHARE, NULL));
        DONE(pw_rma_accumulate(w->key, &one, 1, (w->number + 1) * SHARE - 8, PW_RMA_SUM,
                               PW_RMA_UINT64, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(w->key)));
        const unsigned char *at = w->memory + w->number * SHARE;
        uint64_t sum;
        memcpy(&sum, at + SHARE - 8, 8);
        CHECK_EQ(at[0], (unsigned char)round);
        CHECK_EQ(at[length - 1], (unsigned char)round);
        CHECK_EQ(sum, round);
    }
    return NULL;
}

PTEST_OWN(memory_is_there, 1, "forks")
{
    static struct worker workers[THREADS];
    struct ends e;
    struct target t = target_start(1);
    pthread_t threads[THREADS];
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *key = open_key(e.rma, t.keys[0]);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].key = key;
        workers[i].memory = t.memory;
        workers[i].number = i;
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    pw_rma_key_close(key);
    ends_close(&e);
    target_end(&t);
}
