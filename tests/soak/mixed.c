/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mixed soak: random puts and gets among PROCESSES processes, over all four
 * kinds of interface at once, compared with a model byte by byte.
 *
 *     soak_mixed SEED COUNT        COUNT operations of all processes together
 *
 * Each process owns a window with one region for each process, itself included;
 * only that process writes there, so it alone knows what the region holds: its
 * model of it. A put takes bytes from anywhere in a constant array that all have,
 * and changes the model when it is started. A get reads from the process's own
 * region and is compared with the model as it was then: requests between two
 * processes are carried out in the order of their calls, on whichever interface.
 * In the end every region is fetched whole, and events and counters are summed.
 */
#include "../ok.h"
#include "../splitmix.h"

#include "portals4.h"

#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES = 4,
    KINDS = 4,
    LENGTH_BITS = 22, /* lengths to 4 MiB, log-uniform */
    LENGTH_MAX = 1 << LENGTH_BITS,
    REGION = LENGTH_MAX + (3 << 20),
    IN_FLIGHT = 64,
    STILL_MS = 60000
};
#define BYTES_IN_FLIGHT (24ull << 20)

static struct shared {
    struct {
        ptl_nid_t nid;
        ptl_pid_t pid;
    } id[PROCESSES];
    atomic_int arrived, generation;
    atomic_bool failed;
    /* what each process has started at each other one */
    _Atomic uint64_t puts[PROCESSES][PROCESSES], put_bytes[PROCESSES][PROCESSES];
    _Atomic uint64_t gets[PROCESSES][PROCESSES], get_bytes[PROCESSES][PROCESSES];
    _Atomic uint64_t progress[PROCESSES];
} * shared;

static int me;
static uint64_t seed, count;
static unsigned char *constants; /* 2 x LENGTH_MAX */
static unsigned char *window, *model[PROCESSES];

/* One kind of interface with its objects; all share windows and models. */
static struct face {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq, mdeq;
    ptl_handle_ct_t acked, replied, served;
    ptl_handle_md_t put_md, get_md;
    ptl_process_t to[PROCESSES];
    uint64_t ct_acks, ct_replies; /* expected */
} face[KINDS];

enum { WANT_SEND = 1, WANT_ACK = 2, WANT_REPLY = 4 };

static struct op {
    unsigned wants; /* events still to come */
    size_t length;
    unsigned char *got, *expected; /* of a get */
} ops[IN_FLIGHT];

static unsigned free_ops[IN_FLIGHT], free_count;
static uint64_t bytes_in_flight, ended;
static uint64_t served_puts, served_put_bytes, served_gets, served_get_bytes;

static _Noreturn void fail(const char *format, ...)
{
    char what[384], text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    int n = snprintf(text, sizeof(text), "seed %llu, process %d, after %llu operations: %s\n",
                     (unsigned long long)seed, me, (unsigned long long)ended, what);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) {
        _exit(2);
    }
    atomic_store(&shared->failed, true);
    _exit(1);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *memory(size_t n)
{
    void *p = calloc(1, n != 0 ? n : 1);
    if (p == NULL) {
        fail("no memory for %zu bytes", n);
    }
    return p;
}

static void pump(void);

/* Waits for all processes, serving meanwhile. */
static void barrier(void)
{
    int generation = atomic_load(&shared->generation);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == PROCESSES) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->generation, 1);
    }
    while (atomic_load(&shared->generation) == generation) {
        pump();
    }
}

/* ---- set-up ---- */

static ptl_handle_md_t bind(const struct face *f, unsigned options, ptl_handle_ct_t ct)
{
    ptl_md_t md = {NULL, PTL_SIZE_MAX, options, f->mdeq, ct};
    ptl_handle_md_t handle;
    OK(PtlMDBind(f->ni, &md, &handle));
    return handle;
}

static void append(struct face *f, bool matching, bool logical)
{
    ptl_pt_index_t pt;
    ptl_handle_me_t handle;
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.start = window;
    e.length = (size_t)PROCESSES * REGION;
    e.ct_handle = f->served;
    e.uid = PTL_UID_ANY;
    e.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM;
    if (logical) {
        e.match_id.rank = PTL_RANK_ANY;
    } else {
        e.match_id.phys.nid = PTL_NID_ANY;
        e.match_id.phys.pid = PTL_PID_ANY;
    }
    e.ignore_bits = ~(ptl_match_bits_t)0;
    OK(PtlPTAlloc(f->ni, 0, f->eq, 0, &pt));
    if (matching) {
        OK(PtlMEAppend(f->ni, pt, &e, PTL_PRIORITY_LIST, NULL, &handle));
    } else {
        ptl_le_t le = {e.start, e.length, e.ct_handle, e.uid, e.options};
        OK(PtlLEAppend(f->ni, pt, &le, PTL_PRIORITY_LIST, NULL, &handle));
    }
}

static void open_faces(void)
{
    OK(PtlInit());
    for (unsigned k = 0; k < KINDS; k++) {
        struct face *f = &face[k];
        OK(PtlNIInit(PTL_IFACE_DEFAULT,
                     (k & 1 ? PTL_NI_NO_MATCHING : PTL_NI_MATCHING) |
                         (k & 2 ? PTL_NI_PHYSICAL : PTL_NI_LOGICAL),
                     PTL_PID_ANY, NULL, NULL, &f->ni));
        OK(PtlEQAlloc(f->ni, 1 << 16, &f->eq));
        OK(PtlEQAlloc(f->ni, 1 << 12, &f->mdeq));
        OK(PtlCTAlloc(f->ni, &f->acked));
        OK(PtlCTAlloc(f->ni, &f->replied));
        OK(PtlCTAlloc(f->ni, &f->served));
        f->put_md = bind(f, PTL_MD_EVENT_CT_ACK, f->acked);
        f->get_md = bind(f, PTL_MD_EVENT_CT_REPLY, f->replied);
    }
    ptl_process_t id;
    OK(PtlGetPhysId(face[0].ni, &id));
    shared->id[me].nid = id.phys.nid;
    shared->id[me].pid = id.phys.pid;
    barrier();
    ptl_process_t map[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        map[i].phys.nid = shared->id[i].nid;
        map[i].phys.pid = shared->id[i].pid;
    }
    for (unsigned k = 0; k < KINDS; k++) {
        for (unsigned i = 0; i < PROCESSES; i++) {
            face[k].to[i] = map[i];
            if ((k & 2) == 0) {
                face[k].to[i] = (ptl_process_t){.rank = i};
            }
        }
        if ((k & 2) == 0) {
            OK(PtlSetMap(face[k].ni, PROCESSES, map));
        }
        append(&face[k], (k & 1) == 0, (k & 2) == 0);
    }
    barrier();
}

/* ---- events ---- */

static void end_op(unsigned i)
{
    struct op *op = &ops[i];
    bytes_in_flight -= op->length;
    if (op->got != NULL) {
        if (memcmp(op->got, op->expected, op->length) != 0) {
            size_t at = 0;
            while (op->got[at] == op->expected[at]) {
                at++;
            }
            fail("a get of %zu bytes: byte %zu is 0x%02x, not 0x%02x", op->length, at, op->got[at],
                 op->expected[at]);
        }
        free(op->got);
        free(op->expected);
    }
    memset(op, 0, sizeof(*op));
    free_ops[free_count++] = i;
    ended++;
    atomic_fetch_add_explicit(&shared->progress[me], 1, memory_order_relaxed);
}

static void initiator_event(const ptl_event_t *e)
{
    unsigned i = (unsigned)(uintptr_t)e->user_ptr;
    unsigned what = e->type == PTL_EVENT_SEND  ? WANT_SEND
                    : e->type == PTL_EVENT_ACK ? WANT_ACK
                                               : WANT_REPLY;
    if (e->ni_fail_type != PTL_NI_OK) {
        fail("event type %d of operation %u has ni_fail_type %d", e->type, i, e->ni_fail_type);
    }
    if (i >= IN_FLIGHT || (ops[i].wants & what) == 0) {
        fail("event type %d of operation %u was not due", e->type, i);
    }
    if (what != WANT_SEND && e->mlength != ops[i].length) {
        fail("%llu of %zu bytes", (unsigned long long)e->mlength, ops[i].length);
    }
    ops[i].wants &= ~what;
    if (ops[i].wants == 0) {
        end_op(i);
    }
}

static void target_event(const ptl_event_t *e)
{
    if (e->ni_fail_type != PTL_NI_OK || e->mlength != e->rlength) {
        fail("a served operation: ni_fail_type %d, %llu of %llu bytes", e->ni_fail_type,
             (unsigned long long)e->mlength, (unsigned long long)e->rlength);
    }
    bool put = e->type == PTL_EVENT_PUT;
    served_puts += put;
    served_gets += !put;
    *(put ? &served_put_bytes : &served_get_bytes) += e->mlength;
}

static void pump(void)
{
    for (unsigned k = 0; k < KINDS; k++) {
        ptl_handle_eq_t queues[] = {face[k].eq, face[k].mdeq};
        ptl_event_t e;
        unsigned which;
        if (face[k].mdeq == 0) {
            continue; /* not yet open */
        }
        int code;
        while ((code = PtlEQPoll(queues, 2, 0, &e, &which)) == PTL_OK) {
            if (which == 0) {
                target_event(&e);
            } else {
                initiator_event(&e);
            }
        }
        if (code != PTL_EQ_EMPTY) {
            fail("PtlEQPoll gives %d", code);
        }
    }
    if (atomic_load_explicit(&shared->failed, memory_order_relaxed)) {
        _exit(3);
    }
}

/* Serves until fewer than `most` operations and few bytes are under way. */
static void wait_for_room(unsigned most, uint64_t bytes)
{
    uint64_t before = 0, since = now_ms();
    while (IN_FLIGHT - free_count >= most ||
           (bytes != 0 && bytes_in_flight + bytes > BYTES_IN_FLIGHT && free_count != IN_FLIGHT)) {
        pump();
        uint64_t sum = 0;
        for (unsigned i = 0; i < PROCESSES; i++) {
            sum += atomic_load_explicit(&shared->progress[i], memory_order_relaxed);
        }
        if (sum != before) {
            before = sum;
            since = now_ms();
        } else if (now_ms() - since > STILL_MS) {
            fail("nothing moves: %u operations, %llu bytes under way", IN_FLIGHT - free_count,
                 (unsigned long long)bytes_in_flight);
        }
    }
}

/* ---- operations ---- */

static void start_put(struct face *f, unsigned to, size_t length, uint64_t at, uint64_t from,
                      ptl_ack_req_t ack)
{
    wait_for_room(IN_FLIGHT, length);
    unsigned i = free_ops[--free_count];
    ops[i] =
        (struct op){.wants = WANT_SEND | (ack == PTL_ACK_REQ ? WANT_ACK : 0), .length = length};
    bytes_in_flight += length;
    f->ct_acks += ack != PTL_NO_ACK_REQ;
    memcpy(model[to] + at, constants + from, length);
    atomic_fetch_add(&shared->puts[me][to], 1);
    atomic_fetch_add(&shared->put_bytes[me][to], length);
    OK(PtlPut(f->put_md, (ptl_size_t)(uintptr_t)(constants + from), length, ack, f->to[to], 0, 0,
              (uint64_t)me * REGION + at, (void *)(uintptr_t)i, 0));
}

static void start_get(struct face *f, unsigned to, size_t length, uint64_t at)
{
    wait_for_room(IN_FLIGHT, length);
    unsigned i = free_ops[--free_count];
    ops[i] = (struct op){
        .wants = WANT_REPLY, .length = length, .got = memory(length), .expected = memory(length)};
    memcpy(ops[i].expected, model[to] + at, length);
    bytes_in_flight += length;
    f->ct_replies++;
    atomic_fetch_add(&shared->gets[me][to], 1);
    atomic_fetch_add(&shared->get_bytes[me][to], length);
    OK(PtlGet(f->get_md, (ptl_size_t)(uintptr_t)ops[i].got, length, f->to[to], 0, 0,
              (uint64_t)me * REGION + at, (void *)(uintptr_t)i));
}

static void start_random(uint64_t *r)
{
    static const ptl_ack_req_t acks[] = {PTL_NO_ACK_REQ, PTL_ACK_REQ, PTL_CT_ACK_REQ,
                                         PTL_OC_ACK_REQ};
    uint64_t a = splitmix(r), b = splitmix(r);
    unsigned bits = (unsigned)(a % (LENGTH_BITS + 1));
    /* 0, or from 2^(bits-1) to 2^bits */
    size_t length = bits == 0
                        ? a >> 8 & 1
                        : ((size_t)1 << (bits - 1)) + (b >> 20) % (((size_t)1 << (bits - 1)) + 1);
    uint64_t at = splitmix(r) % (REGION - length + 1);
    uint64_t from = splitmix(r) % (LENGTH_MAX + 1);
    struct face *f = &face[a >> 16 & 3];
    unsigned to = (unsigned)(a >> 24) % PROCESSES;
    if ((a >> 40) % 5 < 3) {
        start_put(f, to, length, at, from, acks[a >> 50 & 3]);
    } else {
        start_get(f, to, length, at);
    }
}

/* ---- the end ---- */

static void wait_for_count(ptl_handle_ct_t ct, uint64_t wanted, const char *what)
{
    ptl_ct_event_t value;
    uint64_t end = now_ms() + STILL_MS;
    do {
        pump();
        OK(PtlCTGet(ct, &value));
    } while (value.success < wanted && now_ms() < end);
    if (value.success != wanted || value.failure != 0) {
        fail("%s: %llu and %llu failures, not %llu", what, (unsigned long long)value.success,
             (unsigned long long)value.failure, (unsigned long long)wanted);
    }
}

static void check_totals(void)
{
    uint64_t puts = 0, gets = 0, put_bytes = 0, get_bytes = 0, served = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        puts += shared->puts[i][me];
        gets += shared->gets[i][me];
        put_bytes += shared->put_bytes[i][me];
        get_bytes += shared->get_bytes[i][me];
    }
    uint64_t end = now_ms() + STILL_MS;
    while (served_puts + served_gets < puts + gets && now_ms() < end) {
        pump();
    }
    if (served_puts != puts || served_gets != gets || served_put_bytes != put_bytes ||
        served_get_bytes != get_bytes) {
        fail("served %llu puts (%llu bytes), %llu gets (%llu), not %llu (%llu), %llu (%llu)",
             (unsigned long long)served_puts, (unsigned long long)served_put_bytes,
             (unsigned long long)served_gets, (unsigned long long)served_get_bytes,
             (unsigned long long)puts, (unsigned long long)put_bytes, (unsigned long long)gets,
             (unsigned long long)get_bytes);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        ptl_ct_event_t value;
        wait_for_count(face[k].acked, face[k].ct_acks, "acks counted");
        wait_for_count(face[k].replied, face[k].ct_replies, "replies counted");
        OK(PtlCTGet(face[k].served, &value));
        served += value.success + value.failure;
    }
    if (served != puts + gets) {
        fail("the entries' counters are at %llu, not %llu", (unsigned long long)served,
             (unsigned long long)(puts + gets));
    }
}

static void run(void)
{
    uint64_t r = seed * PROCESSES + (unsigned)me, state = seed;
    constants = memory(2 * (size_t)LENGTH_MAX);
    for (size_t i = 0; i < 2 * (size_t)LENGTH_MAX; i += 8) {
        uint64_t v = splitmix(&state);
        memcpy(constants + i, &v, 8);
    }
    window = memory((size_t)PROCESSES * REGION);
    for (unsigned i = 0; i < PROCESSES; i++) {
        model[i] = memory(REGION);
    }
    while (free_count < IN_FLIGHT) {
        free_ops[free_count] = free_count;
        free_count++;
    }
    open_faces();
    for (uint64_t n = count / PROCESSES; n > 0; n--) {
        start_random(&r);
        pump();
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        for (size_t at = 0; at < REGION; at += 1 << 20) {
            start_get(&face[i % KINDS], i, 1 << 20, at);
        }
    }
    wait_for_room(1, 0);
    barrier();
    check_totals();
    if (memcmp(window + (size_t)me * REGION, model[me], REGION) != 0) {
        fail("its own region of its own window");
    }
    barrier();
    for (unsigned k = 0; k < KINDS; k++) {
        ptl_handle_ni_t ni = face[k].ni;
        face[k].mdeq = 0;
        OK(PtlNIFini(ni));
    }
    PtlFini();
    free(constants);
    free(window);
    for (unsigned i = 0; i < PROCESSES; i++) {
        free(model[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s SEED COUNT\n", argv[0]);
        return 2;
    }
    seed = strtoull(argv[1], NULL, 10);
    count = strtoull(argv[2], NULL, 10);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    /* How the payload travels is the sender's choice: each its own. */
    static const char *const large[PROCESSES] = {"cells", "vm", "auto", "cells"};
    uint64_t start = now_ms();
    pid_t pids[PROCESSES];
    for (me = 0; me < PROCESSES; me++) {
        pids[me] = fork();
        if (pids[me] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("PINWHEEL_SHM_LARGE", large[me], 1);
            setenv("PINWHEEL_SHM_VM_MIN", "65536", 1);
            run();
            exit(0);
        }
    }
    bool good = true;
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        if (wait(&status) > 0 && status != 0) {
            fprintf(stderr, "a process ended with %s %d\n",
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            good = false;
            atomic_store(&shared->failed, true);
        }
    }
    uint64_t bytes = 0;
    for (unsigned i = 0; i < PROCESSES * PROCESSES; i++) {
        bytes += shared->put_bytes[i / PROCESSES][i % PROCESSES] +
                 shared->get_bytes[i / PROCESSES][i % PROCESSES];
    }
    printf("%s seed %llu, %llu operations, %llu MiB, %llu s\n", good ? "ok    " : "FAILED",
           (unsigned long long)seed, (unsigned long long)count, (unsigned long long)(bytes >> 20),
           (unsigned long long)((now_ms() - start) / 1000));
    return !good;
}
