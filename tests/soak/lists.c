/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of entries under random traffic; see lists.h.
 *
 *     soak_lists SEED ROUNDS [PROCESSES [THREADS]]
 *
 * THREADS lanes begin in each process. Thread t of every process has the lanes whose number is t
 * modulo THREADS: it draws and models them all, and makes the calls that are its process's.
 */
#include "lists.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int me;
unsigned processes = 2, threads = 1, lanes;
uint64_t seed;
struct lane lane[LANES_MAX];
struct registers registers[PROCESSES_MAX][KINDS];
ptl_handle_ni_t ni[KINDS];
ptl_ni_limits_t limits[KINDS];
ptl_process_t ids[PROCESSES_MAX];
uint8_t *here, *source;

static uint64_t rounds, round_number;
static struct site *sites; /* of every process, lane and kind */

static struct shared {
    pthread_barrier_t meet, meet_threads;
    ptl_process_t ids[PROCESSES_MAX];
    atomic_bool failed;
} * shared;

struct site *site_of(const struct lane *l)
{
    return &sites[((unsigned)l->target * LANES_MAX + l->number) * KINDS + l->kind];
}

void fail(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!atomic_exchange(&shared->failed, true)) {
        fprintf(stderr, "seed %llu, round %llu, process %d: %s\n", (unsigned long long)seed,
                (unsigned long long)round_number, me, text);
    }
    _exit(1);
}

static void *memory(size_t n)
{
    void *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    if (p == NULL) {
        fail("no memory for %zu bytes", n);
    }
    return memset(p, 0, n);
}

/* ---- set-up ---- */

static void open_interfaces(void)
{
    static const unsigned options[KINDS] = {
        PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
        PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};
    OK(PtlInit());
    for (unsigned k = 0; k < KINDS; k++) {
        OK(PtlNIInit(PTL_IFACE_DEFAULT, options[k], PTL_PID_ANY, NULL, &limits[k], &ni[k]));
    }
    OK(PtlGetPhysId(ni[0], &shared->ids[me]));
    pthread_barrier_wait(&shared->meet);
    memcpy(ids, shared->ids, sizeof(ids));
    for (unsigned k = 0; k < KINDS; k += 2) {
        OK(PtlSetMap(ni[k], processes, ids));
    }
}

/* Where the last message of a round goes. */
static void open_last(unsigned kind)
{
    ptl_me_t me_all = {.ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT,
                       .ignore_bits = ~0ull};
    ptl_handle_me_t handle;
    ptl_pt_index_t pt;
    if (is_logical(kind)) {
        me_all.match_id.rank = PTL_RANK_ANY;
    } else {
        me_all.match_id.phys.nid = PTL_NID_ANY;
        me_all.match_id.phys.pid = PTL_PID_ANY;
    }
    OK(PtlPTAlloc(ni[kind], 0, PTL_EQ_NONE, LAST_PT, &pt));
    OK(is_matching(kind) ? PtlMEAppend(ni[kind], pt, &me_all, PTL_PRIORITY_LIST, NULL, &handle)
                         : PtlLEAppend(ni[kind], pt, (const ptl_le_t *)&me_all, PTL_PRIORITY_LIST,
                                       NULL, &handle));
}

static void open_site(struct lane *l)
{
    enum { EVENTS = 4000 }; /* more than a round has */
    struct site *s = site_of(l);
    s->flow_control = percent(&l->random, 35);
    s->has_eq = s->flow_control || percent(&l->random, 85);
    s->enabled = percent(&l->random, 90);
    if (l->target != me) {
        return;
    }
    ptl_pt_index_t pt;
    s->eq = PTL_EQ_NONE;
    if (s->has_eq) {
        OK(PtlEQAlloc(ni[l->kind], EVENTS, &s->eq));
    }
    for (unsigned i = 0; i < SITE_CTS; i++) {
        OK(PtlCTAlloc(ni[l->kind], &s->ct[i]));
    }
    OK(PtlPTAlloc(ni[l->kind],
                  (s->flow_control ? PTL_PT_FLOWCTRL : 0u) |
                      (s->enabled ? 0u : PTL_PT_ALLOC_DISABLED),
                  s->eq, l->number, &pt));
}

static void open_lane(struct lane *l, unsigned number)
{
    enum { EVENTS = 200 };
    l->number = number;
    l->process = (int)(number / threads);
    l->random = seed * 0x9e3779b97f4a7c15u + number;
    l->names = (uint64_t)(number + 1) << 24;
    l->fetched_model = memory(FETCHED_BYTES);
    l->fetched_open = memory(FETCHED_BYTES);
    for (l->target = 0; l->target < (int)processes; l->target++) {
        l->memory[l->target] = memory(SITE_BYTES);
        l->open[l->target] = memory(SITE_BYTES);
        for (l->kind = 0; l->kind < KINDS; l->kind++) {
            open_site(l);
        }
    }
    if (l->process != me) {
        return;
    }
    l->fetched = memory(FETCHED_BYTES);
    for (unsigned k = 0; k < KINDS; k++) {
        OK(PtlEQAlloc(ni[k], EVENTS, &l->eq[k]));
        OK(PtlCTAlloc(ni[k], &l->ct[k]));
        OK(PtlCTAlloc(ni[k], &l->trigger[k]));
        OK(PtlCTAlloc(ni[k], &l->last_ct[k]));
        ptl_md_t md = {
            .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = l->last_ct[k]};
        OK(PtlMDBind(ni[k], &md, &l->last_md[k]));
    }
}

static void open_all(void)
{
    open_interfaces();
    sites = memory((size_t)processes * LANES_MAX * KINDS * sizeof(*sites));
    here = memory((size_t)lanes * SITE_BYTES);
    source = memory(SOURCE_BYTES);
    uint64_t random = seed;
    for (size_t i = 0; i < SOURCE_BYTES; i++) {
        source[i] = (uint8_t)splitmix(&random);
    }
    for (unsigned k = 0; k < KINDS; k++) {
        open_last(k);
    }
    for (unsigned i = 0; i < lanes; i++) {
        open_lane(&lane[i], i);
    }
    pthread_barrier_wait(&shared->meet);
}

/* ---- rounds ---- */

static void meet(void)
{
    pthread_barrier_wait(&shared->meet_threads);
    if (atomic_load(&shared->failed)) {
        _exit(1);
    }
}

static void each_lane(unsigned thread, void (*what)(struct lane *l))
{
    for (unsigned i = thread; i < lanes; i += threads) {
        what(&lane[i]);
    }
}

static void choose(struct lane *l)
{
    l->target = (int)splitmix_below(&l->random, processes);
    l->kind = splitmix_below(&l->random, KINDS);
}

static void *run_thread(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    for (uint64_t i = 0; i < rounds; i++) {
        if (thread == 0) {
            round_number = i;
        }
        each_lane(thread, choose);
        each_lane(thread, change_site);
        meet();
        each_lane(thread, send_messages);
        each_lane(thread, check_initiator);
        meet(); /* all messages have arrived */
        each_lane(thread, check_target);
        meet();
        if (thread == 0) {
            check_registers();
        }
    }
    return NULL;
}

static void run(void)
{
    pthread_t others[THREADS_MAX];
    open_all();
    for (unsigned t = 1; t < threads; t++) {
        if (pthread_create(&others[t], NULL, run_thread, (void *)(uintptr_t)t) != 0) {
            fail("no thread: %s", strerror(errno));
        }
    }
    run_thread(NULL);
    for (unsigned t = 1; t < threads; t++) {
        pthread_join(others[t], NULL);
    }
    pthread_barrier_wait(&shared->meet);
    PtlFini();
}

static void prepare_shared(void)
{
    pthread_barrierattr_t attr;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pthread_barrierattr_init(&attr) != 0 ||
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&shared->meet, &attr, processes) != 0 ||
        pthread_barrier_init(&shared->meet_threads, &attr, processes * threads) != 0) {
        perror("soak_lists");
        exit(2);
    }
}

static pid_t begin(int number)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        me = number;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        run();
        exit(0);
    }
    return child;
}

/* Once one has failed, the others wait for it in vain. */
static int wait_for_all(pid_t child[PROCESSES_MAX])
{
    int status, failed = 0;
    pid_t ended;
    while ((ended = wait(&status)) > 0) {
        bool first = status != 0 && failed == 0;
        failed |= status != 0;
        for (unsigned i = 0; i < processes; i++) {
            child[i] = child[i] == ended ? 0 : child[i];
            if (first && child[i] != 0) {
                kill(child[i], SIGKILL);
            }
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    pid_t child[PROCESSES_MAX];
    seed = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
    rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    processes = argc > 3 ? (unsigned)atoi(argv[3]) : processes;
    threads = argc > 4 ? (unsigned)atoi(argv[4]) : threads;
    if (rounds == 0 || processes - 1 >= PROCESSES_MAX || threads - 1 >= THREADS_MAX) {
        fprintf(stderr, "usage: %s SEED ROUNDS [PROCESSES(1-%d) [THREADS(1-%d)]]\n", argv[0],
                PROCESSES_MAX, THREADS_MAX);
        return 2;
    }
    lanes = processes * threads;
    prepare_shared();
    for (unsigned i = 0; i < processes; i++) {
        child[i] = begin((int)i);
    }
    return wait_for_all(child);
}
