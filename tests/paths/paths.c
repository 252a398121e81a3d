/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ways messages take (src/base/paths.h): with fast paths each one is taken OFTEN times at the
 * least, at the sender, at the receiver, triggered and on oneself; with PINWHEEL_FASTPATH=off none
 * is, and each general stage is. The library that is linked here counts them.
 *
 *     paths on|off
 *
 * A crew is one process, which sends to itself, or two, of which the first sends to the second. All
 * crews do the same acts; their counts are added up.
 */
#include "../ok.h"

#include "portals4.h"
#include "spin.h"
#include "spin_handler.h"

#include <pthread.h>
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
#include <unistd.h>

const char *pinwheel_path(unsigned i, int *fast, uint64_t *count);

enum { OFTEN = 1000, TIMES = 1100, BATCH = 100, PATHS_MAX = 64, LONG_BYTES = 4000 };
/* Portal table entries, and the match bits of their entries. */
enum { PT_ONE, PT_TWO, PT_ONCE, PT_MANAGED, PT_HANDLERS, PT_LAST, PTS };
enum { FIRST, SECOND };

static struct shared {
    pthread_barrier_t meet;
    ptl_process_t id[2];
    _Atomic uint64_t count[PATHS_MAX];
} * shared;

static int rank, size;
static bool handlers_only;
static ptl_handle_ni_t ni;
static ptl_process_t to;
static ptl_handle_md_t silent, counting; /* without and with acks that count */
static ptl_handle_ct_t acks, never;
static uint64_t asked; /* of acks */
static _Alignas(64) uint8_t from[LONG_BYTES], here[LONG_BYTES];

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "rank %d of %d: ", rank, size);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(1);
}

__handler static int header_proceeds(const ptl_header_t header, void *state)
{
    (void)header;
    (void)state;
    return PROCEED;
}

static void meet(void)
{
    pthread_barrier_wait(&shared->meet);
}

/* ---- both sides ---- */

static void append(unsigned pt, ptl_match_bits_t bits, unsigned options,
                   const ptl_handlers_t *handlers)
{
    ptl_me_t me = {.start = here,
                   .length = sizeof(here),
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = bits};
    ptl_handle_me_t handle;
    OK(handlers != NULL
           ? PtlMEAppendHandlers(ni, pt, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle)
           : PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

static void open_all(void)
{
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    OK(PtlGetPhysId(ni, &shared->id[rank]));
    OK(PtlCTAlloc(ni, &acks));
    OK(PtlCTAlloc(ni, &never));
    ptl_md_t md = {
        .start = from, .length = sizeof(from), .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(ni, &md, &silent));
    md.ct_handle = acks;
    md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    OK(PtlMDBind(ni, &md, &counting));
    for (ptl_pt_index_t i = 0, got; i < PTS; i++) {
        OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, i, &got));
    }
    append(PT_ONE, FIRST, 0, NULL);
    append(PT_TWO, FIRST, 0, NULL);
    append(PT_TWO, SECOND, 0, NULL);
    append(PT_MANAGED, FIRST, PTL_ME_MANAGE_LOCAL, NULL);
    append(PT_LAST, FIRST, 0, NULL);
    ptl_handlers_t handlers = {
        .header_handler = header_proceeds, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    append(PT_HANDLERS, FIRST, 0, &handlers);
    meet();
    to = shared->id[size - 1];
}

/* Waits until all that was asked for has been answered. */
static void await(void)
{
    ptl_ct_event_t now;
    OK(PtlPut(counting, 0, 0, PTL_CT_ACK_REQ, to, PT_LAST, FIRST, 0, NULL, 0));
    OK(PtlCTWait(acks, ++asked, &now));
    if (now.success != asked || now.failure != 0) {
        fail("%llu answers and %llu failures, not %llu", (unsigned long long)now.success,
             (unsigned long long)now.failure, (unsigned long long)asked);
    }
}

static void add_counts(void)
{
    uint64_t count;
    int fast;
    for (unsigned i = 0; pinwheel_path(i, &fast, &count) != NULL; i++) {
        if (i == PATHS_MAX) {
            fail("PATHS_MAX is too small");
        }
        atomic_fetch_add(&shared->count[i], count);
    }
}

/* ---- acts: each TIMES ---- */

static void put(unsigned pt, ptl_match_bits_t bits, ptl_size_t length, bool ack)
{
    asked += ack;
    OK(PtlPut(ack ? counting : silent, 0, length, ack ? PTL_CT_ACK_REQ : PTL_NO_ACK_REQ, to, pt,
              bits, 0, NULL, 0));
}

/* Lines, longer ones, those that are sent packet by packet; to entries found in each way. */
static void puts_of_all_sizes(void)
{
    static const ptl_size_t lengths[] = {0, 8, 64, LONG_BYTES};
    for (unsigned l = 0; l < 4; l++) {
        for (int ack = 0; ack < 2; ack++) {
            put(PT_ONE, FIRST, lengths[l], ack);
            put(PT_TWO, SECOND, lengths[l], ack);
        }
    }
    put(PT_MANAGED, FIRST, 8, true);
    put(PT_ONE, SECOND, 8, false); /* matches nothing */
    put(PT_HANDLERS, FIRST, 8, true);
}

static void others(void)
{
    uint64_t word = 1;
    OK(PtlAtomic(counting, 0, 16, PTL_CT_ACK_REQ, to, PT_TWO, SECOND, 0, NULL, 0, PTL_SUM,
                 PTL_UINT64_T));
    OK(PtlGet(counting, 64, 8, to, PT_ONE, FIRST, 0, NULL));
    OK(PtlFetchAtomic(counting, 64, silent, 0, 8, to, PT_ONE, FIRST, 0, NULL, 0, PTL_SUM,
                      PTL_UINT64_T));
    OK(PtlSwap(counting, 64, silent, 0, 8, to, PT_ONE, FIRST, 0, NULL, 0, &word, PTL_CSWAP,
               PTL_UINT64_T));
    OK(PtlAtomic(silent, 0, 8, PTL_NO_ACK_REQ, to, PT_ONE, FIRST, 0, NULL, 0, PTL_SUM,
                 PTL_UINT64_T));
    OK(PtlTriggeredPut(silent, 0, 8, PTL_NO_ACK_REQ, to, PT_ONE, FIRST, 0, NULL, 0, never, 0));
    asked += 4;
}

/* The target appends as many entries as are then used up. */
static void use_once(void)
{
    for (unsigned i = 0; i < TIMES / BATCH; i++) {
        for (unsigned n = 0; n < BATCH && rank == size - 1; n++) {
            append(PT_ONCE, FIRST, PTL_ME_USE_ONCE, NULL);
        }
        meet();
        for (unsigned n = 0; n < BATCH && rank == 0; n++) {
            put(PT_ONCE, FIRST, 8, true);
        }
        if (rank == 0) {
            await();
        }
        meet();
    }
}

static void run(void)
{
    open_all();
    for (unsigned i = 0; i < TIMES && rank == 0; i++) {
        if (handlers_only) {
            put(PT_HANDLERS, FIRST, 8, true);
        } else {
            others();
            puts_of_all_sizes();
        }
        await(); /* what finds no room takes the general stages */
    }
    meet();
    use_once();
    meet();
    add_counts();
    PtlFini();
}

/* ---- crews ---- */

static void run_crew(int processes, const char *hpus)
{
    pthread_barrierattr_t attr;
    setenv("PINWHEEL_HPUS", hpus, 1);
    size = processes;
    if (pthread_barrierattr_init(&attr) != 0 ||
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&shared->meet, &attr, (unsigned)processes) != 0) {
        fail("no barrier");
    }
    pid_t parent = getpid();
    for (int i = 0; i < processes; i++) {
        if (fork() == 0) {
            rank = i;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == parent) {
                run();
            }
            _exit(0);
        }
    }
    for (int i = 0, status; i < processes; i++) {
        if (wait(&status) < 0 || status != 0) {
            fail("a process has ended with status %x",
                 (unsigned)status); /* the other one as well */
        }
    }
}

int main(int argc, char **argv)
{
    bool off = argc == 2 && strcmp(argv[1], "off") == 0;
    if (!off && (argc != 2 || strcmp(argv[1], "on") != 0)) {
        fprintf(stderr, "usage: %s on|off\n", argv[0]);
        return 2;
    }
    setenv("PINWHEEL_FASTPATH", argv[1], 1);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fail("no memory");
    }
    run_crew(1, "0");
    run_crew(2, "0");
    handlers_only = true;
    run_crew(2, "1"); /* messages at handlers leave their channels */
    int bad = 0, fast;
    const char *name;
    uint64_t unused;
    for (unsigned i = 0; (name = pinwheel_path(i, &fast, &unused)) != NULL; i++) {
        uint64_t count = atomic_load(&shared->count[i]);
        bool good = off && fast ? count == 0 : (!off && !fast) || count >= OFTEN;
        printf("%-18s %-7s %8llu%s\n", name, fast ? "fast" : "general", (unsigned long long)count,
               good ? "" : "  <- wrong");
        bad |= !good;
    }
    return bad;
}
