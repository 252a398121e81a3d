/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered operations. They wait at a counter in order of threshold, and where that is equal in
 * the order in which they were issued. Those whose threshold is reached move to the NIC's fired
 * list, and trigger_run() carries them out from there, one after the other: so a chain of any
 * length needs no stack, and counting never sends by itself. A quiet request (quiet.h) has found
 * its entry when it was armed; it only moves its data, unless it finds that it must take the path
 * of all others.
 */
#include "nic/trigger.h"

#include "base/paths.h"
#include "nic/initiate.h"
#include "nic/quiet.h"
#include "nic/rungs.h"

struct triggered *trigger_new(struct ni *ni)
{
    struct triggered *t = ni->spare_triggered;
    if (t != NULL) {
        ni->spare_triggered = t->next_spare;
    } else {
        t = table_add(&ni->triggered);
    }
    if (t != NULL) {
        t->ni = ni;
    }
    return t;
}

void trigger_arm(struct ct *ct, struct triggered *t)
{
    struct list *after = ct->triggers.prev;
    if (after == &ct->triggers) {
        if (unlikely(ct->rungs != NULL)) {
            rungs_forget(ct);
        }
    } else if (container_of(after, struct triggered, link)->threshold > t->threshold) {
        after = rungs_place(ct, t->threshold);
    }
    list_insert_after(after, &t->link);
    trigger_check(ct);
}

/* Whether a link of a counter's list is an operation (and not the list's head), whose threshold the
 * counter has reached. */
static inline bool is_reached(const struct ct *ct, const struct list *l, uint64_t count)
{
    return l != &ct->triggers && container_of(l, struct triggered, link)->threshold <= count;
}

void trigger_check(struct ct *ct)
{
    uint64_t count = atomic_load_explicit(&ct->success, memory_order_relaxed) +
                     atomic_load_explicit(&ct->failure, memory_order_relaxed);
    struct list *first = ct->triggers.next, *last = first;
    if (!is_reached(ct, first, count)) {
        return;
    }
    while (is_reached(ct, last->next, count)) {
        last = last->next;
    }
    struct nic *nic = ct->ni->nic;
    list_splice_back(&nic->fired, first, last);
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
}

/* Ends the use of the MDs of a triggered request. */
static inline void let_go_of_mds(struct triggered *t)
{
    t->md->users--;
    if (unlikely(t->fetches)) {
        t->request.get_md->users--;
    }
}

/* Returns an operation that is in no list to the NI's spare ones; it may also be armed anew. */
static inline void put_away(struct triggered *t)
{
    t->next_spare = t->ni->spare_triggered;
    t->ni->spare_triggered = t;
}

/* Reports a triggered request for whose operation there is no memory: a failure is counted, and the
 * event tells PTL_NI_DROPPED. */
static void request_lost(const struct request *r)
{
    struct md *md = request_fetches(r) ? request_reply_md(r) : r->md;
    ct_count(md->ct, PTL_NI_DROPPED, false, 0);
    ptl_event_t event = {.type = request_fetches(r) ? PTL_EVENT_REPLY : PTL_EVENT_SEND,
                         .ni_fail_type = PTL_NI_DROPPED,
                         .user_ptr = r->user_ptr};
    eq_post(md->eq, &event);
}

static void append(struct triggered *t)
{
    struct le *le = t->le;
    le->awaited = false;
    if (!t->ni->pts[le->pt_index].allocated || le_link(le) != PTL_OK) {
        ptl_event_t event = {.type = PTL_EVENT_LINK,
                             .ni_fail_type = PTL_NI_DROPPED,
                             .user_ptr = le->user_ptr,
                             .pt_index = le->pt_index};
        eq_post(t->ni->pts[le->pt_index].eq, &event);
        le_free(le);
    }
}

static void request(struct triggered *t)
{
    if (likely(quiet_is_good(t->ni, &t->quiet)) && quiet_send(t->ni->nic, &t->quiet)) {
        COUNT_PATH(trigger_quiet);
        if (!t->silent) {
            request_left(&t->request, PTL_NI_OK);
        }
    } else {
        COUNT_PATH(trigger_request);
        if (nic_request(t->ni, &t->request) != PTL_OK) {
            request_lost(&t->request);
        }
    }
    let_go_of_mds(t);
}

static void carry_out(struct triggered *t)
{
    switch (t->kind) {
    case TRIGGER_REQUEST:
        request(t);
        break;
    case TRIGGER_CT_INC:
        ct_add(t->ct, t->value.success, t->value.failure);
        break;
    case TRIGGER_CT_SET:
        if (ct_ref_alive(t->ct)) {
            ct_set(t->ct.ct, t->value);
        }
        break;
    case TRIGGER_APPEND:
        append(t);
        break;
    case TRIGGER_UNLINK:
        if (t->le->slot.handle == t->le_handle) {
            le_unlink(t->le);
        }
        break;
    }
    put_away(t);
}

void trigger_run_fired(struct nic *nic)
{
    struct list *fired = &nic->fired;
    for (struct list *l; (l = fired->next) != fired;) {
        /* removed without a reset of its own links, which are not used any more */
        fired->next = l->next;
        fired->next->prev = fired;
        carry_out(container_of(l, struct triggered, link));
    }
}

/* Frees a triggered operation that is in no list. */
static void forget(struct triggered *t)
{
    if (t->kind == TRIGGER_REQUEST) {
        let_go_of_mds(t);
    } else if (t->kind == TRIGGER_APPEND) {
        le_free(t->le);
    }
    put_away(t);
}

void ct_cancel(struct ct *ct)
{
    for (struct triggered *t; (t = LIST_POP(struct triggered, &ct->triggers, link)) != NULL;) {
        forget(t);
    }
}

void ct_drop(struct ct *ct)
{
    ct_cancel(ct);
    rungs_forget(ct);
    table_drop(&ct->ni->cts, ct);
    ct->ni->nic->wakeup.due |=
        /* a thread that waits for the counter is to find its handle invalid */
        ct->ni->nic->waiters != 0;
}
