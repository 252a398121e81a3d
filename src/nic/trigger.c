/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered operations. They wait on a counter in order of threshold, those of
 * one threshold in order of issue. What is reached moves to the NIC's fired
 * list and is carried out from there, one after the other: a chain of any
 * length needs no stack, and counting never sends by itself.
 */
#include "nic/nic.h"

void trigger_arm(struct ct *ct, struct triggered *t)
{
    struct list *after = ct->triggers.prev;
    while (after != &ct->triggers &&
           container_of(after, struct triggered, link)->threshold > t->threshold) {
        after = after->prev;
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

static void forget(struct triggered *t)
{
    if (t->kind == TRIGGER_REQUEST) {
        t->request.md->users--;
    }
    table_drop(&t->ni->triggered, t);
}

static void carry_out(struct triggered *t)
{
    if (t->kind == TRIGGER_CT_INC) {
        ct_add(t->ct, t->increment.success, t->increment.failure);
    } else if (nic_request(t->ni, &t->request) != PTL_OK) {
        /* No memory for its state: it ends here, and says so. */
        struct md *md = t->request.md;
        ct_count(md->ct, PTL_NI_DROPPED, false, 0);
        ptl_event_t event = {.type = PTL_EVENT_SEND,
                             .ni_fail_type = PTL_NI_DROPPED,
                             .user_ptr = t->request.user_ptr};
        eq_post(md->eq, &event);
    }
    forget(t);
}

void trigger_run_fired(struct nic *nic)
{
    for (struct list *l; (l = list_pop_front(&nic->fired)) != NULL;) {
        carry_out(container_of(l, struct triggered, link));
    }
}

void ct_drop(struct ct *ct)
{
    for (struct list *l; (l = list_pop_front(&ct->triggers)) != NULL;) {
        forget(container_of(l, struct triggered, link));
    }
    table_drop(&ct->ni->cts, ct);
}
