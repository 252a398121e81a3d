/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subject's side of the turns; see turn.h. A process has one page, one rank
 * and one thread that takes turns.
 */
#include "turn.h"

#include "page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { LIFE_CHECK_MS = 2000, EXCHANGE_MS = 20000, EXCHANGE_STEP_MS = 10 };

static struct {
    struct page *page;
    int rank;
    int core; /* that all threads are bound to, or -1 */
    char why[sizeof(((struct turn_result *)0)->why)];
} turn = {.rank = -1, .core = -1};

static struct page_rank *mine(void)
{
    return &turn.page->rank[turn.rank];
}

static struct page_rank *other(void)
{
    return &turn.page->rank[1 - turn.rank];
}

static bool conductor_lives(void)
{
    return kill(turn.page->conductor, 0) == 0 || errno != ESRCH;
}

int turn_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(turn.why, sizeof(turn.why), format, args);
    va_end(args);
    if (turn.page != NULL && atomic_load(&mine()->ready) == 0) {
        struct turn_result *r = &mine()->result; /* the start fails */
        r->error = 1;
        memcpy(r->why, turn.why, sizeof(r->why));
    }
    return -1;
}

int turn_rank(void)
{
    return turn.rank;
}

int turn_ranks(void)
{
    return (int)turn.page->ranks;
}

int turn_core(int index)
{
    return turn.page->core[index];
}

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double turn_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

double turn_cpu(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

volatile uint64_t *turn_line(int index)
{
    return &turn.page->line[index].word;
}

/* ---- Data ---- */

static uint64_t pattern(uint64_t seed, uint64_t index)
{
    uint64_t x = (seed * 0x9e3779b97f4a7c15u) ^ (index * 0xc2b2ae3d27d4eb4fu);
    return x ^ x >> 29;
}

void turn_fill(void *memory, size_t length, uint64_t seed)
{
    uint8_t *at = memory;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = pattern(seed, i);
        memcpy(at + i, &word, length - i < 8 ? length - i : 8);
    }
}

int turn_check(const void *memory, size_t length, uint64_t seed)
{
    const uint8_t *at = memory;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = pattern(seed, i);
        if (memcmp(at + i, &word, length - i < 8 ? length - i : 8) != 0) {
            return turn_fail("wrong data: of %zu bytes those at %zu", length, i);
        }
    }
    return 0;
}

/* ---- Joining ---- */

static int say(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    return -1;
}

/* Libraries have threads of their own; they belong to the rank. */
static int bind_threads(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) {
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)atol(entry->d_name);
        if (tid > 0 && sched_setaffinity(tid, sizeof(one), &one) != 0 && errno != ESRCH) {
            closedir(tasks);
            return -1;
        }
    }
    closedir(tasks);
    turn.core = core;
    return 0;
}

static int map_page(void)
{
    const char *path = getenv("BENCH_PAGE");
    if (path == NULL) {
        return say("BENCH_PAGE", "is not set; this program is started by `pinwheel bench`");
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return say(path, strerror(errno));
    }
    void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) {
        return say(path, strerror(errno));
    }
    turn.page = page;
    return turn.page->magic == PAGE_MAGIC ? 0 : say(path, "is no page of `pinwheel bench`");
}

int turn_join(int rank)
{
    const char *given = getenv("BENCH_RANK");
    if (rank < 0 && given == NULL) {
        return say("BENCH_RANK", "is not set; this program is started by `pinwheel bench`");
    }
    rank = rank < 0 ? atoi(given) : rank;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (map_page() != 0) {
        return -1;
    }
    if (rank < 0 || rank >= turn_ranks()) {
        return say("rank", "must be below the number of the subject's processes");
    }
    turn.rank = rank;
    mine()->pid = getpid();
    if (bind_threads(turn.page->core[rank % 2]) != 0) {
        return say("binding to a core", strerror(errno));
    }
    return rank;
}

/* Waits until *word is at least `wanted`; 0, or -1 after 20 s. */
static int await(_Atomic uint32_t *word, uint32_t wanted)
{
    double limit = turn_now() + EXCHANGE_MS / 1000.0;
    for (uint32_t seen; (seen = atomic_load(word)) < wanted;) {
        if (turn_now() > limit) {
            return turn_fail("rank %d waited %d s for an address of the other rank", turn.rank,
                             EXCHANGE_MS / 1000);
        }
        page_sleep(word, seen, EXCHANGE_STEP_MS);
    }
    return 0;
}

long turn_exchange(const void *bytes, size_t length, void *theirs, size_t room)
{
    struct page_rank *me = mine(), *it = other();
    uint32_t call = atomic_load(&me->posted) + 1;
    if (length > TURN_EXCHANGE_MAX) {
        return turn_fail("an address of %zu bytes; at most %d are possible", length,
                         TURN_EXCHANGE_MAX);
    }
    if (await(&it->taken, call - 1) != 0) {
        return -1;
    }
    memcpy(me->bytes, bytes, length);
    me->length = length;
    atomic_store(&me->posted, call);
    page_wake(&me->posted);
    if (await(&it->posted, call) != 0) {
        return -1;
    }
    uint64_t got = it->length;
    if (got > room) {
        return turn_fail("the other rank's address has %lu bytes; there is room for %zu",
                         (unsigned long)got, room);
    }
    memcpy(theirs, it->bytes, got);
    atomic_store(&me->taken, call);
    page_wake(&me->taken);
    return (long)got;
}

static int await_all(size_t word, uint32_t wanted)
{
    int rc = 0;
    for (int r = 0; rc == 0 && r < turn_ranks(); r++) {
        rc = await((_Atomic uint32_t *)((char *)&turn.page->rank[r] + word), wanted);
    }
    return rc;
}

/* A rank leaves what it shows until all ranks have seen it. */
int turn_gather(const void *bytes, size_t length, void *theirs)
{
    struct page_rank *me = mine();
    uint32_t call = atomic_load(&me->shown) + 1;
    if (length > TURN_EXCHANGE_MAX) {
        return turn_fail("an address of %zu bytes; at most %d are possible", length,
                         TURN_EXCHANGE_MAX);
    }
    if (length > 0) {
        memcpy(me->gathered, bytes, length);
    }
    atomic_store(&me->shown, call);
    page_wake(&me->shown);
    if (await_all(offsetof(struct page_rank, shown), call) != 0) {
        return -1;
    }
    for (int r = 0; r < turn_ranks() && length > 0; r++) {
        memcpy((char *)theirs + (size_t)r * length, turn.page->rank[r].gathered, length);
    }
    atomic_store(&me->seen, call);
    page_wake(&me->seen);
    return length > 0 ? await_all(offsetof(struct page_rank, seen), call) : 0;
}

/* ---- Turns ---- */

static const struct turn_duty *duty_for(const struct turn_work *work,
                                        const struct turn_duty *duties, int count)
{
    for (int i = 0; i < count; i++) {
        const struct turn_duty *d = &duties[i];
        if (d->bench != work->bench) {
            continue;
        }
        bool able = d->supports != NULL ? d->supports(work) : work->cores == TURN_TWO_CORES;
        if (able) {
            return d;
        }
    }
    return NULL;
}

static int do_work(const struct turn_duty *d, const struct turn_work *work, struct turn_result *r)
{
    int core = turn.page->core[work->cores == TURN_ONE_CORE ? 0 : turn.rank % 2];
    if (core != turn.core && bind_threads(core) != 0) {
        return turn_fail("binding to core %d: %s", core, strerror(errno));
    }
    if ((d->begin != NULL && d->begin(work) != 0) ||
        (work->warm > 0 && d->run(work, work->warm) != 0)) {
        return -1;
    }
    double cpu = turn_cpu(), start = turn_now();
    if (d->run(work, work->count) != 0) {
        return -1;
    }
    r->seconds = turn_now() - start;
    r->cpu_seconds = turn_cpu() - cpu;
    return d->end != NULL ? d->end(work, r) : 0;
}

static struct turn_result take_turn(const struct turn_work *work, uint32_t what,
                                    const struct turn_duty *duties, int count)
{
    struct turn_result r = {.seconds = 0};
    const struct turn_duty *d = duty_for(work, duties, count);
    if (what == PAGE_ASK) {
        r.extra = d != NULL;
        return r;
    }
    turn.why[0] = '\0';
    if (d == NULL) {
        turn_fail("bench %u of size %lu is none that it can do", work->bench,
                  (unsigned long)work->size);
    }
    if (d == NULL || do_work(d, work, &r) != 0) {
        r.error = 1;
        memcpy(r.why, turn.why, sizeof(r.why));
    }
    return r;
}

int turn_serve(const struct turn_duty *duties, int count)
{
    struct page *p = turn.page;
    uint32_t number = 0;
    atomic_store(&mine()->ready, 1);
    page_wake(&mine()->ready);
    for (;;) {
        while (atomic_load(&p->number) == number) {
            page_sleep(&p->number, number, LIFE_CHECK_MS);
            if (!conductor_lives()) {
                return -1;
            }
        }
        number++;
        if (p->what == PAGE_END) {
            return 0;
        }
        struct turn_work work = p->work;
        mine()->result = take_turn(&work, p->what, duties, count);
        atomic_store(&mine()->done, number);
        page_wake(&mine()->done);
    }
}
