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
 *   - the time at which it sends, and the least way more, for an answer (fabric/sim/rank.c).
 *
 * Messages enter the network in the order of (time, rank, serial).
 */
#include "base/sys.h"
#include "traffic.h"

#include <signal.h>
#include <stdio.h>

enum { SILENCE_S = 10 };

/* ---- turns ---- */

/* A rank that has ended has no NIC any more. */
static void note_end(struct coordinator *c, uint32_t rank)
{
    struct sim_rank *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    if (!p->gone) {
        p->gone = true;
        r->closed = r->closed < r->now ? r->closed : r->now;
        r->next = SIM_NEVER;
        r->fence = SIM_NEVER;
    }
}

static bool is_idle(struct coordinator *c, uint32_t rank)
{
    struct sim_rank *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    if (atomic_load(&p->exited) || atomic_load(&r->left) != 0) {
        note_end(c, rank);
        return true;
    }
    return atomic_load(&r->pid) != 0 && atomic_load(&r->turn) == SIM_IDLE;
}

/* Says that a rank holds all others up. */
static void tell_silence(struct coordinator *c, uint32_t rank)
{
    const struct sim_rank *r = rank_of(c, rank);
    if (atomic_load(&r->pid) == 0) {
        fprintf(stderr,
                "pinwheel sim: rank %u has not called PtlNIInit or pinwheel_job_barrier for %d s; "
                "the others wait for it\n",
                rank, SILENCE_S);
    } else {
        fprintf(stderr,
                "pinwheel sim: rank %u (process %u) computes, or waits outside of Portals, since "
                "%d s; virtual time stands at %.3f us\n",
                rank, r->pid, SILENCE_S, (double)r->now / 1e6);
    }
}

/* Waits until no rank runs; false: the job is over. */
static bool await_all(struct coordinator *c)
{
    int64_t since = clock_ns();
    bool told = false;
    for (uint32_t rank = 0; rank < c->setup.ranks;) {
        uint32_t came = atomic_load(&c->segment->came);
        if (atomic_load(&c->stop)) {
            return false;
        }
        if (is_idle(c, rank)) {
            rank++;
            continue;
        }
        futex_wait(&c->segment->came, came, 1000000000);
        if (!told && clock_ns() - since > (int64_t)SILENCE_S * 1000000000) {
            told = true;
            tell_silence(c, rank);
        }
    }
    return true;
}

static uint64_t next_of(const struct coordinator *c, uint32_t rank)
{
    const struct player *p = &c->players[rank];
    uint64_t next = rank_of(c, rank)->next;
    return p->count != 0 && p->coming[0].time < next ? p->coming[0].time : next;
}

static void grant(struct coordinator *c, uint32_t rank, uint64_t until)
{
    struct sim_rank *r = rank_of(c, rank);
    uint64_t next = next_of(c, rank);
    if (next >= until) {
        return;
    }
    r->until = traffic_hand_over(c, rank, until);
    if (c->players[rank].gone || (r->in_count == 0 && r->next >= r->until)) {
        return;
    }
    atomic_store(&r->turn, SIM_RUN);
    futex_wake(&r->turn);
}

/* All ranks that are left are in a fence: it is over when the last one is there. */
static bool end_fence(struct coordinator *c)
{
    uint64_t over = 0;
    bool any = false;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        if (c->players[i].gone) {
            continue;
        }
        if (r->fence == SIM_NEVER) {
            return false;
        }
        any = true;
        over = r->now + c->segment->lookahead > over ? r->now + c->segment->lookahead : over;
    }
    for (uint32_t i = 0; any && i < c->setup.ranks; i++) {
        struct sim_rank *r = rank_of(c, i);
        if (!c->players[i].gone) {
            r->fence = SIM_NEVER;
            r->fence_over = over;
            r->fences++;
            r->next = over;
        }
    }
    return any;
}

/* The least two times at which ranks may run, of different ranks. */
struct least {
    uint64_t first, second;
    uint32_t rank; /* of the first */
};

static struct least find_least(const struct coordinator *c)
{
    struct least l = {SIM_NEVER, SIM_NEVER, 0};
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        uint64_t next = next_of(c, i);
        if (next < l.first) {
            l = (struct least){next, l.first, i};
        } else if (next < l.second) {
            l.second = next;
        }
    }
    return l;
}

/* Lets all happen in the network that no rank can change any more. */
static bool step_network(struct coordinator *c, struct least *l, uint64_t *event)
{
    *l = find_least(c);
    while (net_next(c->net, event) && *event < l->first) {
        uint64_t announced = c->serial;
        if (net_step(c->net) != 0) {
            c->memory_short = true;
            return false;
        }
        if (c->serial != announced) {
            *l = find_least(c); /* a packet comes to a rank, which may be the next one now */
        }
    }
    if (!net_next(c->net, event)) {
        *event = SIM_NEVER;
    }
    return true;
}

static uint64_t later(uint64_t time, uint64_t by)
{
    return time > SIM_NEVER - by ? SIM_NEVER : time + by;
}

static const char *const waits[] = {[SIM_COMPUTES] = "computes",
                                    [SIM_WAITS] = "waits for an event or a counter",
                                    [SIM_POLLS] = "polls",
                                    [SIM_IN_FENCE] = "is in a barrier"};

/* Kills the ranks that are left. One that never came has no process number that is known. */
static void kill_ranks(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        if (!c->players[i].gone) {
            kill((pid_t)rank_of(c, i)->pid, SIGKILL);
        }
    }
}

/* Nothing will ever happen: says who waits, and ends all. */
static void end_stuck(struct coordinator *c)
{
    c->result.stuck = true;
    fprintf(stderr, "pinwheel sim: nothing will happen any more, and ranks wait:\n");
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        if (!c->players[i].gone) {
            fprintf(stderr, "pinwheel sim:   rank %u %s since %.5f us\n", i, waits[r->waits & 3],
                    (double)r->now / 1e6);
        }
    }
    kill_ranks(c);
}

/* Whether all ranks that are left only look at nothing, for long, or wait for ever. */
static bool only_looks(const struct coordinator *c, uint64_t event)
{
    bool any = false;
    for (uint32_t i = 0; event == SIM_NEVER && i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        bool looks = r->waits == SIM_POLLS && r->silence >= SIM_SILENCE;
        if (c->players[i].count != 0 || (!c->players[i].gone && r->next != SIM_NEVER && !looks)) {
            return false;
        }
        any |= looks;
    }
    return any;
}

/* One window; false: all is over. */
static bool run_window(struct coordinator *c)
{
    struct least l;
    uint64_t event;
    traffic_collect(c);
    if (!step_network(c, &l, &event) || c->memory_short) {
        return false;
    }
    if (only_looks(c, event)) {
        end_stuck(c);
        return false;
    }
    if (l.first == SIM_NEVER) {
        bool alive = false;
        for (uint32_t i = 0; i < c->setup.ranks; i++) {
            alive |= !c->players[i].gone;
        }
        if (alive && !end_fence(c)) {
            end_stuck(c);
            return false;
        }
        return alive;
    }
    uint64_t cable = later(event, c->setup.net.cable);
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        uint64_t other = later(i == l.rank ? l.second : l.first, c->segment->lookahead);
        grant(c, i, other < cable ? other : cable);
    }
    return true;
}

void *coordinate(void *coordinator)
{
    struct coordinator *c = coordinator;
    while (await_all(c) && run_window(c)) {
    }
    if (c->memory_short) {
        c->result.failed = true;
        fprintf(stderr, net_overflow(c->net)
                            ? "pinwheel sim: a time passes 2^63 - 1 ps, 106 days: the job ends\n"
                            : "pinwheel sim: no memory for the packets of the network\n");
        kill_ranks(c);
    }
    return NULL;
}
