/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPUs in virtual time: no threads, but events. An HPU is idle, or it is to look for work, or it
 * has a call whose time runs:
 *
 *      idle ──sched_wake()──► look() ──there is a call, and its time passes──► end() ─┐
 *        ▲                      │ ▲                                                   │
 *        └────────nothing───────┘ └────────────────there may be more──────────────────┘
 *
 * Device code runs in look(), when its time begins; native code runs in end().
 *
 * Of HPUs that may run a call, and are idle, the one with the lowest number looks first.
 */
#include "hpu/device.h"
#include "hpu/sched_own.h"

#include <errno.h>

static void look(void *hpu);

static bool at(struct hpu *h, uint64_t after, void (*happen)(void *))
{
    const struct hpu_sched_time *t = h->sched->time;
    return t->at(t->arg, t->now(t->arg) + after, happen, h);
}

static void look_after(struct hpu *h, uint64_t after)
{
    if (!h->at.due && h->at.exec == NULL) {
        h->at.due = at(h, after, look); /* if memory is short, the next call wakes it */
    }
}

void sched_wake_virtual(struct hpu_sched *s, const struct hpu_queue *q)
{
    for (unsigned i = 0; i < s->hpus; i++) {
        struct hpu *h = &s->hpu[i];
        if (h->at.due || h->at.exec != NULL || (q != NULL && !sched_may_run(q, i))) {
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
    s->short_since = list_empty(&s->turn) ? exec->queued : s->short_since;
}

static uint64_t cycles_of(const struct hpu_exec *exec)
{
    return exec->core_cycles + (exec->core != NULL ? hpu_device_now(&exec->core->rv32) : 0);
}

uint64_t hpu_sched_elapsed(const struct hpu_sched *s, const struct hpu_exec *exec)
{
    if (s->time == NULL || exec->env.code == NULL) {
        return 0;
    }
    uint64_t cycles = cycles_of(exec) - s->hpu[exec->hpu].at.cycles;
    return cycles * 1000000 / s->time->clock_mhz;
}

/* The call's time is over: what it gave is told, and the HPU looks for more. */
static void end(void *hpu)
{
    struct hpu *h = hpu;
    struct hpu_sched *s = h->sched;
    struct hpu_exec *exec = h->at.exec;
    bool device = exec->env.code != NULL;
    if (!device) {
        h->at.code = hpu_exec_run(exec);
    }
    mutex_take(&s->lock);
    h->at.exec = NULL;
    s->time->took(s->time->arg, &h->at.took);
    sched_ran(h, exec, h->at.code, (int64_t)(h->at.took.ps / 1000));
    /* Where all that is to be done is suspended, time must pass before that is looked at again. */
    bool only_suspended = h->lone != 0 || (h->was_suspended && list_empty(&s->turn));
    if (!list_empty(&h->suspended) || !list_empty(&s->turn)) {
        look_after(h, only_suspended ? s->time->look : 0);
    }
    mutex_give(&s->lock);
}

/* Begins or goes on with a call, if there is one. */
static void look(void *hpu)
{
    struct hpu *h = hpu;
    struct hpu_sched *s = h->sched;
    mutex_take(&s->lock);
    h->at.due = false;
    unsigned before = waiting(s);
    struct hpu_exec *exec = h->at.exec == NULL ? sched_next(h) : NULL;
    uint64_t now = s->time->now(s->time->arg);
    uint64_t shortage = before != 0 && list_empty(&s->turn) ? now - s->short_since : 0;
    if (exec != NULL) {
        h->at.exec = exec;
        exec->place = HPU_PLACE_RUNNING;
    }
    mutex_give(&s->lock);
    if (exec == NULL) {
        return;
    }
    bool goes_on = exec->wait != HPU_WAIT_NONE;
    h->at.took = (struct hpu_took){.exec = exec,
                                   .hpu = h->number,
                                   .begins = !goes_on,
                                   .waited = goes_on ? 0 : now - exec->queued,
                                   .waiting = goes_on ? 0 : before,
                                   .shortage = shortage,
                                   .begin = now,
                                   .ps = goes_on ? s->time->look : s->time->native};
    if (exec->env.code != NULL) {
        h->at.cycles = cycles_of(exec);
        h->at.code = hpu_exec_run(exec);
        h->at.took.ps = (cycles_of(exec) - h->at.cycles) * 1000000 / s->time->clock_mhz;
    }
    if (!at(h, h->at.took.ps, end)) {
        end(h); /* at once, since memory is short: nothing is lost but time */
    }
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
