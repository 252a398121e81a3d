/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered operations. They wait on a counter in order of threshold, those of
 * one threshold in order of issue. What is reached moves to the NIC's fired
 * list and is carried out from there, one after the other: a chain of any
 * length needs no stack, and counting never sends by itself.
 */
#include "nic/nic.h"

#include "nic/rungs.h"

void trigger_arm(struct ct *ct, struct triggered *t)
{
    struct list *after = ct->triggers.prev;
    if (after == &ct->triggers) {
        if (rare(ct->rungs != NULL)) {
            rungs_forget(ct);
        }
    } else if (container_of(after, struct triggered, link)->threshold > t->threshold) {
        after = rungs_place(ct, t->threshold);
    }
    list_insert_after(after, &t->link);
    trigger_check(ct);
}

void trigger_check(struct ct *ct)
{
    uint64_t count = atomic_load_explicit(&ct->success, memory_order_relaxed) +
                     atomic_load_explicit(&ct->failure, memory_order_relaxed);
    while (!list_empty(&ct->triggers)) {
        struct list *first = ct->triggers.next;
        if (container_of(first, struct triggered, link)->threshold > count) {
            return;
        }
        list_remove(first);
        list_push_back(&ct->ni->nic->fired, first);
        atomic_store_explicit(&ct->ni->nic->attention, true, memory_order_relaxed);
    }
}

/* Lets go of what a triggered operation was to use. */
static void let_go(struct triggered *t)
{
    switch (t->kind) {
    case TRIGGER_REQUEST:
        t->request.md->users--;
        if (t->request.kind == OP_FETCH) {
            t->request.get_md->users--;
        }
        break;
    case TRIGGER_APPEND:
        if (t->le != NULL) {
            le_free(t->le);
        }
        break;
    default:
        break;
    }
}

void trigger_forget(struct triggered *t)
{
    let_go(t);
    table_drop(&t->ni->triggered, t);
}

/* An operation that finds no memory for its state ends here, and says so. */
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
    t->le = NULL;
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

static void carry_out(struct triggered *t)
{
    switch (t->kind) {
    case TRIGGER_REQUEST:
        if (nic_request(t->ni, &t->request) != PTL_OK) {
            request_lost(&t->request);
        }
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
    trigger_forget(t);
}

void trigger_run_fired(struct nic *nic)
{
    for (struct list *l; (l = list_pop_front(&nic->fired)) != NULL;) {
        carry_out(container_of(l, struct triggered, link));
    }
}

void ct_cancel(struct ct *ct)
{
    for (struct list *l; (l = list_pop_front(&ct->triggers)) != NULL;) {
        trigger_forget(container_of(l, struct triggered, link));
    }
}

void ct_drop(struct ct *ct)
{
    ct_cancel(ct);
    rungs_forget(ct);
    table_drop(&ct->ni->cts, ct);
    ct->ni->nic->news.due |=
        ct->ni->nic->waiters != 0; /* for who waits for it: it is an invalid handle now */
}
