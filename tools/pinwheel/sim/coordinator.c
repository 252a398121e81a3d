/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coordinator. Ranks run in windows: all that may happen before the end of a window depends on
 * what is known when it begins, so that it does not matter in which order, or at once, they run.
 *
 *      collect what ranks have sent ─► network, up to the first time at which a rank may run
 *           ▲                                      │ packets, with the time of their arrival
 *           └──── all are idle again ◄── ranks run until their `until` ◄┘
 *
 * Rank r runs until the least of
 *   - the time at which another rank may run, and the least way between hosts more: what that one
 *     sends comes no sooner;
 *   - the time of the network's next event, and a cable more: a packet is known to arrive when it
 *     takes the last cable;
 *   - the time at which it sends, and the least way more, for an answer (fabric/sim/rank.c);
 *   - the time at which another rank is to die;
 *   - if other processes of its rank live: the time at which one of these may run, since they run
 *     one at a time (kin.c).
 *
 * Messages enter the network in the order of (time, rank, serial).
 */
#include "debug.h"
#include "kin.h"
#include "traffic.h"
#include "turns.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- windows ---- */

static uint64_t later(uint64_t time, uint64_t by)
{
    return time > SIM_NEVER - by ? SIM_NEVER : time + by;
}

/* Virtual time has come to where a rank is to die, with all its processes: it has done all before,
 * and nothing after. */
static void die(struct coordinator *c, uint32_t rank)
{
    struct player *p = &c->players[rank];
    int pid = atomic_load(&p->pid);
    atomic_store(&p->killed, true);
    if (pid > 0) {
        kill(-pid, SIGKILL); /* its own process group, as the launcher made it */
    }
    for (uint32_t i = 0; i < places(c); i++) {
        if (sim_host(&c->layout, i) == rank && !c->players[i].gone) {
            rank_of(c, i)->now = p->dies;
            kin_note_end(c, i);
            turns_due(c, i);
        }
    }
}

/* Lets the rank die that dies first, if that is not later than `time`, at which others may run. */
static bool die_first(struct coordinator *c, uint64_t time)
{
    const struct fault_plan *f = &c->setup.faults;
    uint32_t rank = c->setup.ranks;
    for (size_t i = 0; i < f->deaths; i++) {
        if (!c->players[f->death[i].rank].gone && f->death[i].time <= time) {
            rank = f->death[i].rank;
            time = f->death[i].time;
        }
    }
    if (rank < c->setup.ranks) {
        die(c, rank);
    }
    return rank < c->setup.ranks;
}

static void grant(struct coordinator *c, uint32_t rank, uint64_t until)
{
    struct sim_record *r = rank_of(c, rank);
    const struct player *p = &c->players[rank];
    uint64_t turn = kin_turn(c, rank), dies = c->players[sim_host(&c->layout, rank)].dies;
    until = turn < until ? turn : until;
    until = !p->gone && dies < until ? dies : until;
    r->until = traffic_hand_over(c, rank, until);
    if (c->players[rank].gone || (r->in_count == 0 && r->next >= r->until)) {
        turns_due(c, rank);
    } else {
        turns_give(c, rank);
    }
}

/* All ranks that are left are in a fence, each by one of its processes: it is over when the last
 * one is there. The other processes wait. */
static bool end_fence(struct coordinator *c)
{
    uint64_t over = 0, sooner = 0; /* it would be, with one HPU more */
    bool any = false;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        bool in = kin_in_fence(c, i, &over, &sooner);
        if (!in && kin_alive(c, i)) {
            return false;
        }
        any |= in;
    }
    for (uint32_t i = 0; any && i < places(c); i++) {
        struct sim_record *r = rank_of(c, i);
        if (!c->players[i].gone && r->fence != SIM_NEVER) {
            r->fence = SIM_NEVER;
            r->fence_over = over;
            r->fence_lead = over - sooner;
            r->fences++;
            r->next = over < r->next ? over : r->next;
            turns_due(c, i);
        }
    }
    return any;
}

/* Lets all happen in the network that no rank can change any more. `event` is the time of the next
 * thing that may happen there and tell of a packet. */
static bool step_network(struct coordinator *c, uint64_t *event)
{
    struct due first;
    turns_first(c, &first);
    while (net_next(c->net, event) && *event < first.time) {
        uint64_t announced = c->serial;
        if (net_step(c->net) != 0) {
            c->memory_short = true;
            return false;
        }
        if (c->serial != announced) {
            turns_first(c, &first); /* a packet comes to a rank, which may be the next one now */
        }
    }
    if (c->travelling == 0 || !net_next(c->net, event)) {
        *event = SIM_NEVER;
    }
    return true;
}

/* Writes what ranks have said before anybody can say more. */
static void print_lines(struct coordinator *c, const struct due *first)
{
    if (c->lines != NULL) {
        /* a child has a place behind those of other ranks, but says its lines as its rank */
        bool kin = places(c) > c->setup.ranks && first->time != SIM_NEVER;
        lines_print(c->lines, first->time, kin ? 0 : first->rank, &c->stop);
    }
}

static const char *const waits[] = {[SIM_COMPUTES] = "computes",
                                    [SIM_WAITS] = "waits for an event or a counter",
                                    [SIM_POLLS] = "polls",
                                    [SIM_IN_FENCE] = "is in a barrier",
                                    [SIM_SLEEPS] = "sleeps",
                                    [SIM_OUTSIDE] = "waits outside of Portals",
                                    [SIM_MEMORY] = "waits for memory (--memory-waits)"};

/* Kills the ranks that are left. Their process numbers are those of the launcher: a rank that
 * scribbles over its record can only have itself killed. */
static void kill_ranks(const struct coordinator *c)
{
    for (uint32_t i = 0; i < places(c); i++) {
        int rank = atomic_load(&c->players[sim_host(&c->layout, i)].pid);
        int pid = i < c->setup.ranks ? rank : (int)c->players[i].process;
        if (!c->players[i].gone && pid > 0 && (pid == rank || getpgid(pid) == rank)) {
            /* what has happened was said: the launcher does not say it of each rank */
            atomic_store(&c->players[sim_host(&c->layout, i)].killed, true);
            kill(pid, SIGKILL);
        }
    }
}

/* Says what a rank waits for in Portals. */
static void tell_wait(const struct fabric_waits *w)
{
    if (w->counter) {
        fprintf(stderr, ": counter 0x%x, which has counted %" PRIu64 " of %" PRIu64, w->handle,
                w->counted, w->wanted);
    }
    if (w->unmatched && w->pid == 0) {
        fprintf(stderr,
                "; a message of rank %u that nothing has matched is at portal table index %u, "
                "match bits 0x%" PRIx64,
                w->nid, w->pt, w->bits);
    } else if (w->unmatched) {
        fprintf(stderr,
                "; a message of NID %u, PID %u that nothing has matched is at portal table index "
                "%u, match bits 0x%" PRIx64,
                w->nid, w->pid, w->pt, w->bits);
    }
}

/* Nothing will ever happen: says who waits, and ends all. */
static void end_stuck(struct coordinator *c)
{
    c->result.stuck = true;
    print_lines(c, &(struct due){SIM_NEVER, UINT32_MAX});
    fprintf(stderr, "pinwheel sim: nothing will happen any more, and ranks wait:\n");
    for (uint32_t i = 0; i < places(c); i++) {
        const struct sim_record *r = rank_of(c, i);
        if (!c->players[i].gone) {
            fprintf(stderr, "pinwheel sim:   rank %u%s %s since %.5f us", sim_host(&c->layout, i),
                    i < c->setup.ranks ? "" : "'s child",
                    c->players[i].stopped ? "is stopped" : waits[r->waits], (double)r->now / 1e6);
            if (r->waits == SIM_WAITS) {
                tell_wait(&r->waits_for);
            }
            fputc('\n', stderr);
        }
    }
    kill_ranks(c);
}

/* Whether all ranks that are left only look at nothing, for long, or wait for ever. */
static bool only_looks(const struct coordinator *c, uint64_t event)
{
    bool any = false;
    for (uint32_t i = 0; event == SIM_NEVER && i < places(c); i++) {
        const struct sim_record *r = rank_of(c, i);
        bool looks = r->waits == SIM_POLLS && r->silence >= SIM_SILENCE;
        if (c->players[i].count != 0 || (!c->players[i].gone && r->next != SIM_NEVER && !looks)) {
            return false;
        }
        any |= looks;
    }
    return any;
}

/* When the next rank is to die. */
static uint64_t next_death(const struct coordinator *c)
{
    const struct fault_plan *f = &c->setup.faults;
    uint64_t time = SIM_NEVER;
    for (size_t i = 0; i < f->deaths; i++) {
        bool lives = !c->players[f->death[i].rank].gone;
        time = lives && f->death[i].time < time ? f->death[i].time : time;
    }
    return time;
}

/* Lets all ranks run that may: the first one as far as the second one allows, all others as far as
 * the first one does; and none beyond a death: it could wait there, in real time and with its turn,
 * for a rank that does not get there. */
static void give_turns(struct coordinator *c, uint64_t event)
{
    uint64_t cable = later(event, c->setup.net.cable), death = next_death(c);
    struct due first, second;
    cable = death < cable ? death : cable;
    turns_first(c, &first);
    turns_take(c);
    uint64_t others = later(first.time, c->layout.lookahead);
    others = others < cable ? others : cable;
    bool more = turns_first(c, &second);
    uint64_t own = later(second.time, c->layout.lookahead);
    grant(c, first.rank, own < cable ? own : cable);
    while (more && second.time < others) {
        turns_take(c);
        c->batch.rank[c->batch.count++] = second.rank;
        more = turns_first(c, &second);
    }
    for (uint32_t i = 0; i < c->batch.count; i++) {
        grant(c, c->batch.rank[i], others);
    }
    c->batch.count = 0;
}

/* Whether one whose turn is over is in a fence. Others may have more to do: threads, packets. */
static bool comes_to_fence(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->back.count; i++) {
        if (rank_of(c, c->back.rank[i])->fence != SIM_NEVER) {
            return true;
        }
    }
    return false;
}

/* One window; false: all is over. */
static bool run_window(struct coordinator *c)
{
    struct due first;
    uint64_t event;
    traffic_collect(c);
    for (uint32_t i = 0; i < c->back.count; i++) {
        turns_due(c, c->back.rank[i]);
    }
    kin_stir(c);
    if (comes_to_fence(c)) {
        end_fence(c);
    }
    if (c->spoiled || !step_network(c, &event) || c->memory_short) {
        return false;
    }
    if (only_looks(c, event) && !die_first(c, SIM_NEVER - 1)) {
        end_stuck(c);
        return false;
    }
    bool any = turns_first(c, &first);
    if (any && die_first(c, first.time)) {
        return true;
    }
    if (any) {
        print_lines(c, &first);
        give_turns(c, event);
        return true;
    }
    bool alive = false;
    for (uint32_t i = 0; i < places(c); i++) {
        alive |= !c->players[i].gone;
    }
    if (alive && !end_fence(c) && !die_first(c, SIM_NEVER - 1) && !kin_look(c)) {
        if (!atomic_load(&c->stop)) { /* else all ranks have ended, and these are nobody's */
            end_stuck(c);
        }
        return false;
    }
    return alive;
}

void *coordinate(void *coordinator)
{
    struct coordinator *c = coordinator;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        turns_expect(c, i);
    }
    bool goes_on = turns_await(c);
    if (goes_on && c->setup.debugged) {
        debug_await(c);
    }
    while (goes_on && run_window(c)) {
        goes_on = turns_await(c);
    }
    if (c->spoiled) {
        c->result.failed = true;
        kill_ranks(c);
    } else if (c->result.stuck && c->out.count != 0) {
        kill_ranks(c); /* they spin */
    } else if (c->memory_short) {
        c->result.failed = true;
        fprintf(stderr, net_overflow(c->net)
                            ? "pinwheel sim: a time passes 2^63 - 1 ps, 106 days: the job ends\n"
                            : "pinwheel sim: no memory for the packets of the network\n");
        kill_ranks(c);
    }
    return NULL;
}
