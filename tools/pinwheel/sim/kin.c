/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes of a rank: its own, and those that were forked there, its kin. Ranks of a host,
 * which share its NIC (--per-host), are kin, too, with all of theirs. They may share
 * memory, pipes and files, which take no time. So only one of them runs at a time: the one whose
 * time comes first, of several the one with the lowest place, up to the time of the next.
 *
 * A process that waits outside of Portals has no time at which it goes on. It looks again
 *   - when another of its rank has done what it may wait for: that one counts it in its record, and
 *     hands its turn over; its end is such a thing;
 *   - when nothing else happens in the job;
 *   - every LOOK_MS of real time, if what it waits for may come from outside of the job. What it
 *     finds then came at no virtual time: the run is irreproducible, and says so.
 *
 * A child's place is taken by its parent while that has a turn, and given back here.
 */
#include "kin.h"

#include "base/sys.h"
#include "shared.h"
#include "traffic.h"
#include "turns.h"

#include <stdio.h>
#include <sys/pidfd.h>

enum { LOOK_MS = 5, END_MS = 2000 };

/* The place behind `i` of the processes of a rank; UINT32_MAX: it was the last one. */
static uint32_t next_kin(const struct coordinator *c, uint32_t host, uint32_t i)
{
    uint32_t child = sim_child(&c->layout, host), next = i == host ? child : i + 1;
    return next < child + c->setup.processes && next < places(c) ? next : UINT32_MAX;
}

/* The processes of a rank. */
#define EACH_OF_RANK(i, c, host)                                                                   \
    for (uint32_t i = (host); i != UINT32_MAX; i = next_kin((c), (host), i))

/* The same of all ranks of a host, of which `first` is the first one. */
static uint32_t next_mate(const struct coordinator *c, uint32_t first, uint32_t i)
{
    uint32_t rank = sim_host(&c->layout, i), next = next_kin(c, rank, i);
    if (next == UINT32_MAX && rank + 1 < first + c->setup.per_host && rank + 1 < c->setup.ranks) {
        next = rank + 1;
    }
    return next;
}

#define EACH_KIN(i, c, place)                                                                      \
    for (uint32_t first_ = sim_first(&(c)->layout, (place)), i = first_; i != UINT32_MAX;          \
         i = next_mate((c), first_, i))

static bool has_kin(const struct coordinator *c)
{
    return places(c) > c->setup.ranks || c->setup.per_host > 1;
}

/* ---- ends ---- */

/* Whether a process has ended; if it is `about` to, that is awaited, since its parent must find it
 * ended when it looks. */
static bool is_dead(uint32_t pid, bool about)
{
    int fd = pidfd_open((pid_t)pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    bool dead = fd < 0 ? errno == ESRCH : sys_poll(&end, 1, about ? END_MS : 0) > 0;
    if (fd >= 0) {
        sys_close(fd);
    }
    return dead;
}

static void tell_kin(struct coordinator *c, uint32_t who, uint64_t time);

bool kin_ended(struct coordinator *c, uint32_t place)
{
    bool left = shared_left(c, place);
    if (!has_kin(c)) {
        return left || atomic_load(&c->players[place].exited);
    }
    uint32_t pid = shared_process(c, place);
    return atomic_load(&c->players[place].exited) || (pid != 0 && is_dead(pid, left));
}

void kin_note_end(struct coordinator *c, uint32_t place)
{
    struct sim_record *r = rank_of(c, place);
    struct player *p = &c->players[place];
    p->gone = true;
    turns_hear(c, place);
    shared_close(c, place, r->now);
    r->next = SIM_NEVER;
    r->fence = SIM_NEVER;
    r->outside = SIM_INSIDE;
    r->stirs = p->stirs + 1;
    r->stirred = r->now;
    c->result.end = r->now > c->result.end ? r->now : c->result.end;
    if (c->setup.per_host > 1 && place < c->setup.ranks) {
        /* the others go on with what it had of their NIC */
        sim_slot_clear(port_of(c, sim_node(&c->layout, place)), place % c->setup.per_host);
        tell_kin(c, place, r->now);
    }
}

bool kin_alive(const struct coordinator *c, uint32_t rank)
{
    EACH_OF_RANK(i, c, rank)
    {
        if (!c->players[i].gone) {
            return true;
        }
    }
    return false;
}

bool kin_in_fence(const struct coordinator *c, uint32_t rank, uint64_t *over, uint64_t *sooner)
{
    bool in = false;
    EACH_OF_RANK(i, c, rank)
    {
        const struct sim_record *r = rank_of(c, i);
        if (!c->players[i].gone && r->fence != SIM_NEVER) {
            uint64_t known = r->fence + c->layout.lookahead;
            uint64_t lead = r->fence_lead < known ? r->fence_lead : known;
            *sooner = known - lead > *sooner ? known - lead : *sooner;
            *over = known > *over ? known : *over;
            *over = r->now > *over ? r->now : *over;
            in = true;
        }
    }
    return in;
}

/* ---- looks ---- */

static void have_look(struct coordinator *c, uint32_t place, uint64_t time, bool outside)
{
    struct sim_record *r = rank_of(c, place);
    uint64_t at = time > r->now ? time : r->now;
    r->look_at = r->look_at == SIM_NEVER || at < r->look_at ? at : r->look_at;
    r->look_outside = outside;
    r->next = at < r->next ? at : r->next;
    turns_due(c, place);
}

/* Looks for processes that one has forked since. */
static void find_new(struct coordinator *c, uint32_t who)
{
    struct player *parent = &c->players[who];
    uint32_t forks = rank_of(c, who)->forks;
    uint32_t first = sim_child(&c->layout, sim_host(&c->layout, who));
    if (forks == parent->forks) {
        return;
    }
    parent->forks = forks;
    for (uint32_t i = first; i < first + c->setup.processes; i++) {
        struct player *p = &c->players[i];
        if (p->gone && atomic_load(&shared_of(c, i)->taken) != 0) {
            shared_take_new(c, i);
            p->gone = false;
            p->stopped = false;
            p->stirs = rank_of(c, i)->stirs;
            p->forks = rank_of(c, i)->forks;
            turns_due(c, i);
        }
    }
}

/* Notes that a process was stopped or goes on; true: one of both. */
static bool note_stop(struct coordinator *c, uint32_t place, uint64_t time)
{
    struct sim_record *r = rank_of(c, place);
    struct player *p = &c->players[place];
    bool stopped = shared_stopped(c, place), changed = stopped != p->stopped;
    if (changed && !stopped) {
        r->not_before = time > r->now ? time : r->now;
        r->next = r->next < r->not_before ? r->not_before : r->next;
        r->look_at = r->outside != SIM_INSIDE ? r->not_before : r->look_at;
        r->next = r->look_at < r->next ? r->look_at : r->next;
    }
    if (changed && stopped) {
        turns_await_stop(c, place); /* whoever looks finds it so */
    }
    p->stopped = stopped;
    return changed;
}

/* Tells those of a rank of what one of them did at a time; some may have died of it. */
static void tell_kin(struct coordinator *c, uint32_t who, uint64_t time)
{
    EACH_KIN(i, c, who)
    {
        const struct sim_record *r = rank_of(c, i);
        struct player *p = &c->players[i];
        if (i == who || p->gone) {
            continue;
        }
        if (p->turn == TURN_IDLE && kin_ended(c, i)) {
            kin_note_end(c, i);
            turns_due(c, i);
        } else if (note_stop(c, i, time)) {
            turns_due(c, i);
        } else if (r->outside != SIM_INSIDE || shared_signal(c, i) || c->setup.per_host > 1) {
            have_look(c, i, time, false);
        }
    }
}

static void note_anybody(struct coordinator *c, uint32_t place)
{
    struct player *p = &c->players[place];
    bool waits = !p->gone && rank_of(c, place)->outside == SIM_FOR_ANYBODY;
    c->anybody = c->anybody + waits - p->anybody;
    p->anybody = waits;
}

/* Gives the places of children back that have ended. */
static void free_places(struct coordinator *c, uint32_t host)
{
    EACH_OF_RANK(i, c, host)
    {
        if (i != host && c->players[i].gone && c->players[i].turn == TURN_IDLE &&
            atomic_load(&shared_of(c, i)->taken) != 0) {
            note_anybody(c, i);
            shared_free(c, i);
        }
    }
}

/* Has those look who may wait for what comes from outside of the job, and who look for no other
 * reason. */
static void look_outside(struct coordinator *c, uint64_t time)
{
    for (uint32_t i = 0; i < places(c); i++) {
        if (c->players[i].anybody && !c->players[i].gone && rank_of(c, i)->look_at == SIM_NEVER) {
            have_look(c, i, time, true);
        }
    }
}

void kin_stir(struct coordinator *c)
{
    struct due first;
    for (uint32_t k = 0; k < c->back.count; k++) {
        uint32_t i = c->back.rank[k], host = sim_host(&c->layout, i);
        const struct sim_record *r = rank_of(c, i);
        note_anybody(c, i);
        if (note_stop(c, i, r->now)) {
            turns_due(c, i);
        }
        find_new(c, i);
        if (!has_kin(c)) {
            continue;
        }
        if (r->stirs != c->players[i].stirs) {
            c->players[i].stirs = r->stirs;
            tell_kin(c, i, r->stirred);
        }
        free_places(c, host);
    }
    if (c->anybody != 0 && turns_first(c, &first) && clock_ns() - c->looked > LOOK_MS * 1000000ll) {
        c->looked = clock_ns();
        look_outside(c, first.time);
    }
}

/* What the processes of a job wait for, outside of Portals. */
struct waiters {
    uint64_t last;  /* when the last of all processes has come to */
    uint64_t found; /* looks that have found something */
    bool any;
};

static struct waiters find_waiters(const struct coordinator *c)
{
    struct waiters w = {0, 0, false};
    for (uint32_t i = 0; i < places(c); i++) {
        const struct sim_record *r = rank_of(c, i);
        w.found += r->finds;
        if (!c->players[i].gone) {
            w.last = r->now > w.last ? r->now : w.last;
            w.any |= r->outside != SIM_INSIDE;
        }
    }
    return w;
}

bool kin_look(struct coordinator *c)
{
    struct waiters w = find_waiters(c);
    if (!c->looked_all || c->found_all != w.found) {
        for (uint32_t i = 0; w.any && i < places(c); i++) {
            if (!c->players[i].gone && rank_of(c, i)->outside != SIM_INSIDE) {
                have_look(c, i, w.last, false);
            }
        }
        c->looked_all = w.any;
        c->found_all = w.found;
        return w.any;
    }
    if (c->anybody != 0) {
        sys_nap(LOOK_MS * 1000000ll);
        look_outside(c, w.last);
    }
    return c->anybody != 0;
}

/* ---- turns ---- */

uint64_t kin_turn(const struct coordinator *c, uint32_t place)
{
    uint64_t own = turns_next(c, place), until = SIM_NEVER;
    if (!has_kin(c)) {
        return until;
    }
    EACH_KIN(i, c, place)
    {
        if (i == place || c->players[i].gone) {
            continue;
        }
        uint64_t other = turns_next(c, i);
        if (c->players[i].turn == TURN_OUT || other < own || (other == own && i < place)) {
            return 0;
        }
        other += other != SIM_NEVER && i > place;
        until = other < until ? other : until;
    }
    return until;
}
