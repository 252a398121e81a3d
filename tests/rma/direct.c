/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers map: operations without messages, beside those that take some; owners that end,
 * stop, or give the region up; what keeps a peer from mapping.
 */
#include "region.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 100000, BOTH = PW_RMA_READ | PW_RMA_WRITE };

static unsigned char buffer[LENGTH], found[LENGTH];

static void put_word(struct pw_rma_key *key, uint64_t word, uint64_t offset)
{
    DONE(pw_rma_put(key, &word, 8, offset, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
}

static uint64_t get_word(struct pw_rma_key *key, uint64_t offset)
{
    uint64_t word;
    DONE(pw_rma_get(key, &word, 8, offset, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    return word;
}

static void moves(struct pw_rma_key *key, const unsigned char *memory, struct pw_rma *rma)
{
    struct pw_rma_request request;
    uint64_t state = 7, before = messages_of(rma);
    CHECK_EQ(pw_rma_path(key, PW_RMA_PUT, PW_RMA_UINT8), PW_RMA_DIRECT);
    CHECK_EQ(pw_rma_path(key, PW_RMA_SUM, PW_RMA_DOUBLE), PW_RMA_DIRECT);
    CHECK_EQ(pw_rma_path(key, PW_RMA_SUM, PW_RMA_LONG_DOUBLE), PW_RMA_NATIVE);
    for (size_t n = 0; n < 3000; n += n < 70 ? 1 : 97) {
        size_t at = splitmix(&state) % (LENGTH - n);
        ptest_fill(buffer, n, (unsigned)n);
        bool over = false;
        DONE(pw_rma_put(key, buffer, n, at, &request));
        DONE(pw_rma_test(&request, &over));
        CHECK(over);
        CHECK(memory == NULL || memcmp(memory + at, buffer, n) == 0);
        memset(found, 0, n);
        DONE(pw_rma_get(key, found, n, at, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        CHECK_FILL(found, n, (unsigned)n);
    }
    CHECK_EQ(messages_of(rma), before);
    REFUSED(pw_rma_put(key, buffer, 8, LENGTH - 7, NULL), EINVAL);
}

PTEST_MATCHING(mapped, 2)
{
    struct ends e;
    unsigned char *memory;
    ends_open(&e, kind, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    CHECK_BYTES(memory, LENGTH, 0);
    key_show(region);
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 0);
    if (rank == 1) {
        moves(key, NULL, e.rma);
        put_word(key, 77, 4096);
    }
    BARRIER();
    if (rank == 0) {
        CHECK_EQ(*(uint64_t *)(void *)(memory + 4096), 77);
        moves(key, memory, e.rma);
    }
    BARRIER();
    pw_rma_key_close(key);
    region_end(region);
    ends_close(&e);
}

/* What may only be read is mapped so that it can only be read. */
PTEST(rights, 2)
{
    struct ends e;
    uint64_t *memory, word = 1;
    void *at;
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, PW_RMA_READ, &memory);
    memory[3] = 5;
    key_show(region);
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 1 - rank);
    REFUSED(pw_rma_put(key, &word, 8, 24, NULL), EACCES);
    REFUSED(pw_rma_fetch_op(key, &word, &word, 24, PW_RMA_SUM, PW_RMA_UINT64, NULL), EACCES);
    CHECK_EQ(get_word(key, 24), 5);
    CHECK_EQ(messages_of(e.rma), 0);
    DONE(pw_rma_map(key, &at));
    pid_t child = fork(); /* to see what a store there does */
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        *(volatile uint64_t *)at = 1;
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    BARRIER();
    pw_rma_key_close(key);
    region_end(region);
    ends_close(&e);
}

/* All ranks draw from one word, by instructions, by messages and by atomics of the owner. */
PTEST(tickets, 4)
{
    enum { EACH = 3000, WORDS = 4 * EACH + 8 };
    struct ends e;
    uint64_t *memory = NULL;
    struct pw_rma_region *region = NULL;
    ends_open(&e, KIND_ML, rank, size);
    if (rank == 0) {
        region = region_shared(e.rma, WORDS * 8, BOTH, &memory);
        key_show(region);
    }
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 0);
    if (rank == 1) {
        DONE(pw_rma_key_limit(key, PW_RMA_NATIVE));
    }
    CHECK_EQ(pw_rma_path(key, PW_RMA_SUM, PW_RMA_UINT64),
             rank == 1 ? PW_RMA_NATIVE : PW_RMA_DIRECT);
    for (int i = 0; i < EACH; i++) {
        uint64_t one = 1, ticket, half;
        if (rank == 0) {
            ticket = __atomic_fetch_add(&memory[0], 1, __ATOMIC_SEQ_CST);
        } else {
            DONE(pw_rma_fetch_op(key, &one, &ticket, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(key)));
        }
        CHECK(ticket < 4 * EACH);
        DONE(pw_rma_accumulate(key, &one, 1, 8 * (8 + ticket), PW_RMA_SUM, PW_RMA_UINT64, NULL));
        do { /* a sum by compare_swap, beside */
            DONE(pw_rma_get(key, &half, 8, 8, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(key)));
            one = half + 1;
            DONE(pw_rma_compare_swap(key, &one, &half, &ticket, 8, PW_RMA_UINT64, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(key)));
        } while (ticket != half);
        double real = 1;
        DONE(pw_rma_accumulate(key, &real, 1, 16, PW_RMA_SUM, PW_RMA_DOUBLE, NULL));
    }
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    BARRIER();
    if (rank == 0) {
        CHECK_EQ(memory[0], 4 * EACH);
        CHECK_EQ(memory[1], 4 * EACH);
        CHECK(*(double *)&memory[2] == 4.0 * EACH);
        for (int i = 0; i < 4 * EACH; i++) {
            CHECK_EQ(memory[8 + i], 1);
        }
    }
    pw_rma_key_close(key);
    BARRIER();
    if (rank == 0) {
        region_end(region);
    }
    ends_close(&e);
}

/* The owner is stopped with a message to it under way: later atomics must not overtake that. */
PTEST_OWN(order, 2, "stops")
{
    struct ends e;
    uint64_t *memory = NULL;
    void *at;
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, 4096, BOTH, &memory);
    key_show(region);
    ptest_show(20, (uint64_t)getpid());
    BARRIER();
    if (rank == 0) {
        struct pw_rma_key *key = key_of(e.rma, 1);
        pid_t owner = (pid_t)ptest_look(1, 20);
        const uint64_t two[2] = {7, 7}, one = 1;
        DONE(pw_rma_map(key, &at));
        volatile uint64_t *words = at;
        DONE(pw_rma_accumulate(key, two, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        CHECK_EQ(words[0], 7);
        CHECK_EQ(kill(owner, SIGSTOP), 0);
        /* by a message, since it is long: replaces both words */
        DONE(pw_rma_accumulate(key, two, 1, 0, PW_RMA_REPLACE, PW_RMA_DOUBLE_COMPLEX, NULL));
        DONE(pw_rma_accumulate(key, &one, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        CHECK_EQ(words[0], 7);
        DONE(pw_rma_put(key, &one, 8, 64, NULL)); /* puts are in no order */
        CHECK_EQ(words[8], 1);
        CHECK_EQ(kill(owner, SIGCONT), 0);
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        CHECK_EQ(words[0], 8);
        CHECK_EQ(words[1], 7);
        uint64_t before = messages_of(e.rma);
        DONE(pw_rma_accumulate(key, &one, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        CHECK_EQ(messages_of(e.rma), before); /* direct again */
        CHECK_EQ(words[0], 9);
        pw_rma_key_close(key);
    }
    BARRIER();
    region_end(region);
    ends_close(&e);
}

/* The region goes, and later its process; the key of it stays. */
PTEST(gone, 2)
{
    struct ends e;
    uint64_t *memory, word = 9;
    void *at;
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    memory[1] = 3;
    key_show(region);
    BARRIER();
    struct pw_rma_key *key = key_of(e.rma, 1 - rank), *own = key_of(e.rma, rank);
    struct pw_rma_key *late = key_of(e.rma, 1 - rank);
    CHECK_EQ(get_word(key, 8), 3);
    CHECK_EQ(get_word(own, 8), 3);
    DONE(pw_rma_map(key, &at));
    BARRIER();
    region_end(region);
    BARRIER();
    for (int i = 0; i < 3; i++) {
        struct pw_rma_key *one = i == 0 ? key : i == 1 ? own : late;
        DONE(pw_rma_put(one, &word, 8, 8, NULL));
        REFUSED(pw_rma_flush(pw_rma_key_peer(one)), ESTALE);
        DONE(pw_rma_accumulate(one, &word, 1, 8, PW_RMA_SUM, PW_RMA_UINT64, NULL));
        REFUSED(pw_rma_flush(pw_rma_key_peer(one)), ESTALE);
    }
    CHECK_EQ(((uint64_t *)at)[1], 3); /* what the user was handed stays until the key is closed */
    REFUSED(pw_rma_map(late, &at), ESTALE);
    pw_rma_key_close(key);
    pw_rma_key_close(own);
    pw_rma_key_close(late);
    ends_close(&e);
}

/* ---- Owners that are processes of their own ---- */

struct owner {
    pid_t pid;
    int go; /* a byte here makes it end orderly */
    unsigned char key[PW_RMA_KEY];
};

/* With `poor` there is no descriptor left when it takes the memory. */
static void be_owner(int out, int in, bool poor)
{
    struct port p;
    unsigned char key[PW_RMA_KEY];
    uint64_t *memory;
    memset(&p, 0, sizeof(p));
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    struct pw_rma *rma = rma_open(&p);
    struct rlimit r, least = {0, 0};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    least.rlim_max = r.rlim_max;
    if (poor) {
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &least), 0);
    }
    struct pw_rma_region *region = region_shared(rma, LENGTH, BOTH, &memory);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    memory[2] = 11;
    DONE(pw_rma_key_pack(region, key, sizeof(key)));
    CHECK_EQ(write(out, key, sizeof(key)), sizeof(key));
    char byte;
    CHECK_EQ(read(in, &byte, 1), 1);
    region_end(region);
    DONE(pw_rma_close(rma));
    OK(PtlNIFini(p.ni));
    PtlFini();
    _exit(0);
}

static struct owner start_owner(bool poor)
{
    struct owner o;
    int there[2], back[2];
    CHECK_EQ(pipe(there) | pipe(back), 0);
    o.pid = fork();
    CHECK(o.pid >= 0);
    if (o.pid == 0) {
        close(there[1]);
        be_owner(back[1], there[0], poor);
    }
    CHECK_EQ(read(back[0], o.key, sizeof(o.key)), sizeof(o.key));
    close(back[0]);
    close(back[1]);
    close(there[0]);
    o.go = there[1];
    return o;
}

static void end_owner(const struct owner *o, int status)
{
    int got;
    if (status == 0) {
        CHECK_EQ(write(o->go, "", 1), 1);
    }
    close(o->go);
    CHECK_EQ(waitpid(o->pid, &got, 0), o->pid);
    CHECK_EQ(got, status);
}

static struct pw_rma_key *key_to(struct pw_rma *rma, const struct owner *o)
{
    struct pw_rma_key *key;
    DONE(pw_rma_key_open(rma, o->key, sizeof(o->key), &key));
    return key;
}

PTEST_OWN(killed, 1, "forks")
{
    struct ends e;
    struct owner o = start_owner(false);
    uint64_t word = 4;
    void *at;
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *key = key_to(e.rma, &o), *late = key_to(e.rma, &o);
    put_word(key, 4, 0);
    DONE(pw_rma_map(key, &at));
    CHECK_EQ(messages_of(e.rma), 0);
    DONE(pw_rma_put(key, &word, 8, 8, NULL));
    kill(o.pid, SIGKILL);
    end_owner(&o, SIGKILL);
    REFUSED(pw_rma_flush(pw_rma_key_peer(key)), EPIPE); /* nobody knows whether it was seen */
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    DONE(pw_rma_put(key, &word, 8, 8, NULL));
    REFUSED(pw_rma_flush(pw_rma_key_peer(key)), EPIPE);
    DONE(pw_rma_put(late, &word, 8, 8, NULL));
    REFUSED(pw_rma_flush(pw_rma_key_peer(late)), EPIPE);
    CHECK_EQ(((uint64_t *)at)[2], 11);
    pw_rma_key_close(key);
    pw_rma_key_close(late);
    ends_close(&e);
}

/* One that is stopped before anybody has asked for its memory is reached by messages. */
PTEST_OWN(stopped, 1, "forks")
{
    struct ends e;
    struct owner o = start_owner(false);
    struct pw_rma_request request;
    uint64_t word = 4;
    void *at;
    bool over;
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *key = key_to(e.rma, &o), *later;
    kill(o.pid, SIGSTOP);
    CHECK_EQ(waitpid(o.pid, NULL, WUNTRACED), o.pid);
    DONE(pw_rma_put(key, &word, 8, 0, &request));
    DONE(pw_rma_test(&request, &over));
    CHECK(!over);
    REFUSED(pw_rma_map(key, &at), ETIMEDOUT);
    kill(o.pid, SIGCONT);
    DONE(pw_rma_wait(&request));
    later = key_to(e.rma, &o);
    DONE(pw_rma_map(later, &at));
    CHECK_EQ(((uint64_t *)at)[0], 4);
    pw_rma_key_close(key);
    pw_rma_key_close(later);
    ends_close(&e);
    end_owner(&o, 0);
}

/* The owner has no descriptor left; then this process has none. */
PTEST_OWN(descriptors, 1, "forks")
{
    struct ends e;
    struct owner o = start_owner(true), other = start_owner(false);
    struct rlimit before, none = {0, 0};
    void *at;
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *key = key_to(e.rma, &o), *there = key_to(e.rma, &other);
    REFUSED(pw_rma_map(key, &at), ENOTSUP);
    CHECK_EQ(pw_rma_path(key, PW_RMA_PUT, PW_RMA_UINT8), PW_RMA_NATIVE);
    put_word(key, 3, 8);
    CHECK_EQ(get_word(key, 8), 3);
    CHECK_EQ(get_word(key, 16), 11);
    put_word(there, 5, 8);
    struct pw_rma_key *again = key_to(e.rma, &other), *slow = key_to(e.rma, &other);
    DONE(pw_rma_key_limit(slow, PW_RMA_NATIVE));
    CHECK_EQ(get_word(slow, 8), 5); /* the interfaces know each other */
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    REFUSED(pw_rma_map(again, &at), EMFILE);
    CHECK_EQ(get_word(again, 8), 5); /* by messages */
    CHECK_EQ(get_word(there, 8), 5); /* as before */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    pw_rma_key_close(key);
    pw_rma_key_close(there);
    pw_rma_key_close(again);
    pw_rma_key_close(slow);
    ends_close(&e);
    end_owner(&other, 0);
    end_owner(&o, 0);
}

/* Beyond the bound nothing is mapped; when there is room again, it is. */
PTEST_OWN(bound, 1, "sets a variable")
{
    struct ends e;
    uint64_t *memory;
    void *at;
    CHECK_EQ(setenv("PINWHEEL_RMA_MAP", "150000", 1), 0);
    CHECK_EQ(setenv("PINWHEEL_RMA_LAZY", "0", 1), 0);
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    key_show(region);
    struct pw_rma_key *keys[3] = {key_of(e.rma, 0), key_of(e.rma, 0), key_of(e.rma, 0)};
    DONE(pw_rma_map(keys[0], &at));
    REFUSED(pw_rma_map(keys[1], &at), E2BIG);
    put_word(keys[1], 8, 8);
    CHECK_EQ(memory[1], 8);
    pw_rma_key_close(keys[0]);
    DONE(pw_rma_map(keys[2], &at));
    pw_rma_key_close(keys[1]);
    pw_rma_key_close(keys[2]);
    region_end(region);
    ends_close(&e);
    CHECK_EQ(setenv("PINWHEEL_RMA_PATH", "native", 1), 0);
    ends_open(&e, KIND_ML, rank, size);
    region = region_shared(e.rma, LENGTH, BOTH, &memory);
    key_show(region);
    keys[0] = key_of(e.rma, 0);
    REFUSED(pw_rma_map(keys[0], &at), ECANCELED);
    pw_rma_key_close(keys[0]);
    region_end(region);
    ends_close(&e);
}

/* More than there is: an error, for each of those who would take it. */
PTEST(too_much, 2)
{
    struct ends e;
    struct pw_rma_region *region;
    void *start;
    ends_open(&e, KIND_ML, rank, size);
    REFUSED(pw_rma_allocate(e.rma, SIZE_MAX - 5000, BOTH, &start, &region), ENOMEM);
    REFUSED(pw_rma_allocate(e.rma, (size_t)1 << 46, BOTH, &start, &region), ENOMEM);
    REFUSED(pw_rma_room(UINT64_MAX), ENOMEM);
    REFUSED(pw_rma_room((uint64_t)1 << 46), ENOMEM);
    DONE(pw_rma_room(1 << 20));
    region = region_shared(e.rma, 0, BOTH, &start);
    region_end(region);
    ends_close(&e);
}

/* Memory that the program has mapped itself: here its own. */
PTEST(own_mapping, 1)
{
    static _Alignas(64) unsigned char memory[LENGTH];
    struct ends e;
    const uint64_t one = 1;
    uint64_t was = 9;
    const long double many = 3;
    ends_serve(&e, KIND_MP, rank, size, 0, memory, LENGTH, BOTH);
    struct pw_rma_key *limited = key_of(e.rma, 0), *late = key_of(e.rma, 0);
    REFUSED(pw_rma_key_memory(e.key, NULL), EINVAL);
    DONE(pw_rma_key_memory(e.key, memory));
    REFUSED(pw_rma_key_memory(e.key, memory), EBUSY);
    moves(e.key, memory, e.rma);
    memset(memory, 0, 64);
    uint64_t before = messages_of(e.rma);
    DONE(pw_rma_fetch_op(e.key, &one, &was, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
    CHECK_EQ(was, 0);
    CHECK_EQ(memory[0], 1);
    CHECK_EQ(messages_of(e.rma), before);
    /* what only the interface does goes there */
    DONE(pw_rma_accumulate(e.key, &many, 1, 16, PW_RMA_SUM, PW_RMA_LONG_DOUBLE, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(e.key)));
    CHECK_EQ(messages_of(e.rma), before + 1);
    CHECK_EQ(memcmp(memory + 16, &many, 10), 0);
    /* a key whose operations may not be direct, and one that is known not to be mapped */
    DONE(pw_rma_key_limit(limited, PW_RMA_NATIVE));
    REFUSED(pw_rma_key_memory(limited, memory), ECANCELED);
    put_word(late, 5, 8);
    REFUSED(pw_rma_key_memory(late, memory), EBUSY);
    CHECK_EQ(memory[8], 5);
    pw_rma_key_close(limited);
    pw_rma_key_close(late);
    ends_served(&e);
}
