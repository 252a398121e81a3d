/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual time of a rank. The events of its NIC happen in the order of (time, serial), on the
 * program's thread, whenever the program lets time pass: in a wait, in a look at nothing, at the
 * end of a call that takes time. A rank that comes to its `until` hands its turn back to the
 * coordinator, with the time at which it wants to go on.
 */
#include "fabric/sim/rank.h"

#include "base/array.h"
#include "base/heap.h"
#include "base/library.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/sys.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MUTEX_PS = 1000000 }; /* between two looks at a mutex of the library */
enum { CROWD = 1000000, CROWD_STATUS = 3 };

static bool event_before(const struct sim_event *a, const struct sim_event *b, const void *of)
{
    return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

HEAP_OF(sim_events, struct sim_event, 4, event_before)

uint64_t sim_clock_first(const struct sim_clock *c)
{
    return c->count != 0 ? c->events[0].time : SIM_NEVER;
}

bool sim_clock_at(struct sim_clock *c, uint64_t time, void (*happen)(void *), void *arg, bool owned)
{
    if (!ARRAY_ROOM(c->events, c->count, c->capacity, 64)) {
        return false;
    }
    time = time < c->now ? c->now : time;
    struct sim_event e = {time, c->serial++, happen, arg, c->lead, owned};
    sim_events_rise(c->events, c->count++, &e, NULL);
    return true;
}

void sim_clock_forget(struct sim_clock *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->events[i].owned ? c->events[i].arg : NULL);
    }
    c->count = 0;
}

/* So many events at one time are no program's. */
static void note_crowd(struct sim_clock *c, uint64_t time)
{
    c->crowd = time == c->now ? c->crowd + 1 : 0;
    if (c->crowd == CROWD) {
        log_line(LOG_ERROR,
                 "rank %u: more than %u events happen at %.6f us of virtual time, the last one "
                 "number %llu, a %s: handlers, counters or timers that set each other off without "
                 "taking time; the rank ends",
                 c->rank, CROWD, (double)c->now / 1e6, (unsigned long long)c->serial,
                 c->me->waits == SIM_POLLS ? "look of the program" : "transfer or handler");
        SYS_CALL(SYS_exit_group, CROWD_STATUS);
    }
}

void sim_clock_happen(struct sim_clock *c)
{
    struct sim_event e = c->events[0];
    if (--c->count != 0) {
        struct sim_event last = c->events[c->count];
        sim_events_sink(c->events, c->count, &last, NULL);
    }
    note_crowd(c, e.time);
    c->now = e.time > c->now ? e.time : c->now;
    c->last = c->now;
    c->lead = e.lead;
    c->looks = 0;
    e.happen(e.arg);
    if (c->happened != NULL) {
        c->happened(c->taker);
    }
    c->last_lead = c->lead;
}

/* ---- turns ---- */

/* The next one runs now; if there is none the coordinator looks whether all are idle. */
static void run_others(struct sim_clock *c)
{
    if (sim_next(c->segment)) {
        return;
    }
    atomic_fetch_add(&c->segment->came, 1);
    futex_wake(&c->segment->came);
}

static void await_turn(struct sim_clock *c)
{
    struct sim_rank *me = c->me;
    for (;;) {
        uint32_t turn = atomic_load(&me->turn);
        if (turn == SIM_RUN) {
            break;
        }
        if (futex_wait_signal(&me->turn, turn)) {
            c->running->interrupted = true;
        }
    }
    c->until = me->until;
    c->now = me->not_before > c->now ? me->not_before : c->now;
    uint64_t lead = c->lead;
    for (uint32_t i = 0; i < me->in_count && c->take != NULL; i++) {
        c->take(c->taker, &me->in[i]);
    }
    me->in_count = 0;
    c->lead = lead; /* each packet had its own */
}

void sim_clock_hand_over(struct sim_clock *c, uint64_t next, enum sim_wait why)
{
    struct sim_rank *me = c->me;
    me->now = c->now;
    me->lead = c->lead;
    me->next = next;
    me->waits = why;
    me->silence = why == SIM_POLLS ? c->now - c->last : 0;
    atomic_store(&me->turn, SIM_IDLE);
    run_others(c);
    await_turn(c);
}

void sim_clock_stop(struct sim_clock *c, void (*stop)(void))
{
    struct sim_rank *me = c->me;
    me->now = me->next = c->now;
    me->lead = c->lead;
    me->stirs++;
    me->stirred = c->now;
    atomic_store(&me->stopped, 1);
    atomic_store(&me->turn, SIM_IDLE);
    run_others(c);
    stop();
    await_turn(c);
}

struct sim_packet *sim_clock_packet(struct sim_clock *c)
{
    if (c->me->out_count == SIM_PACKETS) {
        sim_clock_hand_over(c, c->now, (enum sim_wait)c->me->waits);
    }
    struct sim_packet *p = &c->me->out[c->me->out_count++];
    memset(p, 0, offsetof(struct sim_packet, data));
    return p;
}

/* An answer may come as soon as the network lets it: a rank that ran far ahead goes no further. */
void sim_clock_sent(struct sim_clock *c, uint64_t time)
{
    uint64_t answer = time + c->segment->lookahead;
    c->until = answer < c->until ? answer : c->until;
}

/* ---- time ---- */

void sim_clock_settle(struct sim_clock *c)
{
    if (c->passing) {
        return;
    }
    do {
        uint64_t to = c->now + c->debt;
        c->debt = 0;
        sim_clock_wait(c, to, SIM_TASK_TIME, SIM_COMPUTES, c->nic != NULL);
    } while (c->debt != 0); /* what comes meanwhile may take the host's time, too */
}

void sim_clock_pass(struct sim_clock *c, uint64_t end, enum sim_wait why)
{
    sim_clock_settle(c);
    if (!c->passing) {
        sim_clock_wait(c, end, SIM_TASK_NIC, why, c->nic != NULL);
    }
}

void sim_clock_look(struct sim_clock *c)
{
    c->skips = c->looks >= SIM_LOOKS && sim_machine(c)->no_skip == 0;
    if (!c->skips) {
        c->looks++;
        c->me->counts.looks++;
        c->debt += sim_machine(c)->look;
    }
}

void sim_clock_skip(struct sim_clock *c)
{
    uint64_t look = sim_machine(c)->look, start = c->now + c->debt;
    c->skips = false;
    if (c->passing) {
        return;
    }
    if (start - c->last > SIM_SILENCE && start - c->last < 2 * SIM_SILENCE) {
        /* The coordinator knows whether anything can happen at all. */
        sim_clock_hand_over(c, start, SIM_POLLS);
    }
    sim_clock_pass(c, start + SIM_SKIP, SIM_POLLS);
    uint64_t passed = c->now > start ? c->now - start : 0, beyond = passed % look;
    c->debt += passed == 0 || beyond != 0 ? look - beyond : 0;
    c->me->counts.skipped += passed;
    sim_clock_settle(c);
    c->looks = c->last > start ? 0 : SIM_LOOKS;
}

static void no_event(void *arg)
{
}

void sim_clock_fence(struct sim_clock *c)
{
    struct sim_rank *me = c->me;
    sim_clock_settle(c);
    uint64_t fences = me->fences;
    me->fence = c->now;
    me->fence_lead = c->lead;
    while (me->fences == fences) {
        sim_clock_pass(c, SIM_NEVER, SIM_IN_FENCE);
    }
    sim_clock_at(c, me->fence_over, no_event, NULL, false);
    while (c->now < me->fence_over) {
        sim_clock_pass(c, me->fence_over, SIM_IN_FENCE);
    }
    c->lead = me->fence_lead;
}

/* ---- joining ---- */

static struct sim_clock *own;
static bool others; /* it is the preloaded library's, which leaves, too */

void sim_clock_leave(struct sim_clock *c)
{
    if (atomic_load(&c->me->pid) == (uint32_t)getpid()) {
        c->me->now = c->now;
        c->me->lead = c->lead;
        atomic_store(&c->me->left, 1);
        run_others(c);
    }
}

static __attribute__((destructor)) void leave(void)
{
    if (own != NULL && !others) {
        sim_clock_leave(own);
    }
}

static struct sim_segment *map_segment(const char *path)
{
    int fd = sys_open(path, O_RDWR | O_CLOEXEC, 0);
    struct stat s;
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &s) == 0 && (size_t)s.st_size > sizeof(struct sim_segment)) {
        at = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        sys_close(fd);
    }
    if (at == MAP_FAILED || ((struct sim_segment *)at)->magic != SIM_MAGIC) {
        log_line(LOG_ERROR,
                 "cannot join the simulated job of " SIM_VARIABLE "=%s: it is over, or of another "
                 "version of Pinwheel: start the program by `pinwheel sim`",
                 path);
        return NULL;
    }
    return at;
}

/* The clock of the preloaded library, if there is that. */
static struct sim_clock *preloaded(void)
{
    void *found = library_global("pinwheel_sim_clock");
    struct sim_clock *(*clock)(void);
    memcpy(&clock, &found, sizeof(clock));
    struct sim_clock *c = clock != NULL ? clock() : NULL;
    return c != NULL && c->version == SIM_CLOCK_VERSION && c->bytes == sizeof(*c) ? c : NULL;
}

/* Another thread has a mutex while time passes for it. Threads that are not simulated, the
 * watchdog's for instance, take mutexes in no time: nobody lets time pass for these, nor do they
 * for others. */
static bool pass_for_mutex(void)
{
    if (own == NULL || own->passing || own->tasks == NULL || own->tasks->next == NULL ||
        own->running->thread != (pid_t)SYS_CALL(SYS_gettid)) {
        return false;
    }
    sim_clock_wait(own, own->now + own->debt + MUTEX_PS, SIM_TASK_TIME, SIM_COMPUTES, false);
    return true;
}

struct sim_clock *sim_clock_join(void)
{
    if (own == NULL && (own = preloaded()) != NULL) {
        others = true;
    }
    bool again = false;
    if (own == NULL && (own = sim_clock_make(&again)) != NULL && !again) {
        sim_clock_hand_over(own, 0, SIM_COMPUTES);
    }
    mutex_pass = own != NULL ? pass_for_mutex : mutex_pass;
    return own;
}

/* This process is the rank that its environment names; or, if that has another process, one that
 * was forked there, or a new one. */
static struct sim_rank *find_place(struct sim_segment *s, uint32_t rank, uint32_t pid)
{
    uint32_t nobody = 0;
    if (atomic_compare_exchange_strong(&s->rank[rank].pid, &nobody, pid) || nobody == pid) {
        return &s->rank[rank];
    }
    for (uint32_t i = sim_child(s, rank); i < sim_child(s, rank) + s->processes; i++) {
        if (atomic_load(&s->rank[i].taken) != 0 && atomic_load(&s->rank[i].pid) == pid) {
            return &s->rank[i];
        }
    }
    return NULL;
}

struct sim_clock *sim_clock_make(bool *again)
{
    const char *path = getenv(SIM_VARIABLE), *rank = getenv("PMI_RANK");
    struct sim_segment *s = path != NULL && rank != NULL ? map_segment(path) : NULL;
    struct sim_clock *c = s != NULL ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        return NULL;
    }
    unsigned long number = strtoul(rank, NULL, 10);
    if (number >= s->ranks) {
        log_line(LOG_ERROR, "PMI_RANK=%s is no rank of the simulated job, which has %u", rank,
                 s->ranks);
        free(c);
        return NULL;
    }
    c->me = find_place(s, (uint32_t)number, (uint32_t)getpid());
    if (c->me == NULL) {
        free(c);
        return NULL;
    }
    c->version = SIM_CLOCK_VERSION;
    c->bytes = sizeof(*c);
    c->segment = s;
    c->rank = (uint32_t)(c->me - s->rank);
    *again = atomic_load(&c->me->turn) == SIM_RUN;
    c->now = c->me->now;
    c->until = *again ? c->me->until : 0;
    c->main.thread = (pid_t)SYS_CALL(SYS_gettid);
    c->tasks = c->running = &c->main;
    return c;
}

/* ---- processes that are forked ---- */

struct sim_rank *sim_clock_reserve(struct sim_clock *c)
{
    struct sim_segment *s = c->segment;
    uint32_t host = sim_host(s, c->rank), most = s->processes;
    for (uint32_t i = 0; i < most; i++) {
        uint32_t at = sim_child(s, host) + s->rank[host].forks++ % most, used;
        struct sim_rank *r = &s->rank[at];
        if (atomic_load(&r->taken) != 0) {
            continue;
        }
        r->now = r->next = c->now + c->debt;
        r->opened = r->closed = r->fence = r->look_at = SIM_NEVER;
        r->not_before = 0;
        atomic_store(&r->stopped, 0);
        r->outside = r->in_count = r->out_count = 0;
        r->waits = SIM_COMPUTES;
        atomic_store(&r->left, 0);
        atomic_store(&r->turn, SIM_IDLE);
        atomic_store(&r->taken, 1);
        while ((used = atomic_load(&s->used)) <= at) {
            atomic_compare_exchange_strong(&s->used, &used, at + 1);
        }
        return r;
    }
    log_line(LOG_ERROR,
             "fork: rank %u of the simulated job has %u processes that have not ended: give "
             "`pinwheel sim` a larger --processes",
             host, most);
    return NULL;
}

void sim_clock_forked(struct sim_clock *c, struct sim_rank *place, uint32_t pid, bool child)
{
    if (child) {
        c->me = place;
        c->rank = (uint32_t)(place - c->segment->rank);
        c->count = 0;
        c->now = place->now;
        c->debt = c->until = 0;
        c->tasks = c->running;
        c->running->next = NULL;
        c->running->thread = (pid_t)SYS_CALL(SYS_gettid);
        c->take = NULL;
        c->happened = NULL;
        c->taker = c->nic = NULL;
        atomic_store(&place->pid, (uint32_t)getpid());
        await_turn(c);
    } else if (pid == 0) {
        atomic_store(&place->taken, 0);
    } else {
        atomic_store(&place->pid, pid);
        c->until = c->until > c->now + 1 ? c->now + 1 : c->until;
    }
}
