/* SPDX-License-Identifier: BSD-3-Clause */
/* Notified access: tags, sources and counts; order; no room; a source that ends; threads. */
#include "region.h"

#include "pinwheel_notify.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { LENGTH = 1 << 20, ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_NOTIFY };

static _Alignas(64) unsigned char memory[LENGTH], mine[LENGTH];

/* Waits for one notice: of any process with any tag, unless these are given. */
static struct pw_notice next_notice(struct pw_rma_region *region, const ptl_process_t *source,
                                    uint32_t tag)
{
    struct pw_notify *n;
    struct pw_notice last = {.length = 77};
    DONE(pw_notify_open(region, source, tag, 1, &n));
    DONE(pw_notify_start(n));
    DONE(pw_notify_wait(n, &last));
    pw_notify_close(n);
    return last;
}

static bool is_from(const struct port *p, const struct pw_notice *notice, int rank)
{
    const ptl_process_t *id = &p->id[rank];
    return port_logical(p)
               ? notice->source.rank == id->rank
               : notice->source.phys.nid == id->phys.nid && notice->source.phys.pid == id->phys.pid;
}

static const size_t sizes[] = {0, 1, 8, 64, 1000, 4096, 4097, 65537, 1000000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* When the notice is there the bytes are, and what it says of them is right. After the notice of a
 * get the target may write again. */
static void each_size(unsigned kind, int rank, int size, int target)
{
    struct ends e;
    struct pw_rma_request request;
    ends_serve(&e, kind, rank, size, target, memory, LENGTH, ALL);
    for (unsigned i = 0; i < 2 * SIZES; i++) {
        size_t length = sizes[i / 2];
        uint32_t tag = i * 3000;
        struct pw_rma_request *r = i % 3 == 0 ? NULL : &request;
        bool get = i % 2 == 1;
        if (rank == 0) {
            ptest_fill(mine, length, get ? 999 : i);
            DONE(get ? pw_notify_get(e.key, mine, length, i, tag, r)
                     : pw_notify_put(e.key, mine, length, i, tag, r));
        }
        if (rank == target) {
            struct pw_notice n =
                next_notice(e.region, &e.port.id[0], i % 4 < 2 ? tag : PW_NOTIFY_TAG_ANY);
            CHECK_EQ(n.tag, tag);
            CHECK_EQ(n.get, get);
            CHECK_EQ(n.offset, i);
            CHECK_EQ(n.length, length);
            CHECK(is_from(&e.port, &n, 0));
            if (!get) {
                CHECK_FILL(memory + i, length, i);
            } else {
                ptest_fill(memory + i, length, 555);
            }
        }
        if (rank == 0) {
            DONE(r != NULL ? pw_rma_wait(r) : pw_rma_flush(pw_rma_key_peer(e.key)));
        }
        BARRIER();
        if (rank == target) {
            ptest_fill(memory + i + 1, sizes[(i + 1) / 2 % SIZES], i + 1000);
        }
        BARRIER();
        if (rank == 0 && get) {
            CHECK_FILL(mine, length, i - 1 + 1000);
        }
    }
    ends_served(&e);
}

PTEST_MATCHING(to_another, 2)
{
    each_size(kind, rank, size, 1);
}

PTEST(to_oneself, 1)
{
    each_size(KIND_ML, rank, size, 0);
}

/* Three origins with tags; requests that want one of them, one tag, a number; what none has taken
 * is kept, and comes the oldest first. */
PTEST_MATCHING(matching, 4)
{
    enum { EACH = 60, TAGS = 6, RANKS = 4 };
    struct ends e;
    ends_serve(&e, kind, rank, size, 0, memory, LENGTH, ALL);
    if (rank > 0) {
        for (unsigned i = 0; i < EACH; i++) {
            uint64_t value = (uint64_t)rank * EACH + i;
            DONE(pw_notify_put(e.key, &value, 8, 8 * value, i % TAGS, NULL));
        }
        DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
    }
    BARRIER();
    if (rank == 0) {
        struct pw_notify *n[2];
        struct pw_notice last;
        bool over;
        /* those with tag 1 of rank 1, in their order */
        for (unsigned i = 1; i < EACH; i += TAGS) {
            last = next_notice(e.region, &e.port.id[1], 1);
            CHECK(is_from(&e.port, &last, 1));
            CHECK_EQ(last.offset, 8 * (EACH + i));
        }
        DONE(pw_notify_open(e.region, &e.port.id[1], 1, 1, &n[0]));
        DONE(pw_notify_test(n[0], &over, NULL));
        CHECK(over); /* not started */
        DONE(pw_notify_start(n[0]));
        REFUSED(pw_notify_start(n[0]), EINVAL);
        DONE(pw_notify_test(n[0], &over, NULL));
        CHECK(!over); /* none is left */
        /* all others with tag 1, together; one more than there are is not there */
        DONE(pw_notify_open(e.region, NULL, 1, 2 * EACH / TAGS, &n[1]));
        DONE(pw_notify_start(n[1]));
        DONE(pw_notify_wait(n[1], &last));
        CHECK_EQ(last.tag, 1);
        DONE(pw_notify_start(n[1]));
        DONE(pw_notify_test(n[1], &over, NULL));
        CHECK(!over);
        pw_notify_close(n[1]);
        pw_notify_close(n[0]);
        /* the rest of each process, in the order of its calls */
        for (int r = RANKS - 1; r > 0; r--) {
            for (unsigned i = 0; i < EACH; i++) {
                if (i % TAGS != 1) {
                    last = next_notice(e.region, &e.port.id[r], PW_NOTIFY_TAG_ANY);
                    CHECK(is_from(&e.port, &last, r));
                    CHECK_EQ(last.tag, i % TAGS);
                    CHECK_EQ(last.offset, 8 * ((unsigned)r * EACH + i));
                }
            }
        }
    }
    ends_served(&e);
}

/* Notices of one region are not those of another; those of a region that is gone are dropped. */
PTEST(regions, 2)
{
    struct ends e;
    struct pw_rma_region *other = NULL;
    ends_serve(&e, KIND_ML, rank, size, 1, memory, 4096, ALL);
    BARRIER();
    if (rank == 1) {
        other = region_of(e.rma, memory + 4096, 4096, ALL);
        key_show(other);
    }
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 1);
    if (rank == 0) {
        for (uint32_t i = 0; i < 100; i++) {
            DONE(pw_notify_put(i % 2 == 0 ? e.key : key, NULL, 0, i, i, NULL));
        }
        DONE(pw_rma_flush_all(e.rma));
    }
    BARRIER();
    if (rank == 1) {
        struct pw_notify *n;
        for (uint32_t i = 0; i < 50; i++) {
            CHECK_EQ(next_notice(e.region, NULL, PW_NOTIFY_TAG_ANY).offset, 2 * i);
        }
        DONE(pw_notify_open(other, NULL, 7, 1, &n));
        REFUSED(pw_rma_unregister(other), EINVAL);
        pw_notify_close(n);
        region_end(other);
    }
    BARRIER();
    if (rank == 0) {
        DONE(pw_notify_put(key, NULL, 0, 0, 0, NULL));
        REFUSED(pw_rma_flush(pw_rma_key_peer(key)), ESTALE);
        DONE(pw_notify_put(e.key, NULL, 0, 1, 5, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
    }
    if (rank == 1) {
        CHECK_EQ(next_notice(e.region, NULL, 5).offset, 1);
    }
    pw_rma_key_close(key);
    ends_served(&e);
}

/* More than the target has room for: what is refused has done nothing, and what is not is told.
 * When the target looks, there is room again. */
PTEST(no_room, 2)
{
    enum { MANY = PW_NOTIFY_UNSEEN + 60 };
    static struct pw_rma_request requests[MANY];
    static uint64_t words[MANY];
    struct ends e;
    ends_serve(&e, KIND_ML, rank, size, 1, words, sizeof(words), ALL);
    if (rank == 0) {
        uint64_t told = 0, one = 1;
        for (unsigned i = 0; i < MANY; i++) {
            DONE(pw_notify_put(e.key, &one, 8, 8 * i, i % 10, &requests[i]));
        }
        for (unsigned i = 0; i < MANY; i++) {
            int rc = pw_rma_wait(&requests[i]);
            CHECK(rc == 0 || rc == -ENOBUFS);
            words[i] = rc == 0;
            told += rc == 0;
        }
        CHECK(told < MANY);
        ptest_show(60, told);
        CHECK_EQ(pw_rma_flush(pw_rma_key_peer(e.key)), 0);
        BARRIER();
        BARRIER();
        DONE(pw_notify_put(e.key, &one, 8, 0, 11, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
    } else {
        BARRIER();
        uint64_t told = ptest_look(0, 60), there = 0;
        for (uint64_t i = 0; i < told; i++) {
            struct pw_notice n = next_notice(e.region, NULL, PW_NOTIFY_TAG_ANY);
            CHECK_EQ(words[n.offset / 8], 1);
        }
        for (unsigned i = 0; i < MANY; i++) {
            there += words[i];
        }
        CHECK_EQ(there, told);
        BARRIER();
        CHECK_EQ(next_notice(e.region, NULL, PW_NOTIFY_TAG_ANY).tag, 11);
    }
    ends_served(&e);
}

/* Notices that nobody wants fill the room: who waits for another one is told. */
PTEST(unwanted, 1)
{
    struct ends e;
    struct pw_notify *n;
    bool over;
    ends_serve(&e, KIND_ML, rank, size, 0, memory, LENGTH, ALL);
    DONE(pw_notify_open(e.region, NULL, 2, 1, &n));
    DONE(pw_notify_start(n));
    for (unsigned i = 0; i < PW_NOTIFY_ROOM; i++) {
        DONE(pw_notify_put(e.key, NULL, 0, 0, 1, NULL));
        if (i % 1000 == 0) {
            DONE(pw_rma_flush_all(e.rma));
            DONE(pw_notify_test(n, &over, NULL));
            CHECK(!over);
        }
    }
    DONE(pw_rma_flush_all(e.rma));
    REFUSED(pw_notify_test(n, &over, NULL), ENOBUFS);
    CHECK(!over);
    REFUSED(pw_notify_wait(n, NULL), ENOBUFS);
    CHECK_EQ(next_notice(e.region, NULL, 1).tag, 1);
    DONE(pw_notify_put(e.key, NULL, 0, 0, 2, NULL));
    DONE(pw_notify_wait(n, NULL));
    pw_notify_close(n);
    ends_served(&e);
}

PTEST_MATCHING(refused, 1)
{
    struct ends e;
    struct pw_notify *n;
    struct pw_rma_region *region;
    ends_serve(&e, kind, rank, size, 0, memory, LENGTH, PW_RMA_READ | PW_RMA_NOTIFY);
    REFUSED(pw_rma_register(e.rma, memory, 8, PW_RMA_NOTIFY, &region), EINVAL);
    REFUSED(pw_notify_put(e.key, mine, 8, 0, 1, NULL), EACCES);
    REFUSED(pw_notify_get(e.key, mine, 8, 0, PW_NOTIFY_TAG_MAX + 1, NULL), EINVAL);
    REFUSED(pw_notify_get(e.key, mine, 8, LENGTH - 7, 1, NULL), EINVAL);
    REFUSED(pw_notify_open(e.region, NULL, PW_NOTIFY_TAG_MAX + 1, 1, &n), EINVAL);
    REFUSED(pw_notify_open(e.region, NULL, 1, 0, &n), EINVAL);
    region = region_of(e.rma, memory, 8, PW_RMA_READ | PW_RMA_WRITE);
    REFUSED(pw_notify_open(region, NULL, 1, 1, &n), EINVAL);
    key_show(region);
    struct pw_rma_key *key = key_of(e.rma, 0);
    REFUSED(pw_notify_put(key, mine, 8, 0, 1, NULL), EACCES);
    pw_rma_key_close(key);
    region_end(region);
    ends_served(&e);
}

/* What is longer than a message is told once, when all of it is there. */
PTEST(long_ones, 2)
{
    enum { MOST = 5000, LONG = 33333 };
    struct ends e;
    struct pw_rma_request request;
    ptl_ni_limits_t wish;
    memset(&e, 0, sizeof(e));
    port_open(&e.port, KIND_ML, rank, size);
    wish = e.port.limits;
    wish.max_msg_size = MOST; /* as if the interface took no longer ones */
    struct pw_rma_config config = {1, &e.port.ni, &wish, 0};
    DONE(pw_rma_open(&config, &e.rma));
    if (rank == 1) {
        e.region = region_of(e.rma, memory, LENGTH, ALL);
        key_show(e.region);
    }
    BARRIER();
    e.key = key_of(e.rma, 1);
    if (rank == 0) {
        ptest_fill(mine, LONG, 3);
        DONE(pw_notify_put(e.key, mine, LONG, 10, 1, &request));
        DONE(pw_rma_wait(&request));
        memset(mine, 0, LONG);
        DONE(pw_notify_get(e.key, mine, LONG, 10, 2, &request));
        DONE(pw_rma_wait(&request));
        CHECK_FILL(mine, LONG, 3);
    } else {
        struct pw_notice n = next_notice(e.region, NULL, 1);
        CHECK_FILL(memory + 10, LONG, 3);
        CHECK_EQ(n.offset + n.length, 10 + LONG);
        CHECK_EQ(next_notice(e.region, NULL, PW_NOTIFY_TAG_ANY).tag, 2);
    }
    ends_served(&e);
}

/* ---- A source that stops, and ends ---- */

/* Puts once, and waits for its end. */
static void be_source(const unsigned char *bytes)
{
    struct port p;
    struct pw_rma_key *key;
    memset(&p, 0, sizeof(p));
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    DONE(pw_rma_key_open(rma_open(&p), bytes, PW_RMA_KEY, &key));
    DONE(pw_notify_put(key, NULL, 0, 0, 1, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    for (;;) {
        pause();
    }
}

PTEST_OWN(source_ends, 1, "forks")
{
    struct ends e;
    struct pw_notify *n;
    struct pw_notice last;
    unsigned char bytes[PW_RMA_KEY];
    bool over = true;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(read(pipes[0], bytes, sizeof(bytes)), sizeof(bytes));
        be_source(bytes);
    }
    ends_serve(&e, KIND_MP, rank, size, 0, memory, LENGTH, ALL);
    key_look(0, bytes);
    CHECK_EQ(write(pipes[1], bytes, sizeof(bytes)), sizeof(bytes));
    ptl_process_t source = next_notice(e.region, NULL, 1).source;
    DONE(pw_notify_open(e.region, &source, PW_NOTIFY_TAG_ANY, 1, &n));
    DONE(pw_notify_start(n));
    kill(pid, SIGSTOP);
    CHECK_EQ(waitpid(pid, NULL, WUNTRACED), pid);
    for (int i = 0; i < 10; i++) {
        DONE(pw_notify_test(n, &over, &last));
        CHECK(!over);
        ptest_sleep_ms(10);
    }
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    REFUSED(pw_notify_wait(n, &last), EPIPE);
    REFUSED(pw_notify_wait(n, &last), EPIPE);
    pw_notify_close(n);
    close(pipes[0]);
    close(pipes[1]);
    ends_served(&e);
}

/* ---- Threads ---- */

enum { THREADS = 4, STEPS = 500 };

struct worker {
    struct ends *e;
    uint32_t tag;
    int rank;
};

/* Threads of rank 1 wait for a tag each; those of rank 0 put with it. */
static void *work(void *argument)
{
    struct worker *w = argument;
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = 8 * (w->tag * STEPS + i), value = at ^ 0x5555;
        if (w->rank == 0) {
            struct pw_rma_request request;
            DONE(pw_notify_put(w->e->key, &value, 8, at, w->tag, &request));
            DONE(pw_rma_wait(&request));
        } else {
            struct pw_notice n = next_notice(w->e->region, NULL, w->tag);
            CHECK_EQ(n.offset, at);
            CHECK_EQ(*(uint64_t *)(memory + at), value);
        }
    }
    return NULL;
}

PTEST(threads, 2)
{
    struct ends e;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    ends_serve(&e, KIND_ML, rank, size, 1, memory, LENGTH, ALL);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&e, i, rank};
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    ends_served(&e);
}
