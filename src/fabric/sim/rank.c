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
#include "base/log.h"
#include "base/sys.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool event_before(const struct sim_event *a, const struct sim_event *b, const void *of)
{
    return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

HEAP_OF(sim_events, struct sim_event, 4, event_before)

static uint64_t first_event(const struct sim_clock *c)
{
    return c->count != 0 ? c->events[0].time : SIM_NEVER;
}

bool sim_clock_at(struct sim_clock *c, uint64_t time, void (*happen)(void *), void *arg, bool owned)
{
    if (!ARRAY_ROOM(c->events, c->count, c->capacity, 64)) {
        return false;
    }
    struct sim_event e = {time < c->now ? c->now : time, c->serial++, happen, arg, owned};
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

static void happen_first(struct sim_clock *c)
{
    struct sim_event e = c->events[0];
    if (--c->count != 0) {
        struct sim_event last = c->events[c->count];
        sim_events_sink(c->events, c->count, &last, NULL);
    }
    c->now = e.time > c->now ? e.time : c->now;
    c->last = c->now;
    c->looks = 0;
    e.happen(e.arg);
    if (c->happened != NULL) {
        c->happened(c->taker);
    }
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

/* Hands the turn back, and has it again when this returns. */
static void hand_over(struct sim_clock *c, uint64_t next, enum sim_wait why)
{
    struct sim_rank *me = c->me;
    me->now = c->now;
    me->next = next;
    me->waits = why;
    me->silence = why == SIM_POLLS ? c->now - c->last : 0;
    atomic_store(&me->turn, SIM_IDLE);
    run_others(c);
    while (atomic_load(&me->turn) != SIM_RUN) {
        uint32_t turn = atomic_load(&me->turn);
        if (turn != SIM_RUN) {
            futex_wait(&me->turn, turn, -1);
        }
    }
    c->until = me->until;
    for (uint32_t i = 0; i < me->in_count && c->take != NULL; i++) {
        c->take(c->taker, &me->in[i]);
    }
    me->in_count = 0;
}

struct sim_packet *sim_clock_packet(struct sim_clock *c)
{
    if (c->me->out_count == SIM_PACKETS) {
        hand_over(c, c->now, (enum sim_wait)c->me->waits);
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

/* Lets all events up to a time happen, that one included, and the time come. */
static void advance(struct sim_clock *c, uint64_t to, enum sim_wait why)
{
    for (;;) {
        uint64_t first = first_event(c);
        if (first <= to && first < c->until) {
            happen_first(c);
        } else if (to < c->until) {
            c->now = to > c->now ? to : c->now;
            return;
        } else {
            hand_over(c, first < to ? first : to, why);
        }
    }
}

void sim_clock_settle(struct sim_clock *c)
{
    if (c->passing) {
        return;
    }
    c->passing = true;
    do {
        uint64_t to = c->now + c->debt;
        c->debt = 0;
        advance(c, to, SIM_COMPUTES);
    } while (c->debt != 0); /* what comes meanwhile may take the host's time, too */
    c->passing = false;
}

void sim_clock_pass(struct sim_clock *c, uint64_t end, enum sim_wait why)
{
    sim_clock_settle(c);
    if (c->passing) {
        return;
    }
    c->passing = true;
    for (;;) {
        uint64_t first = first_event(c), to = first < end ? first : end;
        if (to < c->until && to != SIM_NEVER) {
            advance(c, to, why);
            break;
        }
        hand_over(c, to, why);
        if (why == SIM_IN_FENCE && c->me->fence == SIM_NEVER) {
            break;
        }
    }
    c->passing = false;
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
        hand_over(c, start, SIM_POLLS);
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
    while (me->fences == fences) {
        sim_clock_pass(c, SIM_NEVER, SIM_IN_FENCE);
    }
    sim_clock_at(c, me->fence_over, no_event, NULL, false);
    while (c->now < me->fence_over) {
        sim_clock_pass(c, me->fence_over, SIM_IN_FENCE);
    }
}

/* ---- joining ---- */

static struct sim_clock *own;

static __attribute__((destructor)) void leave(void)
{
    if (own != NULL && atomic_load(&own->me->pid) == (uint32_t)getpid()) {
        own->me->now = own->now; /* whenever its last turn was */
        atomic_store(&own->me->left, 1);
        run_others(own);
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

struct sim_clock *sim_clock_join(void)
{
    const char *path = getenv(SIM_VARIABLE), *rank = getenv("PMI_RANK");
    if (own != NULL || path == NULL || rank == NULL) {
        return own;
    }
    struct sim_segment *s = map_segment(path);
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
    c->segment = s;
    c->rank = (uint32_t)number;
    c->me = &s->rank[number];
    own = c;
    atomic_store(&c->me->pid, (uint32_t)getpid());
    hand_over(c, 0, SIM_COMPUTES);
    return c;
}
