/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Soak: random puts and gets between processes, compared with a model.
 *
 *   window of a process   | of rank 0, NI 0 | of rank 0, NI 1 | of rank 1, NI 0 | ...
 *
 * Each rank writes only to its own regions of the others' windows, and keeps a
 * model of each: what that memory holds once all it has sent has arrived. A put
 * sends the model's own bytes, so it must not be changed while a put from there
 * is under way. A get is compared with the model as it was when the get was
 * issued: puts before it must have been seen, puts after it must not.
 * Sizes are log-uniform up to 4 MiB, offsets uniform; the seed decides all.
 *
 * Usage: soak SEED COUNT [PROCESSES]
 */
#include "portals4.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_RANKS 8
#define NIS 2
#define LARGEST (4u << 20)
#define REGION (LARGEST + (512u << 10))
#define IN_FLIGHT 8
#define STUCK_SECONDS 120

#define NEED(call)                                                                                 \
    do {                                                                                           \
        int need_rc = (call);                                                                      \
        if (need_rc != PTL_OK) {                                                                   \
            fprintf(stderr, "rank %d: %s gives %d (line %d)\n", rank, #call, need_rc, __LINE__);   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct shared {
    _Atomic int arrived, generation;
    ptl_process_t id[MAX_RANKS];
    _Atomic uint64_t landed[MAX_RANKS][NIS]; /* messages sent to a rank */
};

struct flight {
    enum { FREE, PUT, GET } kind;
    int to, ni;
    size_t offset, length;
    unsigned char *landing, *expected; /* GET */
};

static struct shared *shared;
static int rank, ranks;
static uint64_t random_state;
static unsigned char *window, *model[MAX_RANKS][NIS];
static ptl_handle_ni_t ni[NIS];
static ptl_handle_eq_t eq[NIS];
static ptl_handle_ct_t landed[NIS];
static ptl_handle_md_t md[NIS];
static struct flight flights[IN_FLIGHT];
static uint64_t issued[MAX_RANKS][NIS];

static uint64_t next_random(void)
{
    uint64_t x = random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return random_state = x;
}

static void barrier(void)
{
    int generation = atomic_load(&shared->generation);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == ranks) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->generation, 1);
    }
    while (atomic_load(&shared->generation) == generation) {
        usleep(200);
    }
}

static size_t region_offset(int of, int n)
{
    return ((size_t)of * NIS + (size_t)n) * REGION;
}

/* One NI with matching and physical ids, one without and with ranks. */
static void open_interface(int n)
{
    unsigned options =
        n == 0 ? PTL_NI_MATCHING | PTL_NI_PHYSICAL : PTL_NI_NO_MATCHING | PTL_NI_LOGICAL;
    NEED(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni[n]));
    if (n == 0) {
        NEED(PtlGetPhysId(ni[n], &shared->id[rank]));
        barrier();
    } else {
        NEED(PtlSetMap(ni[n], (ptl_size_t)ranks, shared->id));
    }
    ptl_pt_index_t pt;
    ptl_handle_le_t entry;
    NEED(PtlEQAlloc(ni[n], 64, &eq[n]));
    NEED(PtlCTAlloc(ni[n], &landed[n]));
    NEED(PtlPTAlloc(ni[n], 0, PTL_EQ_NONE, 3, &pt));
    ptl_me_t me = {.start = window,
                   .length = (size_t)ranks * NIS * REGION,
                   .ct_handle = landed[n],
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = 0x50ac};
    if (n == 0) {
        NEED(PtlMEAppend(ni[n], pt, &me, PTL_PRIORITY_LIST, NULL, &entry));
    } else {
        NEED(PtlLEAppend(ni[n], pt, (ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL, &entry));
    }
    ptl_md_t all = {NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, eq[n], PTL_CT_NONE};
    NEED(PtlMDBind(ni[n], &all, &md[n]));
}

static void finish(struct flight *f, const ptl_event_t *e)
{
    if (e->ni_fail_type != PTL_NI_OK || e->mlength != f->length) {
        fprintf(stderr,
                "rank %d: %s of %zu bytes to rank %d ends with fail type %d, mlength %llu\n", rank,
                f->kind == PUT ? "put" : "get", f->length, f->to, e->ni_fail_type,
                (unsigned long long)e->mlength);
        exit(1);
    }
    if (f->kind == GET && memcmp(f->landing, f->expected, f->length) != 0) {
        size_t at = 0;
        while (f->landing[at] == f->expected[at]) {
            at++;
        }
        fprintf(stderr,
                "rank %d: get of %zu bytes at %zu of rank %d, NI %d: byte %zu is %02x, not %02x\n",
                rank, f->length, f->offset, f->to, f->ni, at, f->landing[at], f->expected[at]);
        exit(1);
    }
    f->kind = FREE;
}

/* Waits for one answer. */
static void wait_one(void)
{
    ptl_event_t e;
    int busy = -1;
    for (int i = 0; i < IN_FLIGHT; i++) {
        busy = flights[i].kind != FREE ? flights[i].ni : busy;
    }
    if (busy < 0) {
        return;
    }
    NEED(PtlEQWait(eq[busy], &e));
    finish(e.user_ptr, &e);
}

static bool in_flight(void)
{
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (flights[i].kind != FREE) {
            return true;
        }
    }
    return false;
}

static void wait_all(void)
{
    while (in_flight()) {
        wait_one();
    }
}

static struct flight *free_flight(void)
{
    for (;;) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            if (flights[i].kind == FREE) {
                return &flights[i];
            }
        }
        wait_one();
    }
}

/* A put's bytes are sent from the model: they must not change meanwhile. */
static bool collides(int to, int n, size_t offset, size_t length)
{
    for (int i = 0; i < IN_FLIGHT; i++) {
        const struct flight *f = &flights[i];
        if (f->kind == PUT && f->to == to && f->ni == n && offset < f->offset + f->length &&
            f->offset < offset + length) {
            return true;
        }
    }
    return false;
}

static void fill(unsigned char *at, size_t length)
{
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t r = next_random();
        memcpy(at + i, &r, 8);
    }
    for (; i < length; i++) {
        at[i] = (unsigned char)next_random();
    }
}

static size_t random_length(void)
{
    unsigned bits = (unsigned)(next_random() % 23); /* 2^22 is the largest */
    size_t length = bits == 0
                        ? next_random() % 2
                        : ((size_t)1 << (bits - 1)) + next_random() % ((size_t)1 << (bits - 1));
    return bits == 22 && next_random() % 4 == 0 ? LARGEST : length;
}

static void issue(void)
{
    int to = (int)(next_random() % (unsigned)ranks), n = (int)(next_random() % NIS);
    size_t length = random_length(), offset = next_random() % (REGION - length + 1);
    ptl_process_t target = shared->id[to];
    ptl_match_bits_t bits = 0x50ac;
    if (n == 1) {
        target.rank = (ptl_rank_t)to;
    }
    bool put = next_random() % 2 == 0;
    while (put && collides(to, n, offset, length)) {
        wait_one();
    }
    struct flight *f = free_flight();
    *f = (struct flight){put ? PUT : GET, to, n, offset, length, f->landing, f->expected};
    issued[to][n]++;
    size_t remote = region_offset(rank, n) + offset;
    unsigned char *mine = model[to][n] + offset;
    if (put) {
        fill(mine, length);
        NEED(PtlPut(md[n], (ptl_size_t)(uintptr_t)mine, length, PTL_ACK_REQ, target, 3, bits,
                    remote, f, 0));
    } else {
        memcpy(f->expected, mine, length);
        NEED(PtlGet(md[n], (ptl_size_t)(uintptr_t)f->landing, length, target, 3, bits, remote, f));
    }
}

/* The end: every region once more, whole, and the counts. */
static void verify(void)
{
    for (int to = 0; to < ranks; to++) {
        for (int n = 0; n < NIS; n++) {
            for (size_t at = 0; at < REGION; at += LARGEST) {
                struct flight *f = free_flight();
                size_t length = REGION - at < LARGEST ? REGION - at : LARGEST;
                ptl_process_t target = shared->id[to];
                if (n == 1) {
                    target.rank = (ptl_rank_t)to;
                }
                *f = (struct flight){GET, to, n, at, length, f->landing, f->expected};
                memcpy(f->expected, model[to][n] + at, length);
                issued[to][n]++;
                NEED(PtlGet(md[n], (ptl_size_t)(uintptr_t)f->landing, length, target, 3, 0x50ac,
                            region_offset(rank, n) + at, f));
            }
            atomic_fetch_add(&shared->landed[to][n], issued[to][n]);
        }
    }
    wait_all();
    barrier();
    for (int n = 0; n < NIS; n++) {
        ptl_ct_event_t value;
        NEED(PtlCTWait(landed[n], atomic_load(&shared->landed[rank][n]), &value));
        if (value.success != atomic_load(&shared->landed[rank][n]) || value.failure != 0) {
            fprintf(stderr, "rank %d: counted %llu messages and %llu failures, %llu were sent\n",
                    rank, (unsigned long long)value.success, (unsigned long long)value.failure,
                    (unsigned long long)atomic_load(&shared->landed[rank][n]));
            exit(1);
        }
    }
}

static void *must_map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static int run(uint64_t seed, long count)
{
    random_state = seed * 0x9e3779b97f4a7c15ull + (uint64_t)rank * 0xbf58476d1ce4e5b9ull + 1;
    window = calloc((size_t)ranks * NIS, REGION);
    for (int i = 0; i < ranks * NIS; i++) {
        model[i / NIS][i % NIS] = calloc(1, REGION);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        flights[i].landing = malloc(LARGEST);
        flights[i].expected = malloc(LARGEST);
    }
    NEED(PtlInit());
    for (int n = 0; n < NIS; n++) {
        open_interface(n);
    }
    barrier();
    for (long i = 0; i < count; i++) {
        alarm(STUCK_SECONDS); /* a message that never ends kills the rank */
        issue();
    }
    wait_all();
    verify();
    alarm(0);
    barrier();
    for (int n = 0; n < NIS; n++) {
        NEED(PtlNIFini(ni[n]));
    }
    PtlFini();
    free(window);
    for (int i = 0; i < ranks * NIS; i++) {
        free(model[i / NIS][i % NIS]);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        free(flights[i].landing);
        free(flights[i].expected);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s SEED COUNT [PROCESSES]\n", argv[0]);
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10);
    long count = strtol(argv[2], NULL, 10);
    ranks = argc > 3 ? atoi(argv[3]) : 4;
    if (count < 1 || ranks < 1 || ranks > MAX_RANKS) {
        fprintf(stderr, "soak: COUNT from 1, PROCESSES from 1 to %d\n", MAX_RANKS);
        return 2;
    }
    shared = must_map(sizeof(*shared));
    printf("soak: seed %llu, %ld operations, %d processes\n", (unsigned long long)seed, count,
           ranks);
    fflush(stdout);
    for (rank = 0; rank < ranks; rank++) {
        if (fork() == 0) {
            exit(run(seed, count / ranks));
        }
    }
    int bad = 0, status;
    for (int i = 0; i < ranks; i++) {
        if (wait(&status) > 0 && status != 0) {
            fprintf(stderr, "soak: a process ended with status 0x%x\n", status);
            kill(0, SIGTERM);
            bad = 1;
        }
    }
    printf("%d passed, %d failed\n", !bad, bad);
    return bad;
}
