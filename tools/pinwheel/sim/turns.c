/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The turns of ranks. A rank is in one of these states:
 *
 *      idle ──turns_give()──► SIM_NEXT ──one of `jobs` places is free──► SIM_RUN ──► SIM_IDLE: back
 *        ▲                                                                                     │
 *        └─────────────────────────────── turns_due(), when it may run next ◄──────────────────┘
 *
 * `due` is a heap of when idle ranks may run. An item is stale unless its time is the rank's `due`,
 * so that a change is a new item, and nothing looks for the old one.
 *
 * At most `jobs` ranks run at once; one whose turn is over starts the next one itself, and the
 * coordinator hears of the last ones only. One that sleeps in the kernel, since it waits for
 * something outside of Portals, uses no place: what it waits for may be one that has none. Which
 * ranks run at once, and in which order, changes nothing of what they do, so that all this may go
 * wrong (a rank dies before it has started the next one) and need only be noticed.
 */
#include "turns.h"

#include "debug.h"
#include "kin.h"
#include "shared.h"
#include "stack.h"

#include "base/array.h"
#include "base/heap.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>

enum {
    SILENCE_S = 10,
    ASK_S = 1,
    ASK_AGAIN_S = 8,
    RANKS_PER_S = 50,
    BLOCKED_NS = 200000,
    STOP_MS = 200
};
/* between two looks at children, whose ends the launcher does not see */
enum { DEATH_NS = 10000000, WAKE_NS = 1000000000 };

/* ---- who may run next ---- */

static bool due_before(const struct due *a, const struct due *b, const void *of)
{
    return a->time != b->time ? a->time < b->time : a->rank < b->rank;
}

HEAP_OF(due, struct due, 4, due_before)

uint64_t turns_next(const struct coordinator *c, uint32_t place)
{
    const struct player *p = &c->players[place];
    uint64_t next = p->gone ? SIM_NEVER : p->record.next;
    next = p->count != 0 && p->coming[0].time < next ? p->coming[0].time : next;
    return p->stopped && !p->gone ? SIM_NEVER : next;
}

void turns_due(struct coordinator *c, uint32_t rank)
{
    struct player *p = &c->players[rank];
    uint64_t next = turns_next(c, rank);
    if (p->turn != TURN_IDLE || next == p->due) {
        return;
    }
    p->due = next;
    if (next == SIM_NEVER) {
        return;
    }
    if (!ARRAY_ROOM(c->due, c->due_count, c->due_capacity, 64)) {
        c->memory_short = true;
        return;
    }
    struct due item = {next, rank};
    due_rise(c->due, c->due_count++, &item, NULL);
}

static void drop_first(struct coordinator *c)
{
    if (--c->due_count != 0) {
        struct due last = c->due[c->due_count];
        due_sink(c->due, c->due_count, &last, NULL);
    }
}

bool turns_first(struct coordinator *c, struct due *first)
{
    while (c->due_count != 0 && c->players[c->due[0].rank].due != c->due[0].time) {
        drop_first(c);
    }
    *first = c->due_count != 0 ? c->due[0] : (struct due){SIM_NEVER, 0};
    return c->due_count != 0;
}

void turns_take(struct coordinator *c)
{
    c->players[c->due[0].rank].due = SIM_NEVER;
    drop_first(c);
}

/* ---- turns ---- */

/* Adds a rank to a list, which has room for all. */
static void add(struct rank_list *l, uint32_t rank)
{
    l->rank[l->count++] = rank;
}

void turns_expect(struct coordinator *c, uint32_t rank)
{
    c->players[rank].turn = TURN_OUT;
    c->players[rank].blocked = true; /* what a rank does before its first turn uses no place */
    add(&c->out, rank);
}

void turns_give(struct coordinator *c, uint32_t rank)
{
    c->players[rank].turn = TURN_OUT;
    c->players[rank].blocked = false;
    shared_give(c, rank);
    atomic_store(&board_of(c)->turn[rank], SIM_NEXT);
    atomic_store(&board_of(c)->turn[sim_places(&c->layout) + c->given++], rank);
    add(&c->out, rank);
}

static void start_given(struct coordinator *c)
{
    struct sim_board *b = board_of(c);
    atomic_store(&b->started, 0);
    atomic_store(&b->ordered, c->given);
    c->given = 0;
    for (uint32_t i = 0; i < c->setup.jobs && sim_next(b, sim_places(&c->layout)); i++) {
    }
}

/* What the board says of a rank that is out. */
static uint32_t turn_of(struct coordinator *c, uint32_t rank)
{
    uint32_t turn = atomic_load(&board_of(c)->turn[rank]);
    if (turn > SIM_NEXT) {
        shared_spoil(c, rank, "whose turn it is");
    }
    return turn;
}

static bool is_over(struct coordinator *c, uint32_t rank, uint32_t turn)
{
    bool idle = shared_process(c, rank) != 0 && turn == SIM_IDLE;
    bool left = shared_left(c, rank) || atomic_load(&c->players[rank].exited);
    bool ended = (left || (!idle && places(c) > c->setup.ranks)) && kin_ended(c, rank);
    if (idle) {
        shared_take(c, rank);
    } else if (ended) {
        shared_take_last(c, rank);
    }
    if (ended) {
        kin_note_end(c, rank);
    }
    return idle || ended;
}

/* What is out. */
struct out {
    uint32_t waiting, running; /* that wait for a place; that use one */
};

void turns_hear(struct coordinator *c, uint32_t place)
{
    if (c->lines != NULL) {
        lines_take(c->lines, sim_host(&c->layout, place), rank_of(c, place)->now);
    }
}

/* Takes the turns that are over. */
static struct out take_back(struct coordinator *c)
{
    struct out o = {0, 0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t rank = c->out.rank[i];
        struct player *p = &c->players[rank];
        uint32_t turn = turn_of(c, rank);
        if (is_over(c, rank, turn)) {
            p->turn = TURN_IDLE;
            add(&c->back, rank);
            if (rank_of(c, rank)->said != 0 && !p->gone) {
                turns_hear(c, rank);
            }
            continue;
        }
        bool waits = turn == SIM_NEXT;
        o.waiting += waits;
        o.running += !waits && !p->blocked;
        c->out.rank[kept++] = rank;
    }
    c->out.count = kept;
    return o;
}

/* Notes the ranks that have ended while they had no turn. */
static void take_ends(struct coordinator *c)
{
    uint32_t exits = atomic_load(&c->exits);
    for (uint32_t i = 0; c->exits_seen != exits && i < c->setup.ranks; i++) {
        struct player *p = &c->players[i];
        if (p->turn == TURN_IDLE && !p->gone && kin_ended(c, i)) {
            kin_note_end(c, i);
            add(&c->back, i);
        }
    }
    c->exits_seen = exits;
}

/* Whether a process is in one of the states that /proc has letters for. */
static bool is_in(uint32_t pid, const char *states)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    char state = sys_task_state(path);
    return state != '\0' && strchr(states, state) != NULL;
}

static bool sleeps(uint32_t pid)
{
    return is_in(pid, "SDTt");
}

void turns_await_stop(struct coordinator *c, uint32_t rank)
{
    uint32_t pid = shared_process(c, rank);
    for (int ms = 0; ms < STOP_MS && !is_in(pid, "TtZX"); ms++) {
        sys_nap(1000000);
    }
}

/* Lets the next one run that waits for a place, whatever the order in the segment is now. */
static void start_next(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        if (sim_start(board_of(c), c->out.rank[i])) {
            return;
        }
    }
}

/* Has those that are out look whether it is their turn: one that was woken knows. */
static void wake_all(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        futex_wake(&board_of(c)->turn[c->out.rank[i]]);
    }
}

/* Lets others run in the place of ranks that sleep. */
static void look_for_blocked(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t rank = c->out.rank[i];
        struct player *p = &c->players[rank];
        if (!p->blocked && turn_of(c, rank) == SIM_RUN && sleeps(shared_process(c, rank))) {
            p->blocked = true;
            start_next(c);
        }
    }
}

/* How long a rank may hold all others up before that is said. One that has not come may be waiting
 * for the launcher, which starts all of them first. */
static int patience(const struct coordinator *c, uint32_t rank)
{
    bool came = c->players[rank].process != 0;
    return SILENCE_S + (came ? 0 : (int)(c->setup.ranks / RANKS_PER_S));
}

/* Says that a rank holds all others up, since so many seconds. */
static void tell_silence(struct coordinator *c, uint32_t rank, int seconds)
{
    uint32_t pid = c->players[rank].process;
    if (pid == 0) {
        fprintf(stderr,
                "pinwheel sim: rank %u has not called PtlNIInit or pinwheel_job_barrier for %d s; "
                "the others wait for it\n",
                rank, seconds);
    } else if (is_in(pid, "Tt")) {
        fprintf(stderr,
                "pinwheel sim: rank %u (process %u) is stopped by a signal or a debugger, since %d "
                "s at most; the others wait for it, and virtual time stands at %.3f us\n",
                rank, pid, seconds, (double)rank_of(c, rank)->now / 1e6);
    } else {
        fprintf(stderr,
                "pinwheel sim: rank %u (process %u) computes, or waits outside of Portals, since "
                "%d s; virtual time stands at %.3f us\n",
                rank, pid, seconds, (double)rank_of(c, rank)->now / 1e6);
        stack_tell(c, rank);
    }
}

/* The time at which the program of a rank that runs is, as it says itself. */
static uint64_t time_of(const struct coordinator *c, uint32_t place)
{
    uint64_t at = atomic_load(&shared_of(c, place)->at);
    const struct sim_record *r = rank_of(c, place);
    return at >= r->now && at <= r->until ? at : r->now;
}

static void sooner(struct due *first, uint64_t time, uint32_t rank)
{
    if (time < first->time || (time == first->time && rank < first->rank)) {
        *first = (struct due){time, rank};
    }
}

/* While a rank holds the others up, shows what is before all that can still come: also what that
 * one has written at the time at which it is. */
static void show_meanwhile(struct coordinator *c)
{
    struct due first;
    turns_first(c, &first);
    first.rank = places(c) > c->setup.ranks ? 0 : first.rank;
    for (uint32_t i = 0; i < c->back.count; i++) { /* these have no item in the heap yet */
        uint32_t place = c->back.rank[i];
        sooner(&first, turns_next(c, place), sim_host(&c->layout, place));
    }
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t place = c->out.rank[i], host = sim_host(&c->layout, place);
        uint64_t time = time_of(c, place);
        lines_hear(c->lines, host);
        if (turn_of(c, place) == SIM_RUN && time == time_of(c, place)) {
            lines_stamp(c->lines, host, time);
        }
        sooner(&first, time, host);
    }
    lines_print(c->lines, first.time, first.rank, &c->stop);
}

/* Asks those that hold the others up for so long what they do, now and then; true: all spin on
 * memory, which was said. */
static bool spin_on(struct coordinator *c, int *asked, int64_t silence)
{
    static const int64_t at[] = {ASK_S * INT64_C(1000000000), ASK_AGAIN_S * INT64_C(1000000000)};
    if (silence < at[0]) {
        *asked = 0;
        return false;
    }
    if (*asked < 2 && silence > at[*asked] && !debug_holds(c)) {
        (*asked)++;
        stack_ask(c);
    }
    if (!stack_all_spin(c)) {
        return false;
    }
    stack_end(c);
    return true;
}

bool turns_await(struct coordinator *c)
{
    int64_t since = clock_ns(), shown = since;
    bool told = false;
    int asked = 0;
    c->back.count = 0;
    start_given(c);
    for (;;) {
        uint32_t came = atomic_load(&board_of(c)->came), back = c->back.count;
        bool stop = atomic_load(&c->stop); /* before the look: all that is to come has come then */
        struct out o = take_back(c);
        take_ends(c);
        if (c->spoiled) {
            return false;
        }
        if (c->out.count == 0) {
            return true;
        }
        if (stop) {
            return false; /* those that are out never come */
        }
        if (o.waiting != 0 && o.running == 0) {
            start_next(c); /* one that was to start another has died */
        }
        since = c->back.count != back ? clock_ns() : since;
        futex_wait(&board_of(c)->came, came,
                   o.waiting != 0               ? BLOCKED_NS
                   : places(c) > c->setup.ranks ? DEATH_NS
                                                : 1000000000);
        if (o.waiting != 0 && c->back.count == back) {
            look_for_blocked(c);
        }
        if (clock_ns() - since > WAKE_NS) {
            wake_all(c);
        }
        if (c->lines != NULL && clock_ns() - shown > WAKE_NS) {
            shown = clock_ns();
            show_meanwhile(c);
        }
        if (spin_on(c, &asked, clock_ns() - since)) {
            return false;
        }
        int seconds = patience(c, c->out.rank[0]);
        if (!told && clock_ns() - since > (int64_t)seconds * 1000000000) {
            told = !debug_holds(c); /* who debugs a rank knows */
            since = told ? since : clock_ns();
            if (told) {
                tell_silence(c, c->out.rank[0], seconds);
            }
        }
    }
}
