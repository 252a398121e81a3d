/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs in virtual time: no threads, but events. An HPU is idle, or it is to look for work, or it
 * has a call whose time runs:
 *
 *      idle ──sched_wake()──► look() ──there is a call──► go_on() ──it has ended──► end() ─┐
 *        ▲                      │ ▲                        │   ▲                           │
 *        └────────nothing───────┘ │                   time passes, in it                   │
 *                                 └─────────────────there may be more──────────────────────┘
 *
 * Native code runs when its declared time has passed. Time passes in a call at each scheduling
 * point: its transfers, and of device code each handler call, each atomic and each 64 cycles. So
 * HPUs see each other's stores in the order of virtual time, to that grain; and a call always runs
 * at the time of the clock.
 *
 * An HPU that fails runs nothing any more; what is about to happen there finds no call.
 *
 * Of HPUs that may run a call, and are idle, the one with the lowest number looks first.
 *
 * HPUs that several schedulers share are taken for as long as a call's time runs. What finds none
 * waits until one is free for it, in the order in which all who share them began to wait.
 */
#include "hpu/device.h"
#include "hpu/refuse.h"
#include "hpu/sched_own.h"

#include <errno.h>

static void look(void *hpu);
static void end_unserved(void *sched);
static uint64_t now(const struct hpu *h);

static bool at(struct hpu *h, uint64_t after, void (*happen)(void *))
{
    const struct hpu_sched_time *t = h->sched->time;
    return t->at(t->arg, t->now(t->arg) + after, happen, h);
}

static void look_after(struct hpu *h, uint64_t after)
{
    if (!h->at.due && !h->at.out && h->at.exec == NULL) {
        h->at.due = at(h, after, look); /* if memory is short, the next call wakes it */
    }
}

/* ---- HPUs that are shared ---- */

/* Since when calls wait for an HPU; UINT64_MAX: none does. */
static uint64_t wanted_since(const struct hpu *h)
{
    const struct hpu_sched *s = h->sched;
    uint64_t since = UINT64_MAX;
    if (s->paused != 0 || h->at.out || h->at.exec != NULL) {
        return since;
    }
    for (const struct list *l = s->turn.next; l != &s->turn; l = l->next) {
        const struct hpu_queue *q = container_of(l, struct hpu_queue, turn);
        if (sched_may_run(q, h->number) && !list_empty(&q->ready)) {
            uint64_t queued = container_of(q->ready.next, struct hpu_exec, link)->queued;
            since = queued < since ? queued : since;
        }
    }
    if (!list_empty(&h->suspended) && h->at.denied != 0 && h->at.denied < since) {
        since = h->at.denied;
    }
    return since;
}

/* Tells what waits for HPUs, and has those look that are free for it, but for one that has just
 * found nothing; lock held. */
static void share(struct hpu_sched *s, const struct hpu *idle)
{
    uint64_t since[PTL_NUM_HPUS];
    if (s->time->wants == NULL) {
        return;
    }
    for (unsigned i = 0; i < s->hpus; i++) {
        since[i] = &s->hpu[i] != idle ? wanted_since(&s->hpu[i]) : UINT64_MAX;
    }
    uint64_t free = s->time->wants(s->time->arg, since);
    for (unsigned i = 0; i < s->hpus; i++) {
        if ((free >> i & 1) != 0) {
            look_after(&s->hpu[i], 0);
        }
    }
}

/* Takes an HPU that is about to look for a call; false: it is another one's. */
static bool take(struct hpu *h)
{
    const struct hpu_sched_time *t = h->sched->time;
    uint64_t since = wanted_since(h);
    if (t->take == NULL || h->at.out || h->at.exec != NULL) {
        return true;
    }
    if (since == UINT64_MAX && list_empty(&h->suspended)) {
        return true; /* there is nothing to take it for */
    }
    h->at.held = t->take(t->arg, h->number, since != UINT64_MAX ? since : now(h));
    if (h->at.held) {
        h->at.denied = 0;
    } else if (!list_empty(&h->suspended) && h->at.denied == 0) {
        h->at.denied = now(h);
    }
    return h->at.held;
}

static void give(struct hpu *h)
{
    if (h->at.held) {
        h->at.held = false;
        h->sched->time->give(h->sched->time->arg, h->number);
    }
}

void hpu_sched_freed(struct hpu_sched *s)
{
    mutex_take(&s->lock);
    share(s, NULL);
    mutex_give(&s->lock);
}

/* ---- who looks ---- */

/* Whether an HPU is left that may run calls of a queue. */
static bool is_served(const struct hpu_sched *s, const struct hpu_queue *q)
{
    unsigned i = 0;
    while (i < s->hpus && (s->hpu[i].at.out || (q->mask != 0 && (q->mask >> i & 1) == 0))) {
        i++;
    }
    return i < s->hpus;
}

void sched_wake_virtual(struct hpu_sched *s, const struct hpu_queue *q)
{
    if (s->stop) {
        return; /* time is over, too */
    }
    if (q != NULL && !is_served(s, q)) {
        s->time->at(s->time->arg, s->time->now(s->time->arg), end_unserved, s);
        return;
    }
    if (s->time->wants != NULL) {
        share(s, NULL);
        return;
    }
    for (unsigned i = 0; i < s->hpus; i++) {
        struct hpu *h = &s->hpu[i];
        if (h->at.due || h->at.out || h->at.exec != NULL || (q != NULL && !sched_may_run(q, i))) {
            continue;
        }
        look_after(h, 0);
        if (q != NULL) {
            return;
        }
    }
}

/* How many calls wait for an HPU. */
static unsigned waiting(const struct hpu_sched *s)
{
    unsigned count = 0;
    for (const struct list *l = s->turn.next; l != &s->turn; l = l->next) {
        count += container_of(l, struct hpu_queue, turn)->waiting;
    }
    return count;
}

void sched_waits_virtual(struct hpu_sched *s, struct hpu_exec *exec)
{
    exec->queued = s->time->now(s->time->arg);
    exec->lead = s->time->lead(s->time->arg);
    s->short_since = list_empty(&s->turn) ? exec->queued : s->short_since;
}

const struct hpu_sched_time *hpu_sched_time_of(const struct hpu_sched *s)
{
    return s->time;
}

static uint64_t now(const struct hpu *h)
{
    return h->sched->time->now(h->sched->time->arg);
}

/* ---- on the context of a call ---- */

static uint64_t cycles_of(const struct hpu_exec *exec)
{
    return exec->core_cycles + (exec->core != NULL ? hpu_device_now(&exec->core->rv32) : 0);
}

/* How far device code has come that has taken so many cycles. */
static uint64_t reached(const struct hpu *h, uint64_t cycles)
{
    return h->at.took.begin + (cycles - h->at.cycles) * 1000000 / h->sched->time->clock_mhz;
}

static struct hpu *hpu_of(const struct hpu_exec *exec)
{
    return &exec->env.timed->hpu[exec->hpu];
}

/* Lets time pass; go_on() comes back here. */
static void pass_until(struct hpu *h, struct hpu_exec *exec, uint64_t time)
{
    if (time > now(h)) {
        h->at.until = time;
        exec->wait = HPU_WAIT_TIME;
        hpu_ctx_suspend(exec->ctx);
    }
}

void hpu_sched_point(struct hpu_exec *exec)
{
    struct hpu *h = hpu_of(exec);
    if (exec->core != NULL) {
        pass_until(h, exec, reached(h, cycles_of(exec)));
    }
}

void hpu_sched_until(struct hpu_exec *exec, uint64_t time)
{
    struct hpu *h = hpu_of(exec);
    if (exec->core != NULL) {
        uint64_t mhz = h->sched->time->clock_mhz, at = now(h);
        rv32_core_charge(&exec->core->rv32,
                         time > at ? (uint32_t)(((time - at) * mhz + 999999) / 1000000) : 0);
        hpu_sched_point(exec);
    } else {
        pass_until(h, exec, time);
    }
}

/* ---- events ---- */

/* The call's time is over: what it gave is told, and the HPU looks for more. */
static void end(void *hpu)
{
    struct hpu *h = hpu;
    struct hpu_sched *s = h->sched;
    struct hpu_exec *exec = h->at.exec;
    if (exec == NULL) {
        return; /* the HPU has failed */
    }
    h->at.took.ps = now(h) - h->at.took.begin;
    mutex_take(&s->lock);
    h->at.exec = NULL;
    give(h);
    s->time->took(s->time->arg, &h->at.took);
    sched_ran(h, exec, h->at.code, (int64_t)(h->at.took.ps / 1000));
    /* Where all that is to be done is suspended, time must pass before that is looked at again. */
    bool only_suspended = h->lone != 0 || (h->was_suspended && list_empty(&s->turn));
    if (!list_empty(&h->suspended) || !list_empty(&s->turn)) {
        look_after(h, only_suspended ? s->time->look : 0);
    }
    share(s, NULL);
    mutex_give(&s->lock);
}

/* Runs a call until it ends, is suspended, or comes to something that takes time. */
static void go_on(void *hpu)
{
    struct hpu *h = hpu;
    struct hpu_exec *exec = h->at.exec;
    if (exec == NULL) {
        return;
    }
    bool device = exec->env.code != NULL;
    do {
        h->at.until = 0;
        h->at.code = hpu_exec_run(exec);
        /* If memory is short it goes on at once: nothing is lost but time. */
    } while (h->at.until != 0 && !at(h, h->at.until - now(h), go_on));
    if (h->at.until != 0) {
        return;
    }
    uint64_t over = now(h);
    if (device) {
        /* A core whose call has ended has told its cycles, even if it is still named. */
        over = reached(h, h->at.code == HPU_WAIT ? cycles_of(exec) : exec->core_cycles);
    }
    if (over <= now(h) || !at(h, over - now(h), end)) {
        end(h);
    }
}

/* Begins or goes on with a call, if there is one. */
static void look(void *hpu)
{
    struct hpu *h = hpu;
    struct hpu_sched *s = h->sched;
    mutex_take(&s->lock);
    h->at.due = false;
    unsigned before = waiting(s);
    if (!take(h)) {
        share(s, NULL);
        mutex_give(&s->lock);
        return;
    }
    struct hpu_exec *exec = h->at.exec == NULL && !h->at.out ? sched_next(h) : NULL;
    uint64_t shortage = before != 0 && list_empty(&s->turn) ? now(h) - s->short_since : 0;
    if (exec != NULL) {
        h->at.exec = exec;
        h->at.code = HPU_WAIT; /* it has not ended */
        exec->place = HPU_PLACE_RUNNING;
    } else if (h->at.exec == NULL) {
        give(h);
    }
    share(s, exec == NULL ? h : NULL);
    mutex_give(&s->lock);
    if (exec == NULL) {
        return;
    }
    bool goes_on = exec->wait != HPU_WAIT_NONE;
    h->at.took = (struct hpu_took){.exec = exec,
                                   .hpu = h->number,
                                   .begins = !goes_on,
                                   .waited = goes_on ? 0 : now(h) - exec->queued,
                                   .waiting = goes_on ? 0 : before,
                                   .shortage = shortage,
                                   .begin = now(h)};
    h->at.cycles = cycles_of(exec);
    s->time->begins(s->time->arg, h->number, goes_on ? now(h) : exec->queued,
                    goes_on ? s->time->lead(s->time->arg) : exec->lead);
    uint64_t first = exec->env.code != NULL ? 0 : goes_on ? s->time->look : s->time->native;
    if (first == 0 || !at(h, first, go_on)) {
        go_on(h);
    }
}

/* ---- HPUs that fail ---- */

/* Ends a call that runs or is suspended on an HPU which has failed; lock held. */
static void end_by_fault(struct hpu *h, struct hpu_exec *exec, uint64_t ps)
{
    struct hpu_sched *s = h->sched;
    mutex_give(&s->lock);
    hpu_tell(exec, h->number, "ended with SEGV: HPU %u, where it ran, has failed", h->number);
    if (exec->wait != HPU_WAIT_NONE && h->at.code == HPU_WAIT) {
        hpu_exec_cancel(exec); /* it is in the midst of something */
    }
    exec->host_fault = false;
    mutex_take(&s->lock);
    sched_ran(h, exec, SEGV, (int64_t)(ps / 1000));
}

/* Ends the calls for which no HPU is left. */
static void end_unserved(void *sched)
{
    struct hpu_sched *s = sched;
    for (;;) {
        struct hpu_exec *exec = NULL;
        mutex_take(&s->lock);
        LIST_EACH(struct hpu_queue, q, &s->turn, turn) {
            if (!is_served(s, q)) {
                exec = container_of(q->ready.next, struct hpu_exec, link);
                break;
            }
        }
        mutex_give(&s->lock);
        if (exec == NULL || !hpu_sched_withdraw(s, exec)) {
            return;
        }
        hpu_tell(exec, s->hpus, "ended with SEGV: no HPU is left that may run it");
        exec->host_fault = false;
        s->ops->done(s->arg, exec, SEGV);
    }
}

void hpu_sched_fault(struct hpu_sched *s, unsigned hpu)
{
    struct hpu *h = &s->hpu[hpu];
    mutex_take(&s->lock);
    struct hpu_exec *exec = h->at.exec;
    h->at.out = true;
    if (exec != NULL) {
        h->at.exec = NULL;
        give(h);
        h->at.took.ps = now(h) - h->at.took.begin;
        s->time->took(s->time->arg, &h->at.took);
        end_by_fault(h, exec, h->at.took.ps);
    }
    h->at.code = HPU_WAIT;
    while (!list_empty(&h->suspended)) {
        exec = container_of(h->suspended.next, struct hpu_exec, link);
        list_remove(&exec->link);
        exec->charged = 0;
        end_by_fault(h, exec, 0);
    }
    mutex_give(&s->lock);
    end_unserved(s);
}

struct hpu_sched *hpu_sched_create_virtual(struct hpu_pool *pool, unsigned hpus,
                                           const struct hpu_sched_time *time,
                                           const struct hpu_sched_ops *ops, void *arg)
{
    if (hpus < 1 || hpus > PTL_NUM_HPUS) {
        errno = EINVAL;
        return NULL;
    }
    struct hpu_sched *s = sched_new(pool, hpus, ops, arg);
    if (s != NULL) {
        s->time = time;
    }
    return s;
}
