/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of a simulated process. One of them runs at a time, and has the clock; the others
 * wait, each for a time, for the NIC, or for what others do.
 *
 *      runs ──sim_clock_wait()──► waits ──its time is the next one──► runs
 *
 * Invariants:
 *   - What comes next is the event, the timer or the thread with the lowest time; of several at one
 *     time, events come first, then timers, then the thread with the lowest number. So the threads
 * go on in the same order in every run, at one time on cores of their own.
 *   - A thread that waits for others or the NIC has SIM_NEVER or its time-out as its time until
 *     something has happened that it may wait for; then it looks again, at the time of that.
 *   - A thread gives the clock up only here, without the lock of the NIC.
 */
#include "fabric/sim/rank.h"

#include "base/sys.h"
#include "fabric/sim/said.h"

#include <signal.h>

static struct sim_task *first_task(const struct sim_clock *c)
{
    struct sim_task *first = c->tasks;
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        first = t->wake < first->wake ? t : first;
    }
    return first;
}

/* A thread goes on at a time, if it would not sooner, with the lead of what now happens. */
static void wake(struct sim_clock *c, struct sim_task *t, uint64_t time, bool outside)
{
    t->lead = time <= t->wake ? c->lead : t->lead;
    t->wake = time < t->wake ? time : t->wake;
    t->outside = outside;
}

void sim_clock_changed(struct sim_clock *c)
{
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        if (t->waits == SIM_TASK_NIC && t != c->running) {
            wake(c, t, c->now, false);
        }
    }
}

static void wake_outside(struct sim_clock *c, uint64_t time, bool outside)
{
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        bool others = t->waits == SIM_TASK_OTHERS || t->waits == SIM_TASK_MEMORY;
        if ((others && !outside) || t->waits == SIM_TASK_ANYBODY) {
            wake(c, t, time, outside);
        }
    }
}

void sim_clock_wake(struct sim_clock *c)
{
    sim_clock_break(c);
    wake_outside(c, c->now, false);
}

void sim_clock_stir(struct sim_clock *c)
{
    sim_clock_wake(c);
    if (atomic_load(&c->segment->used) > c->segment->ranks) {
        c->me->stirs++;
        c->me->stirred = c->now;
        c->until = c->until > c->now + 1 ? c->now + 1 : c->until;
    }
}

void sim_task_signal(struct sim_clock *c, struct sim_task *t)
{
    t->interrupted = true;
    wake(c, t, c->now, false);
}

void sim_task_interrupt(struct sim_clock *c, struct sim_task *t)
{
    if (t != c->running) {
        sim_task_signal(c, t);
    }
}

/* ---- turns of threads ---- */

static void give_clock(struct sim_clock *c, struct sim_task *from, struct sim_task *to)
{
    from->debt = c->debt;
    from->looks = c->looks;
    from->calls = c->calls;
    from->passing = c->passing;
    c->debt = to->debt;
    c->looks = to->looks;
    c->calls = to->calls;
    c->passing = to->passing;
    c->running = to;
    atomic_store(&to->run, 1);
    futex_wake(&to->run);
}

static void await_clock(struct sim_task *t)
{
    while (atomic_load(&t->run) == 0) {
        if (futex_wait_signal(&t->run, 0, -1)) {
            t->interrupted = true;
        }
    }
    atomic_store(&t->run, 0);
}

/* Lets another thread go on, and returns when it is the calling one's time. */
static void switch_to(struct sim_clock *c, struct sim_task *me, struct sim_task *to)
{
    struct nic *nic = me->locked ? c->nic : NULL;
    if (nic != NULL) {
        c->unlock(nic);
    }
    give_clock(c, me, to);
    await_clock(me);
    if (nic != NULL) {
        c->lock(nic);
    }
}

static void happen(struct sim_clock *c, const struct sim_task *me)
{
    struct nic *nic = me != NULL && me->locked ? NULL : c->nic;
    if (nic != NULL) {
        c->lock(nic);
    }
    sim_clock_happen(c);
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        t->looks = 0;
        if (t->waits == SIM_TASK_NIC || t->waits == SIM_TASK_MEMORY) {
            wake(c, t, c->now, false);
        }
    }
    if (nic != NULL) {
        c->unlock(nic);
    }
}

/* Whether a signal that was sent to the process has run a handler: in its first thread. */
static bool is_handled(int signal)
{
    struct sigaction a;
    return sigaction(signal, NULL, &a) == 0 && a.sa_handler != SIG_IGN && a.sa_handler != SIG_DFL;
}

/* Ends the waits of threads that a signal has come to. */
static void take_signals(struct sim_clock *c, uint64_t at)
{
    uint32_t signal = atomic_exchange(&c->shared->signal, 0);
    uint64_t time = c->now > at ? c->now : at;
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        bool came = c->handle != NULL ? atomic_load(&t->signals) != 0
                                      : t == &c->main && signal != 0 && is_handled((int)signal);
        if (came) {
            t->interrupted = true;
            wake(c, t, time, false);
        }
    }
}

/* Hands the turn of the process over; afterwards its threads know what the coordinator says. */
static void hand_over(struct sim_clock *c, uint64_t next, enum sim_wait why)
{
    struct sim_record *r = c->me;
    uint64_t fences = r->fences;
    r->outside = SIM_INSIDE;
    for (const struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        uint32_t waits = t->waits == SIM_TASK_ANYBODY ? SIM_FOR_ANYBODY
                         : t->waits == SIM_TASK_OTHERS || t->waits == SIM_TASK_MEMORY
                             ? SIM_FOR_OTHERS
                             : SIM_INSIDE;
        r->outside = waits > r->outside ? waits : r->outside;
    }
    sim_clock_hand_over(c, next, why);
    if (r->look_at != SIM_NEVER) {
        wake_outside(c, r->look_at > c->now ? r->look_at : c->now, r->look_outside != 0);
        if (c->freed != NULL && c->slots > 1) {
            sim_clock_at(c, r->look_at, c->freed, c->taker, false);
        }
        take_signals(c, r->look_at);
        r->look_at = SIM_NEVER;
    }
    for (struct sim_task *t = c->tasks; t != NULL && r->fences != fences; t = t->next) {
        if (t->why == SIM_IN_FENCE) {
            wake(c, t, c->now, false);
        }
    }
}

/* Whether a thread is in a fence: the other ranks may have left that, and wait in real time, with
 * their turns, for this one. */
static bool in_fence(const struct sim_clock *c)
{
    const struct sim_task *t = c->tasks;
    while (t != NULL && t->why != SIM_IN_FENCE) {
        t = t->next;
    }
    return t != NULL;
}

/* Lets time pass until a thread is to go on, which it returns. What the program has written belongs
 * to the time before that: the coordinator takes it then (said.h), or after the fence. */
static struct sim_task *next_task(struct sim_clock *c, const struct sim_task *me, enum sim_wait why)
{
    bool asked = false;
    for (;;) {
        struct sim_task *t = first_task(c);
        uint64_t event = sim_clock_first(c), ring = c->ring != NULL ? c->ring_at : SIM_NEVER;
        uint64_t nic = event <= ring ? event : ring, to = nic <= t->wake ? nic : t->wake;
        bool said = !asked && to > c->now && to < c->until && !in_fence(c) && sim_said(c);
        asked = true;
        if (said) {
            hand_over(c, c->now, why);
        } else if (to >= c->until) {
            hand_over(c, to, why);
        } else if (nic <= t->wake && event <= ring) {
            happen(c, me);
        } else if (nic <= t->wake) {
            c->now = ring > c->now ? ring : c->now;
            c->ring(c);
        } else {
            c->now = to > c->now ? to : c->now;
            return t;
        }
    }
}

/* What a thread has waited for, since a time, has a lead. */
static uint64_t lead_of(const struct sim_clock *c, uint64_t since, uint64_t own, uint64_t lead)
{
    own += c->now - since;
    return lead < own ? lead : own;
}

/* The handlers of signals that have come run like the program: with the clock, without the lock. */
static void handle_signals(struct sim_clock *c, bool locked)
{
    struct sim_task *me = c->running;
    struct nic *nic = locked ? c->nic : NULL;
    if (nic != NULL) {
        c->unlock(nic);
    }
    c->handle(c);
    if (nic != NULL) {
        c->lock(nic);
    }
    me->interrupted = true;
}

void sim_clock_wait(struct sim_clock *c, uint64_t until, enum sim_task_waits waits,
                    enum sim_wait why, bool locked)
{
    struct sim_task *me = c->running;
    bool passing = c->passing;
    bool polls = c->looks != 0;
    struct sim_loop polled = c->loop;
    c->waits++;
    for (struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        if (t->waits == SIM_TASK_MEMORY && t != me) {
            wake(c, t, c->now, false); /* this one may have changed it */
        }
    }
    uint64_t own = c->lead, start = c->now;
    me->wake = until > c->now ? until : c->now;
    me->lead = SIM_NEVER;
    if (me->woke != c->now || c->debt != 0) {
        me->since = c->now;
        me->since_lead = own;
    }
    c->calls = until > c->now ? 0 : c->calls;
    me->waits = waits;
    me->why = why;
    me->locked = locked;
    me->outside = me->interrupted = false;
    c->passing = true;
    me->gate = SIM_GATE_OPEN;
    struct sim_task *to = next_task(c, me, why);
    if (to != me) {
        switch_to(c, me, to);
    }
    c->passing = passing;
    if (me->lead != SIM_NEVER) {
        c->lead = lead_of(c, me->since, me->since_lead, me->lead);
    } else {
        c->lead =
            polls && c->last > start ? lead_of(c, polled.since, polled.lead, c->last_lead) : own;
    }
    me->woke = c->now;
    atomic_store_explicit(&c->shared->at, c->now, memory_order_release);
    me->wake = SIM_NEVER;
    me->waits = SIM_TASK_TIME;
    me->why = SIM_COMPUTES;
    me->locked = false;
    me->cpu = sim_machine(c)->compute != 0 ? sim_clock_cpu() : 0;
    me->gate = passing ? (uint8_t)SIM_GATE_OPEN : me->shut;
    if (atomic_load_explicit(&me->signals, memory_order_relaxed) != 0 && !passing) {
        handle_signals(c, locked);
    }
}

/* ---- threads begin and end ---- */

void sim_task_begin(struct sim_clock *c, struct sim_task *t)
{
    struct sim_task **last = &c->tasks;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *t = (struct sim_task){.number = ++c->task_count, .wake = c->now + c->debt};
    *last = t;
}

void sim_task_enter(struct sim_clock *c, struct sim_task *t)
{
    t->thread = (pid_t)SYS_CALL(SYS_gettid);
    await_clock(t);
    t->wake = SIM_NEVER;
}

void sim_task_drop(struct sim_clock *c, const struct sim_task *t)
{
    struct sim_task **at = &c->tasks;
    while (*at != t) {
        at = &(*at)->next;
    }
    *at = t->next;
}

void sim_task_pass(struct sim_clock *c)
{
    struct sim_task gone = {.number = 0};
    sim_clock_wake(c);
    c->passing = true;
    if (c->tasks != NULL) {
        give_clock(c, &gone, next_task(c, NULL, SIM_SLEEPS));
    }
}
