/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers that run handlers; see timer.h. */
#include "nic/spin/timer.h"

#include "nic/spin/invoke.h"
#include "nic/spin_calls.h"

#define RETRY_NS 1000000 /* time until a tick that found no room is tried again */

static struct timer *timer_at(struct list *l)
{
    return container_of(l, struct timer, link);
}

/* Puts a timer into nic->timers, behind those that are due no later. */
static void file(struct timer *t)
{
    struct list *all = &t->le->ni->nic->timers, *before = all->prev;
    while (before != all && timer_at(before)->due > t->due) {
        before = before->prev;
    }
    list_insert_after(before, &t->link);
}

/* Tells the driver of the NIC's clock when the next timer is due; -1: no timer is left. */
static void tell(struct nic *nic)
{
    nic->wake_at(nic, list_empty(&nic->timers) ? -1 : timer_at(nic->timers.next)->due);
}

struct timer *timer_start(struct le *le, int64_t delay, int64_t period, uint64_t argument)
{
    struct ni *ni = le->ni;
    struct timer *t = ni->closing ? NULL : table_add(&ni->timers);
    if (t == NULL) {
        return NULL;
    }
    t->le = le;
    t->due = t->tick = ni->nic->now() + delay;
    t->period = period;
    t->argument = argument;
    t->busy = NULL;
    le->handlers->timers++;
    file(t);
    if (ni->nic->timers.next == &t->link) {
        tell(ni->nic);
    }
    return t;
}

/* Frees a timer that is in no list. */
static void forget(struct timer *t)
{
    if (t->busy != NULL) {
        t->busy->timer = NULL;
    }
    t->le->handlers->timers--;
    table_drop(&t->le->ni->timers, t);
}

void timer_end(struct timer *t)
{
    list_remove(&t->link);
    forget(t);
}

void timers_end(struct ni *ni)
{
    TABLE_EACH(struct timer, t, &ni->timers) {
        timer_end(t);
    }
}

void timers_end_entry(struct le *le)
{
    TABLE_EACH(struct timer, t, &le->ni->timers) {
        if (t->le == le) {
            timer_end(t);
        }
    }
}

/* Begins a tick; false: no room for its message, or its entry, which is use-once, was used up. Then
 * the timer ends together with the entry. */
static bool begin(struct timer *t)
{
    struct le *le = t->le;
    const struct invoke_what what = {.hdr_data = t->argument, .timer = t};
    return le->linked && invoke(le, &what) == PTL_OK;
}

/* Has a timer tick whose time has come, unless its last tick has not ended; then puts it back into
 * the list, or frees it. */
static bool tick(struct timer *t, int64_t now)
{
    bool left_out = t->busy != NULL, begun = !left_out && begin(t);
    if (begun && t->period == 0) {
        forget(t);
        return true;
    }
    if (begun || left_out) {
        t->tick += (now - t->tick) / t->period * t->period + t->period;
        t->due = t->tick;
    } else {
        t->due = now + RETRY_NS;
    }
    file(t);
    return begun;
}

bool timers_advance(struct nic *nic)
{
    int64_t now = nic->now();
    bool any = false;
    while (!list_empty(&nic->timers) && timer_at(nic->timers.next)->due <= now) {
        struct timer *t = LIST_POP(struct timer, &nic->timers, link);
        any |= tick(t, now);
    }
    tell(nic);
    return any;
}
