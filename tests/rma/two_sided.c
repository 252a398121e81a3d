/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that the target's library does, in a thread of its own: targets that stop, are killed
 * or close with some under way; many threads and more operations than there are slots; messages of
 * who does not keep the rules; memory that is not there.
 */
#include "region.h"

#include "../../lib/rma/call.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS,
    PAIRS = 600,
    KEY_PT = 40,
    KEY_SERVICE = 50
};

struct pair {
    int32_t value, index;
};

static struct pair memory[PAIRS];

static void force(void)
{
    CHECK_EQ(setenv("PINWHEEL_RMA_PATH", "two-sided", 1), 0);
}

/* Threads of two ranks draw tickets, and look for a maximum; each also waits by request. */
struct worker {
    struct ends *e;
    int number;
    int32_t seen[200];
};

static void *draw(void *owner)
{
    struct worker *w = owner;
    struct pw_rma_key *key = w->e->key;
    for (int i = 0; i < 200; i++) {
        struct pair mine = {w->number * 200 + i + 1, i}, old[PAIRS], many[PAIRS];
        struct pw_rma_request request;
        DONE(pw_rma_fetch_op(key, &mine, &old[0], 0, PW_RMA_REPLACE, PW_RMA_INT_INT, &request));
        DONE(pw_rma_accumulate(key, &mine, 1, 8, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_wait(&request));
        w->seen[i] = old[0].value;
        if (i % 20 == 0) {
            memset(many, 0, sizeof(many));
            DONE(pw_rma_get_accumulate(key, many, old, PAIRS, 0, PW_RMA_NO_OP, PW_RMA_INT_INT,
                                       NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(key)));
            CHECK(old[1].value >= mine.value);
        }
    }
    return NULL;
}

PTEST_OWN(threads, 3, "sets a variable")
{
    enum { THREADS = 3, DRAWN = 2 * THREADS * 200 };
    static struct worker workers[THREADS];
    struct ends e;
    pthread_t threads[THREADS];
    force();
    ends_serve(&e, KIND_ML, rank, size, 0, memory, sizeof(memory), ALL);
    CHECK_EQ(pw_rma_path(e.key, PW_RMA_MAXLOC, PW_RMA_INT_INT), PW_RMA_TWO_SIDED);
    CHECK_EQ(pw_rma_path(e.key, PW_RMA_SUM, PW_RMA_INT32), PW_RMA_NATIVE);
    CHECK_EQ(pw_rma_key_access(e.key), ALL);
    int64_t sum = 0;
    if (rank != 0) {
        for (int i = 0; i < THREADS; i++) {
            workers[i].e = &e;
            workers[i].number = (rank - 1) * THREADS + i;
            CHECK_EQ(pthread_create(&threads[i], NULL, draw, &workers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
            for (int k = 0; k < 200; k++) {
                sum += workers[i].seen[k];
            }
        }
    }
    DONE(pw_rma_flush_all(e.rma));
    ptest_show(50, (uint64_t)sum);
    BARRIER();
    if (rank == 0) { /* each that was put in came out once, but for the last */
        int64_t all = memory[0].value + (int64_t)ptest_look(1, 50) + (int64_t)ptest_look(2, 50);
        CHECK_EQ(all, (int64_t)DRAWN * (DRAWN + 1) / 2);
        CHECK_EQ(memory[1].value, DRAWN);
    }
    ends_served(&e);
}

/* Order with operations that take another way: a native one waits for those before it. */
PTEST_OWN(order, 2, "sets a variable")
{
    struct ends e;
    force();
    ends_serve(&e, KIND_ML, rank, size, 1, memory, sizeof(memory), ALL);
    for (int i = 1; i <= 300 && rank == 0; i++) {
        const struct pair two = {i, 2 * i};
        struct pair old;
        const int32_t one = 1;
        int32_t was;
        DONE(pw_rma_accumulate(e.key, &two, 1, 0, PW_RMA_REPLACE, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_fetch_op(e.key, &one, &was, 0, PW_RMA_SUM, PW_RMA_INT32, NULL));
        DONE(pw_rma_fetch_op(e.key, &two, &old, 0, PW_RMA_NO_OP, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
        CHECK_EQ(was, i);
        CHECK_EQ(old.value, i + 1);
        CHECK_EQ(old.index, 2 * i);
    }
    ends_served(&e);
}

/* ---- Targets that are processes of their own ---- */

struct target {
    pid_t pid;
    unsigned char key[PW_RMA_KEY];
};

static void be_target(int pipe, void *start)
{
    struct port p;
    unsigned char key[PW_RMA_KEY];
    memset(&p, 0, sizeof(p));
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    struct pw_rma_region *region = region_of(rma_open(&p), start, sizeof(memory), ALL);
    DONE(pw_rma_key_pack(region, key, sizeof(key)));
    CHECK_EQ(write(pipe, key, sizeof(key)), sizeof(key));
    for (;;) {
        pause();
    }
}

static struct target start_target(void *start)
{
    struct target t;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    t.pid = fork();
    CHECK(t.pid >= 0);
    if (t.pid == 0) {
        be_target(pipes[1], start);
    }
    CHECK_EQ(read(pipes[0], t.key, sizeof(t.key)), sizeof(t.key));
    close(pipes[0]);
    close(pipes[1]);
    return t;
}

PTEST_OWN(killed, 1, "forks")
{
    enum { MANY = 100 };
    static struct pw_rma_request requests[MANY];
    static struct pair old[MANY];
    struct ends e;
    struct pw_rma_key *key, *stays;
    const struct pair one = {1, 1};
    force();
    struct target t = start_target(memory), other = start_target(memory);
    ends_open(&e, KIND_MP, rank, size);
    DONE(pw_rma_key_open(e.rma, t.key, sizeof(t.key), &key));
    DONE(pw_rma_key_open(e.rma, other.key, sizeof(other.key), &stays));
    DONE(pw_rma_accumulate(key, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    kill(t.pid, SIGSTOP); /* so that all of them are under way */
    CHECK_EQ(waitpid(t.pid, NULL, WUNTRACED), t.pid);
    bool over;
    for (int i = 0; i < 20; i++) {
        DONE(pw_rma_fetch_op(key, &one, &old[i], 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, &requests[i]));
        DONE(pw_rma_test(&requests[i], &over));
        CHECK(!over);
    }
    DONE(pw_rma_accumulate(stays, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(stays)));
    kill(t.pid, SIGCONT); /* a stopped one is waited for */
    for (int i = 0; i < 20; i++) {
        DONE(pw_rma_wait(&requests[i]));
        CHECK_EQ(old[i].value, 1);
    }
    kill(t.pid, SIGSTOP);
    CHECK_EQ(waitpid(t.pid, NULL, WUNTRACED), t.pid);
    for (int i = 0; i < 20; i++) {
        DONE(pw_rma_fetch_op(key, &one, &old[i], 0, PW_RMA_MAXLOC, PW_RMA_INT_INT,
                             i % 2 == 0 ? &requests[i] : NULL));
    }
    kill(t.pid, SIGKILL);
    CHECK_EQ(waitpid(t.pid, NULL, 0), t.pid);
    REFUSED(pw_rma_flush(pw_rma_key_peer(key)), EPIPE);
    for (int i = 0; i < 20; i += 2) {
        REFUSED(pw_rma_wait(&requests[i]), EPIPE);
    }
    for (int i = 0; i < MANY; i++) {
        DONE(pw_rma_accumulate(stays, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
    }
    DONE(pw_rma_flush(pw_rma_key_peer(stays)));
    pw_rma_key_close(key);
    pw_rma_key_close(stays);
    ends_close(&e);
    kill(other.pid, SIGKILL);
    CHECK_EQ(waitpid(other.pid, NULL, 0), other.pid);
}

/* ---- What should not be ---- */

PTEST_OWN(nowhere, 2, "sets a variable")
{
    struct ends e;
    const struct pair one = {1, 1};
    force();
    char *start = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED && mprotect(start + 4096, 4096, PROT_NONE) == 0);
    ends_serve(&e, KIND_ML, rank, size, 1, start, 2 * 4096, ALL);
    if (rank == 0) {
        struct pw_rma_peer *peer = pw_rma_key_peer(e.key);
        DONE(pw_rma_accumulate(e.key, &one, 1, 5000, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
        REFUSED(pw_rma_flush(peer), EFAULT);
        DONE(pw_rma_accumulate(e.key, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_flush(peer));
    }
    BARRIER();
    CHECK(rank == 0 || ((struct pair *)start)->value == 1);
    if (rank == 1) {
        region_end(e.region);
        e.region = NULL;
    }
    BARRIER();
    if (rank == 0) {
        DONE(pw_rma_accumulate(e.key, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
        REFUSED(pw_rma_flush(pw_rma_key_peer(e.key)), ESTALE);
    }
    ends_served(&e);
}

/* Random messages to the server, and to the entry for answers of who has asked. */
PTEST_OWN(hostile, 2, "sets a variable")
{
    enum { MESSAGES = 3000 };
    static unsigned char bytes[sizeof(struct call_head) + 64];
    struct ends e;
    uint64_t state = 31;
    force();
    if (rank == 1) {
        memset(memory, 0x5a, sizeof(memory));
    }
    ends_serve(&e, KIND_ML, rank, size, 1, memory, sizeof(memory) / 2, ALL);
    if (rank == 0) {
        unsigned char key[PW_RMA_KEY];
        uint16_t service;
        uint64_t incarnation, bits;
        key_look(1, key);
        memcpy(&service, key + KEY_SERVICE, 2);
        memcpy(&incarnation, key + 8, 8);
        memcpy(&bits, key + KEY_BITS, 8);
        ptl_handle_ct_t ct = port_ct(&e.port);
        ptl_handle_md_t md = port_md(&e.port, bytes, sizeof(bytes), PTL_MD_EVENT_CT_ACK, ct);
        for (int i = 0; i < MESSAGES; i++) {
            size_t n = splitmix(&state) % 64;
            struct call_head h = {.magic = CALL_MAGIC,
                                  .version = CALL_VERSION,
                                  .slot = (uint16_t)(splitmix(&state) % 64),
                                  .sequence = (uint32_t)splitmix(&state),
                                  .reply_pt = (uint32_t)splitmix(&state) % 20,
                                  .incarnation = incarnation,
                                  .bits = bits,
                                  .offset = sizeof(memory) / 2 - splitmix(&state) % 8,
                                  .call = splitmix(&state),
                                  .place = splitmix(&state),
                                  .length = (uint32_t)n,
                                  .fetches = (uint32_t)splitmix(&state) % 2};
            memcpy(bytes, &h, sizeof(h));
            for (size_t k = 0; splitmix(&state) % 2 == 0 && k < 8; k++) {
                bytes[splitmix(&state) % sizeof(h)] = (unsigned char)splitmix(&state);
            }
            size_t length =
                splitmix(&state) % 3 == 0 ? splitmix(&state) % sizeof(bytes) : sizeof(h) + n;
            OK(PtlPut(md, 0, length, PTL_ACK_REQ, e.port.id[1], service, splitmix(&state), 0, NULL,
                      0));
            ptl_ct_event_t now;
            OK(PtlCTWait(ct, (ptl_size_t)i + 1, &now));
        }
        port_release(md);
        OK(PtlCTFree(ct));
        const struct pair one = {INT32_MAX, 1};
        DONE(pw_rma_accumulate(e.key, &one, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
    }
    BARRIER();
    if (rank == 1) {
        CHECK_EQ(memory[0].value, INT32_MAX);
        CHECK_BYTES(&memory[1], sizeof(memory) - sizeof(memory[0]), 0x5a);
    }
    ends_served(&e);
}
