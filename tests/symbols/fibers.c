/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is its own run time: fibers (user-level threads, by ucontext), moved between two
 * kernel threads wherever they yield, and sched_yield(), nanosleep(), pthread_create(), ... of its
 * own, which know fibers only. Each fiber exchanges messages with its twin in the other process,
 * through an entry of its own; every second fiber's has a payload handler. No thread of
 * the library may ever come by here, and no call of it may change errno.
 *
 *     $ pinwheel run -n 2 ./symbols_fibers
 */
#include <pinwheel.h>
#include <portals4.h>
#include <spin.h>
#include <spin_handler.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { FIBERS = 6, WORKERS = 2, ROUNDS = 150, STACK = 128 << 10, LARGE = 40000, INDEX = 3 };
enum { STRANGE_ERRNO = 4711 };

static void fail(const char *what, const char *who)
{
    fprintf(stderr, "symbols_fibers: %s %s\n", who, what);
    _exit(1);
}

/* ---- The run time ---- */

struct fiber {
    ucontext_t context;
    int number;
    bool over;
};

static struct fiber fibers[FIBERS];
static atomic_int next_fiber[FIBERS]; /* 1: it may be taken by a worker */
static atomic_int left = FIBERS;

static __thread struct fiber *current;   /* of a worker */
static __thread ucontext_t worker_place; /* where it came from */
static __thread bool is_worker;

/* Read where the fiber is now, after it has moved as before. */
static __attribute__((noinline)) struct fiber *fiber_here(void)
{
    __asm__ volatile("");
    return current;
}

static __attribute__((noinline)) ucontext_t *place_here(void)
{
    __asm__ volatile("");
    return &worker_place;
}

static void fiber_yield(void)
{
    struct fiber *f = fiber_here();
    swapcontext(&f->context, place_here());
}

/* What all functions of the run time do first. */
static void enter(const char *function)
{
    if (!is_worker) {
        fail("was called by a thread that is none of this run time's", function);
    }
    if (fiber_here() != NULL) {
        fiber_yield();
    }
}

static void *work(void *arg)
{
    (void)arg;
    is_worker = true;
    for (unsigned i = 0; atomic_load(&left) > 0; i++) {
        struct fiber *f = &fibers[i % FIBERS];
        int ready = 1;
        if (!atomic_compare_exchange_strong(&next_fiber[f->number], &ready, 0)) {
            continue;
        }
        current = f;
        swapcontext(&worker_place, &f->context);
        current = NULL;
        if (f->over) {
            atomic_fetch_sub(&left, 1);
        } else {
            atomic_store(&next_fiber[f->number], 1);
        }
    }
    return NULL;
}

/* clang-format off */
int sched_yield(void) { enter("sched_yield"); return 0; }
int usleep(useconds_t us) { (void)us; enter("usleep"); return 0; }
unsigned sleep(unsigned s) { (void)s; enter("sleep"); return 0; }
int nanosleep(const struct timespec *t, struct timespec *rest)
{ (void)t; (void)rest; enter("nanosleep"); return 0; }
int clock_nanosleep(clockid_t c, int flags, const struct timespec *t, struct timespec *rest)
{ (void)c; (void)flags; (void)t; (void)rest; enter("clock_nanosleep"); return 0; }
int poll(struct pollfd *fds, nfds_t n, int ms)
{ (void)fds; (void)n; (void)ms; enter("poll"); return 0; }
int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{ (void)fd; (void)events; (void)most; (void)ms; enter("epoll_wait"); return 0; }
int clock_gettime(clockid_t c, struct timespec *t)
{ (void)c; enter("clock_gettime"); t->tv_sec = t->tv_nsec = 0; return 0; }
int pthread_mutex_lock(pthread_mutex_t *m) { (void)m; enter("pthread_mutex_lock"); return 0; }
int pthread_mutex_unlock(pthread_mutex_t *m) { (void)m; enter("pthread_mutex_unlock"); return 0; }
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{ (void)c; (void)m; enter("pthread_cond_wait"); return 0; }
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{ (void)t; (void)a; (void)f; (void)arg; enter("pthread_create"); return EAGAIN; }
int pthread_join(pthread_t t, void **r) { (void)t; (void)r; enter("pthread_join"); return 0; }
/* clang-format on */

static void run_fibers(void)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    pthread_t workers[WORKERS];
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &found, sizeof(found));
    found = dlsym(RTLD_NEXT, "pthread_join");
    memcpy(&join, &found, sizeof(found));
    for (int i = 0; i < WORKERS; i++) {
        create(&workers[i], NULL, work, NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        join(workers[i], NULL);
    }
}

/* ---- What fibers do ---- */

static ptl_handle_ni_t ni;
static ptl_process_t peer;
/* The twin may be a round ahead: each fiber has two entries, which take turns. */
static unsigned char out[FIBERS][LARGE], in[FIBERS][2][LARGE];

/* The call, with an errno that it is to leave alone. */
#define CALL(function, ...)                                                                        \
    ({                                                                                             \
        errno = STRANGE_ERRNO;                                                                     \
        int code_ = function(__VA_ARGS__);                                                         \
        if (errno != STRANGE_ERRNO) {                                                              \
            fprintf(stderr, "symbols_fibers: errno became %d\n", errno);                           \
            fail("changed errno", #function);                                                      \
        }                                                                                          \
        code_;                                                                                     \
    })
#define OK(function, ...)                                                                          \
    do {                                                                                           \
        if (CALL(function, __VA_ARGS__) != PTL_OK) {                                               \
            fail("failed", #function);                                                             \
        }                                                                                          \
    } while (0)

__handler static int copy_packet(const ptl_payload_t p, void *state)
{
    (void)state;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS
                                                                                       : FAIL;
}
PTL_HANDLER(copy_packet);

static ptl_size_t length_of(int round)
{
    static const ptl_size_t lengths[] = {1, 8, 700, 4096, LARGE};
    return lengths[round % 5];
}

static unsigned char byte_of(int number, int round, int rank)
{
    return (unsigned char)(number * 37 + round * 5 + rank + 1);
}

static __attribute__((noinline)) void put(ptl_handle_md_t md, int number, int round, int rank)
{
    memset(out[number], byte_of(number, round, rank), length_of(round));
    OK(PtlPut, md, 0, length_of(round), PTL_CT_ACK_REQ, peer, INDEX,
       (ptl_match_bits_t)(2 * number + round % 2), 0, NULL, 0);
}

/* One look: at once, or with a time-out that makes the call spin, yield and sleep. */
static __attribute__((noinline)) bool reached(ptl_handle_ct_t ct, ptl_size_t count, bool stay)
{
    ptl_ct_event_t v;
    unsigned which;
    if (stay) {
        return CALL(PtlCTPoll, &ct, &count, 1, 1, &v, &which) == PTL_OK;
    }
    OK(PtlCTGet, ct, &v);
    return v.success + v.failure >= count;
}

static void await(ptl_handle_ct_t ct, int count)
{
    for (unsigned look = 0; !reached(ct, (ptl_size_t)count, look % 4 == 3); look++) {
        fiber_yield();
    }
}

static int own_rank;

static __attribute__((noinline)) void open_fiber(int number, ptl_handle_ct_t *came,
                                                 ptl_handle_ct_t *left_ct, ptl_handle_md_t *md)
{
    ptl_handle_me_t me;
    ptl_handlers_t handlers = {.payload_handler = copy_packet, .hpu_mem = PTL_HPU_MEM_NONE};
    OK(PtlCTAlloc, ni, came);
    OK(PtlCTAlloc, ni, left_ct);
    for (int half = 0; half < 2; half++) {
        ptl_me_t entry = {.start = in[number][half],
                          .length = LARGE,
                          .ct_handle = *came,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                          .match_id.rank = PTL_RANK_ANY,
                          .match_bits = (ptl_match_bits_t)(2 * number + half)};
        if (number % 2 == 0) {
            OK(PtlMEAppend, ni, INDEX, &entry, PTL_PRIORITY_LIST, NULL, &me);
        } else {
            OK(PtlMEAppendHandlers, ni, INDEX, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &me);
        }
    }
    ptl_md_t range = {out[number], LARGE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, *left_ct};
    OK(PtlMDBind, ni, &range, md);
}

static ptl_handle_ct_t came[FIBERS], gone[FIBERS];
static ptl_handle_md_t mds[FIBERS];

static void fiber_main(void)
{
    struct fiber *f = fiber_here();
    int n = f->number;
    for (int round = 0; round < ROUNDS; round++) {
        put(mds[n], n, round, own_rank);
        await(came[n], round + 1);
        await(gone[n], round + 1);
        for (ptl_size_t i = 0; i < length_of(round); i++) {
            if (in[n][round % 2][i] != byte_of(n, round, 1 - own_rank)) {
                fail("holds a wrong byte", "the entry of a fiber");
            }
        }
        fiber_yield();
    }
    f->over = true;
    fiber_yield();
}

static void make_fiber(int i)
{
    struct fiber *f = &fibers[i];
    f->number = i;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = malloc(STACK);
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    atomic_store(&next_fiber[i], 1);
}

static void check_job(int code, struct pinwheel_job *job)
{
    if (code != 0) {
        fail(pinwheel_job_error(job), "job:");
    }
}

int main(void)
{
    struct pinwheel_job *job;
    ptl_pt_index_t index;
    check_job(pinwheel_job_init(&job), NULL);
    own_rank = pinwheel_job_rank(job);
    if (pinwheel_job_size(job) != 2) {
        fail("two processes", "needs");
    }
    peer.rank = (ptl_rank_t)(1 - own_rank);
    OK(PtlInit);
    OK(PtlNIInit, PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
       &ni);
    check_job(pinwheel_job_set_map(job, ni), job);
    OK(PtlPTAlloc, ni, 0, PTL_EQ_NONE, INDEX, &index);
    for (int i = 0; i < FIBERS; i++) {
        open_fiber(i, &came[i], &gone[i], &mds[i]);
        make_fiber(i);
    }
    check_job(pinwheel_job_barrier(job), job);
    run_fibers();
    check_job(pinwheel_job_barrier(job), job);
    OK(PtlNIFini, ni);
    errno = STRANGE_ERRNO;
    PtlFini();
    if (errno != STRANGE_ERRNO) {
        fail("changed errno", "PtlFini");
    }
    pinwheel_job_finalize(job);
    printf("rank %d: %d fibers, %d messages each\n", own_rank, FIBERS, ROUNDS);
    return 0;
}
