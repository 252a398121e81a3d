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
#include "fabric/sim/said.h"
#include "fabric/sim/share.h"

#include <stdlib.h>
#include <string.h>

enum { MUTEX_PS = 1000000 }; /* between two looks at a mutex of the library */
enum { LOOK_NS = SIM_SHARE_LOOK_NS, FREE_CALLS = 10000 };
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

static void take_packets(struct sim_clock *c)
{
    const struct sim_packet *in = c->shared->in;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->me->in_count; i++) {
        sum = in[i].bytes <= SIM_PACKET ? sim_sum_packet(sum, &in[i]) : sum + 1;
    }
    if (sum != c->me->in_sum) {
        sim_share_spoiled(c->segment, c->rank, "a packet that has come");
    }
    uint64_t lead = c->lead;
    for (uint32_t i = 0; i < c->me->in_count && c->take != NULL; i++) {
        c->take(c->taker, &in[i]);
    }
    c->lead = lead; /* each packet had its own */
    c->me->in_count = 0;
    c->me->in_sum = 0;
}

/* ---- turns ---- */

/* The next one runs now; if there is none the coordinator looks whether all are idle. */
static void run_others(const struct sim_clock *c)
{
    struct sim_board *b = sim_board(c->segment);
    if (sim_next(b, sim_places(c->segment))) {
        return;
    }
    atomic_fetch_add(&b->came, 1);
    futex_wake(&b->came);
}

static void await_turn(struct sim_clock *c)
{
    _Atomic uint32_t *word = &sim_board(c->segment)->turn[c->rank];
    int64_t most = c->rank < c->segment->ranks ? -1 : LOOK_NS; /* a rank dies with its launcher */
    uint64_t serial = c->me->serial;
    for (;;) {
        uint32_t turn = atomic_load(word);
        if (turn == SIM_RUN) {
            break;
        }
        if (futex_wait_signal(word, turn, most)) {
            c->running->interrupted = true;
        }
        if (most >= 0) {
            sim_share_outlived(c->segment);
        }
    }
    if (!sim_share_read(c->shared, c->me) || c->me->serial != serial + 1) {
        sim_share_spoiled(c->segment, c->rank, "its turn");
    }
    c->has_turn = true;
    c->until = c->me->until;
    c->now = c->me->not_before > c->now ? c->me->not_before : c->now;
    take_packets(c);
}

static void give_turn(struct sim_clock *c)
{
    c->me->said = sim_said(c);
    sim_share_show(c);
    c->has_turn = false;
    atomic_store(&sim_board(c->segment)->turn[c->rank], SIM_IDLE);
    run_others(c);
}

void sim_clock_hand_over(struct sim_clock *c, uint64_t next, enum sim_wait why)
{
    struct sim_record *me = c->me;
    me->now = c->now;
    me->lead = c->lead;
    me->next = next;
    me->waits = why;
    me->silence = why == SIM_POLLS ? c->now - c->last : 0;
    give_turn(c);
    await_turn(c);
}

void sim_clock_stop(struct sim_clock *c, void (*stop)(void))
{
    struct sim_record *me = c->me;
    me->now = me->next = c->now;
    me->lead = c->lead;
    me->stirs++;
    me->stirred = c->now;
    atomic_store(&c->shared->stopped, 1);
    give_turn(c);
    stop();
    await_turn(c);
}

void sim_clock_poke(struct sim_clock *c)
{
    c->me->stirs++;
    c->me->stirred = c->now;
    c->until = c->until > c->now + 1 ? c->now + 1 : c->until;
}

struct sim_packet *sim_clock_packet(struct sim_clock *c)
{
    if (c->me->out_count == SIM_PACKETS) {
        sim_clock_hand_over(c, c->now, (enum sim_wait)c->me->waits);
    }
    struct sim_packet *p = &c->shared->out[c->me->out_count];
    memset(p, 0, offsetof(struct sim_packet, data));
    return p;
}

/* An answer may come as soon as the network lets it: a rank that ran far ahead goes no further. */
void sim_clock_sent(struct sim_clock *c, const struct sim_packet *p)
{
    uint64_t answer = p->time + c->segment->lookahead;
    c->me->out_count++;
    c->me->out_sum = sim_sum_packet(c->me->out_sum, p);
    c->until = answer < c->until ? answer : c->until;
}

/* ---- time ---- */

/* Of the calling thread, in ns. */
uint64_t sim_clock_cpu(void)
{
    struct timespec t = {0, 0};
    SYS_CALL(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sim_clock_charge(struct sim_clock *c)
{
    uint32_t scale = sim_machine(c)->compute;
    if (scale != 0 && !c->passing) {
        uint64_t cpu = sim_clock_cpu(), ps = (cpu - c->running->cpu) * scale;
        c->running->cpu = cpu;
        c->debt += ps;
        c->figures.counts.host += ps;
    }
}

/* Most calls take no time. A thread that makes many of these in a row may be waiting for what
 * another one does, and then only a time that they take lets that happen. */
void sim_clock_settle(struct sim_clock *c)
{
    if (c->passing) {
        return;
    }
    sim_clock_charge(c);
    unsigned calls = c->debt == 0 ? c->calls + 1 : 0;
    if (calls > FREE_CALLS) {
        c->debt = sim_machine(c)->look;
        calls = FREE_CALLS;
    }
    do {
        uint64_t to = c->now + c->debt;
        c->debt = 0;
        sim_clock_wait(c, to, SIM_TASK_TIME, c->looks > SIM_LOOKS ? SIM_POLLS : SIM_COMPUTES,
                       c->nic != NULL);
    } while (c->debt != 0); /* what comes meanwhile may take the host's time, too */
    c->calls = calls;
}

void sim_clock_pass(struct sim_clock *c, uint64_t end, enum sim_wait why)
{
    sim_clock_settle(c);
    if (!c->passing) {
        sim_clock_wait(c, end, SIM_TASK_NIC, why, c->nic != NULL);
    }
}

static void no_event(void *arg)
{
}

/* Lets time pass until the next event, or `end`. The program is idle in a fence, so what comes
 * takes no time that it could miss; and it must not stay in the fence for that, since others that
 * have left it may hold their turns until this one has. */
static void wait_in_fence(struct sim_clock *c, uint64_t end)
{
    sim_clock_wait(c, end, SIM_TASK_NIC, SIM_IN_FENCE, c->nic != NULL);
    c->debt = 0;
}

void sim_clock_fence(struct sim_clock *c)
{
    struct sim_record *me = c->me;
    sim_clock_settle(c);
    if (!c->passing && sim_said(c)) {
        c->until = c->now; /* what was written before the fence has the time of then */
        sim_clock_wait(c, c->now, SIM_TASK_TIME, SIM_COMPUTES, c->nic != NULL);
    }
    uint64_t fences = me->fences;
    me->fence = c->now;
    me->fence_lead = c->lead;
    while (me->fences == fences) {
        wait_in_fence(c, SIM_NEVER);
    }
    sim_clock_at(c, me->fence_over, no_event, NULL, false);
    while (c->now < me->fence_over) {
        wait_in_fence(c, me->fence_over);
    }
    c->lead = me->fence_lead;
}

/* ---- joining ---- */

static struct sim_clock *own;
static bool others; /* it is the preloaded library's, which leaves, too */

void sim_clock_leave(struct sim_clock *c)
{
    if (atomic_load(&c->shared->pid) == (uint32_t)getpid()) {
        if (c->has_turn) {
            c->me->now = c->now;
            c->me->lead = c->lead;
            sim_share_show(c);
            c->has_turn = false;
        }
        atomic_store(&c->shared->left, SIM_LEFT);
        run_others(c);
    }
}

static __attribute__((destructor)) void leave(void)
{
    if (own != NULL && !others) {
        sim_said_all(own);
        sim_clock_leave(own);
    }
}

/* The clock of the preloaded library, if there is that. */
static struct sim_clock *preloaded(void)
{
    void *found = library_global("pinwheel_sim_clock");
    struct sim_clock *(*clock)(void);
    memcpy(&clock, &found, sizeof(clock));
    struct sim_clock *c = clock != NULL ? clock() : NULL;
    if (c != NULL && (c->version != SIM_CLOCK_VERSION || c->bytes != sizeof(*c))) {
        log_line(LOG_ERROR,
                 "the library that `pinwheel sim` preloads has a clock of version %c, and this "
                 "program's one of version %c: use the `pinwheel` and the library of one "
                 "installation; the program ends",
                 (char)(c->version >> 56), (char)(SIM_CLOCK_VERSION >> 56));
        SYS_CALL(SYS_exit_group, 1);
    }
    return c;
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

/* Ranks of a host share its NIC; a child has one of its own. */
static void take_port(struct sim_clock *c)
{
    const struct sim_segment *s = c->segment;
    bool shares = s->per_host > 1 && c->rank < s->ranks;
    memset(c->own_port, 0, sizeof(c->own_port));
    c->port = shares ? sim_port_of(s, sim_node(s, c->rank)) : (struct sim_port *)c->own_port;
    c->slot = shares ? c->rank - sim_first(s, c->rank) : 0;
    c->slots = shares ? s->per_host : 1;
    if (!shares) {
        sim_slot_clear(c->port, 0);
    }
}

/* Counts on from where the process before it, or this one's last program, was. */
static void take_place(struct sim_clock *c, uint32_t place)
{
    c->rank = place;
    c->shared = sim_place(c->segment, place);
    take_port(c);
    sim_said_join(c);
    memcpy(&c->figures, &c->shared->figures, sizeof(c->figures));
    if (c->me->figures_sum != 0 && c->me->figures_sum != sim_sum_figures(&c->figures)) {
        sim_share_spoiled(c->segment, place, "its figures");
    }
}

struct sim_clock *sim_clock_make(bool *again)
{
    const char *path = getenv(SIM_VARIABLE), *rank = getenv("PMI_RANK");
    unsigned long number = rank != NULL ? strtoul(rank, NULL, 10) : 0;
    struct sim_segment *s = path != NULL && rank != NULL ? sim_share_map(path, number) : NULL;
    struct sim_clock *c = s != NULL ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        return NULL;
    }
    uint32_t place = sim_share_place(s, (uint32_t)number, (uint32_t)getpid(), again);
    if (place == UINT32_MAX) {
        free(c);
        return NULL;
    }
    c->version = SIM_CLOCK_VERSION;
    c->bytes = sizeof(*c);
    c->segment = s;
    c->me = &c->record;
    if (place != number) {
        sim_share_await(s, place);
    }
    if (!sim_share_read(sim_place(s, place), c->me)) {
        sim_share_spoiled(s, place, "its turn");
    }
    take_place(c, place);
    *again = *again && atomic_load(&sim_board(s)->turn[place]) == SIM_RUN;
    c->has_turn = *again || place == number;
    c->now = c->me->now;
    c->until = *again ? c->me->until : 0;
    c->me->in_count = 0;
    c->me->in_sum = 0;
    c->main.thread = (pid_t)SYS_CALL(SYS_gettid);
    c->tasks = c->running = &c->main;
    c->ring_at = SIM_NEVER;
    return c;
}

/* ---- processes that are forked ---- */

/* Makes the record of a child that begins at the parent's time. */
static void begin_child(struct sim_clock *c, uint32_t place)
{
    struct sim_rank *to = sim_place(c->segment, place);
    struct sim_record *r = &c->child;
    if (!sim_share_read(to, r)) {
        sim_share_spoiled(c->segment, place, "a place for a process");
    }
    r->now = r->next = c->now + c->debt;
    r->address.opened = r->address.closed = r->fence = r->look_at = SIM_NEVER;
    r->not_before = 0;
    r->outside = r->in_count = r->out_count = 0;
    r->in_sum = r->out_sum = 0;
    r->waits = SIM_COMPUTES;
    sim_share_write(to, r);
    atomic_store(&to->stopped, 0);
    atomic_store(&to->signal, 0);
    atomic_store(&to->left, 0);
    atomic_store(&sim_board(c->segment)->turn[place], SIM_IDLE);
    atomic_store(&to->taken, 1);
}

struct sim_rank *sim_clock_reserve(struct sim_clock *c)
{
    const struct sim_segment *s = c->segment;
    uint32_t host = sim_host(s, c->rank), most = s->processes;
    for (uint32_t i = 0; i < most; i++) {
        uint32_t at = sim_child(s, host) + c->me->forks++ % most;
        if (atomic_load(&sim_place(s, at)->taken) == 0) {
            begin_child(c, at);
            return sim_place(s, at);
        }
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
        c->record = c->child; /* what is in the place now may be its turn */
        take_place(c, (uint32_t)(place - sim_place(c->segment, 0)));
        c->has_turn = false;
        c->count = 0;
        c->now = c->me->now;
        c->debt = c->until = 0;
        c->tasks = c->running;
        c->running->next = NULL;
        c->running->thread = (pid_t)SYS_CALL(SYS_gettid);
        c->running->cpu = 0;
        c->take = NULL;
        c->happened = NULL;
        c->tally = NULL;
        c->freed = NULL;
        c->taker = c->nic = NULL;
        c->ring_at = SIM_NEVER;
        atomic_store(&c->running->signals, 0);
        atomic_store(&place->pid, (uint32_t)getpid());
        await_turn(c);
    } else if (pid == 0) {
        atomic_store(&place->taken, 0);
    } else {
        atomic_store(&place->pid, pid);
        c->until = c->until > c->now + 1 ? c->now + 1 : c->until;
    }
}
