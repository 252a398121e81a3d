/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The full soak's processes and rounds; see full.h.
 *
 *     soak_full SEED ROUNDS         so many rounds
 *     soak_full SEED MINUTESm       rounds until so many minutes are over
 *
 * All processes run one round at a time: they open what it needs, meet, start their messages
 * while they serve the others', wait until everything that is due has come, meet, and find
 * that nothing else came, that memory, counters and registers are what they must be, and
 * that all handles can be given back. Every ROUNDS_EACH rounds all tables must be empty, and
 * the interfaces are closed over operations under way and opened anew; after the last one
 * half of the processes exit without that. In each process a second thread calls PtlAbort
 * now and then.
 */
#include "full.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_EACH = 25, NOTES = 24, NOTE_MAX = 160, STILL_MS = 120000, EVENTS = 1 << 13 };

struct shared *shared;
unsigned me;
uint64_t seed, round_number;
struct face face[FACES];
struct plan plan;

static uint64_t last_round, minutes, start_ms;
static char notes[NOTES][NOTE_MAX];
static unsigned note_count;
static atomic_bool aborting;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(notes[note_count++ % NOTES], NOTE_MAX, format, args);
    va_end(args);
}

void fail(const char *format, ...)
{
    char text[8192];
    va_list args;
    bool first = !atomic_exchange(&shared->failed, true);
    int n = snprintf(text, sizeof(text),
                     "seed %llu, round %llu, process %u: ", (unsigned long long)seed,
                     (unsigned long long)round_number, me);
    va_start(args, format);
    n += vsnprintf(text + n, 1024, format, args);
    va_end(args);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "\n");
    unsigned shown = note_count < NOTES ? note_count : NOTES;
    for (unsigned k = 0; first && k < shown; k++) {
        n += snprintf(text + n, sizeof(text) - (size_t)n, "    %s\n",
                      notes[(note_count - shown + k) % NOTES]);
    }
    _exit(write(STDERR_FILENO, text, (size_t)n) < 0 ? 2 : 1);
}

/* ---- progress ---- */

static void handle(unsigned f, unsigned which, const ptl_event_t *e)
{
    if (which == 0) {
        target_event(f, e);
    } else if (tag_of(e) == TAG_CHAIN) {
        chain_origin_event(f, e);
    } else {
        origin_event(f, e);
    }
}

/* Takes what has come on one face; says whether anything had. */
static bool take_events(unsigned f, ptl_time_t wait)
{
    ptl_handle_eq_t queues[] = {face[f].target_eq, face[f].origin_eq};
    ptl_event_t e;
    unsigned which;
    bool any = false;
    int code;
    while ((code = PtlEQPoll(queues, 2, wait, &e, &which)) == PTL_OK) {
        handle(f, which, &e);
        any = true;
        wait = 0;
    }
    shared->aborts += code == PTL_ABORTED;
    MUST(code == PTL_EQ_EMPTY || (code == PTL_ABORTED && wait != 0), "PtlEQPoll gives %d", code);
    return any;
}

void pump(bool idle)
{
    static uint64_t random, seen, since;
    bool any = false;
    if (atomic_load_explicit(&shared->failed, memory_order_relaxed)) {
        _exit(3);
    }
    for (unsigned f = 0; f < FACES && face[f].target_eq != 0; f++) {
        any |= take_events(f, 0);
    }
    flow_step(&random);
    if (!any && idle && face[FACES - 1].target_eq != 0) {
        take_events((unsigned)splitmix_below(&random, FACES), 1);
    }
    uint64_t progress = atomic_load_explicit(&shared->progress, memory_order_relaxed);
    if (any || progress != seen || since == 0) {
        seen = progress;
        since = now_ms();
    } else if (now_ms() - since > STILL_MS) {
        fail("nothing moves; origin %s, target %s, match %s, chain %s",
             origin_done() ? "done" : "not done", target_done() ? "done" : "not done",
             match_done() ? "done" : "not done", chain_done() ? "done" : "not done");
    }
}

void barrier(void)
{
    int generation = atomic_load(&shared->generation);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == PROCESSES) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->generation, 1);
    }
    while (atomic_load(&shared->generation) == generation) {
        pump(true);
    }
    shared->progress++;
}

static void *abort_now_and_then(void *unused)
{
    while (!atomic_load(&aborting)) {
        usleep(7000);
        PtlAbort();
    }
    return NULL;
}

/* ---- interfaces ---- */

/* Just enough of everything, so that what is lost is soon missed. */
static const ptl_ni_limits_t limits = {
    .max_entries = 1024,
    .max_unexpected_headers = 64,
    .max_mds = 320,
    .max_cts = 24,
    .max_eqs = 4,
    .max_pt_index = 63,
    .max_iovecs = PARTS_MAX,
    .max_list_size = 1024,
    .max_triggered_ops = 128,
    .max_msg_size = 4 << 20,
    .max_atomic_size = ATOMIC_MAX,
    .max_fetch_atomic_size = ATOMIC_MAX,
    .max_waw_ordered_size = 4 << 20,
    .max_war_ordered_size = 4 << 20,
    .max_volatile_size = 4096,
};

static void open_faces(void)
{
    OK(PtlInit());
    for (unsigned f = 0; f < FACES; f++) {
        struct face *a = &face[f];
        OK(PtlNIInit(PTL_IFACE_DEFAULT,
                     (is_matching(f) ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) |
                         (is_logical(f) ? PTL_NI_LOGICAL : PTL_NI_PHYSICAL),
                     PTL_PID_ANY, &limits, &a->limits, &a->ni));
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
    for (unsigned f = 0; f < FACES; f++) {
        static const ptl_pt_index_t lanes[] = {LANE_WINDOW, LANE_MATCH, LANE_FORBIDDEN, LANE_CHAIN};
        for (unsigned i = 0; i < PROCESSES; i++) {
            face[f].id[i] = is_logical(f) ? (ptl_process_t){.rank = i} : map[i];
        }
        if (is_logical(f)) {
            OK(PtlSetMap(face[f].ni, PROCESSES, map));
        }
        OK(PtlEQAlloc(face[f].ni, EVENTS, &face[f].origin_eq));
        OK(PtlEQAlloc(face[f].ni, EVENTS, &face[f].target_eq));
        for (unsigned k = 0; k < sizeof(lanes) / sizeof(lanes[0]); k++) {
            ptl_pt_index_t pt;
            OK(PtlPTAlloc(face[f].ni, 0, face[f].target_eq, lanes[k], &pt));
        }
    }
}

/* In the end, half of them go without a word. */
static void close_faces(bool last)
{
    barrier();
    reckless_run();
    for (unsigned f = 0; f < FACES; f++) {
        face[f].target_eq = 0;
    }
    if (last && me % 2 == 1) {
        exit(0);
    }
    for (unsigned f = 0; f < FACES; f++) {
        OK(PtlNIFini(face[f].ni));
    }
    PtlFini();
    reckless_free();
}

/* ---- rounds ---- */

static void run_round(void)
{
    uint64_t r = seed ^ round_number * 2654435761u ^ me;
    plan_make();
    target_open();
    match_open();
    chain_open();
    origin_open();
    barrier();
    bool kicked = false, busy;
    do {
        bool starting = splitmix_below(&r, 3) != 0 && origin_step(&r);
        busy = (splitmix_below(&r, 6) == 0 && match_step(&r)) || starting;
        if (!kicked && splitmix_below(&r, 20) == 0) {
            kicked = true;
            chain_kick();
        }
        pump(!busy);
    } while (!kicked || !origin_done() || !target_done() || !chain_done());
    barrier();
    origin_close();
    target_close();
    match_close();
    chain_close();
    if (me == 0) {
        shared->rounds++;
    }
}

/* Process 0 decides, so that all stop after the same round. */
static bool another(void)
{
    if (me == 0) {
        shared->more =
            minutes != 0 ? now_ms() - start_ms < minutes * 60000 : round_number < last_round;
    }
    barrier();
    bool more = shared->more;
    barrier();
    return more;
}

static void run(void)
{
    bool more = true;
    while (more) {
        pthread_t aborter;
        open_faces();
        atomic_store(&aborting, false);
        MUST(pthread_create(&aborter, NULL, abort_now_and_then, NULL) == 0, "no thread");
        for (unsigned k = 0; k < ROUNDS_EACH && (more = another()); k++) {
            run_round();
            round_number++;
        }
        atomic_store(&aborting, true);
        pthread_join(aborter, NULL);
        limits_check();
        close_faces(!more);
    }
}

/* ---- the driver ---- */

static bool reap(void)
{
    bool good = true;
    int status;
    while (wait(&status) > 0) {
        if (status != 0) {
            fprintf(stderr, "a process ended with %s %d\n",
                    WIFSIGNALED(status) ? "signal" : "status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            good = false;
            atomic_store(&shared->failed, true);
        }
    }
    return good;
}

int main(int argc, char **argv)
{
    char *unit = NULL;
    if (argc == 3) {
        seed = strtoull(argv[1], NULL, 10);
        last_round = strtoull(argv[2], &unit, 10);
    }
    if (argc != 3 || last_round == 0 || (*unit != '\0' && strcmp(unit, "m") != 0)) {
        fprintf(stderr, "usage: %s SEED ROUNDS | SEED MINUTESm\n", argv[0]);
        return 2;
    }
    minutes = *unit == 'm' ? last_round : 0;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    /* How the payload travels is the sender's choice: each its own. */
    static const char *const large[PROCESSES] = {"cells", "vm", "auto", "cells"};
    start_ms = now_ms();
    for (me = 0; me < PROCESSES; me++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("PINWHEEL_SHM_LARGE", large[me], 1);
            setenv("PINWHEEL_SHM_VM_MIN", "16384", 1);
            run();
            exit(0);
        }
    }
    bool good = reap();
    printf("%s seed %llu: %llu rounds, %llu operations, %llu MiB, %llu target events, %llu late "
           "claims, %llu refusals, %llu calls ended by PtlAbort, %llu s\n",
           good ? "ok    " : "FAILED", (unsigned long long)seed, (unsigned long long)shared->rounds,
           (unsigned long long)shared->operations, (unsigned long long)shared->bytes >> 20,
           (unsigned long long)shared->events, (unsigned long long)shared->late_claims,
           (unsigned long long)shared->refusals, (unsigned long long)shared->aborts,
           (unsigned long long)((now_ms() - start_ms) / 1000));
    return !good;
}
