/* SPDX-License-Identifier: BSD-3-Clause */
/* Portal table entries: how flow control disables one, and how one is emptied. */
#include "nic/pt.h"

#include "nic/entry.h"

/* Posts PT_DISABLED once no message uses a portal table entry that flow control has disabled. */
static void tell_refusal(struct ni *ni, uint32_t pt_index)
{
    struct pt *pt = &ni->pts[pt_index];
    if (pt->refusal_due && pt->users == 0) {
        pt->refusal_due = false;
        ptl_event_t event = {
            .type = PTL_EVENT_PT_DISABLED,
            .pt_index = pt_index,
            .ni_fail_type = PTL_NI_PT_DISABLED,
        };
        eq_post(pt->eq, &event);
    }
}

void pt_refuse(struct ni *ni, uint32_t pt_index, const struct le *le)
{
    struct pt *pt = &ni->pts[pt_index];
    pt->enabled = false;
    pt->refusing = true;
    ni->nic->stats->closed++;
    pt->refusal_due = le == NULL || (le->options & PTL_ME_EVENT_FLOWCTRL_DISABLE) == 0;
    tell_refusal(ni, pt_index);
}

void pt_release(struct ni *ni, uint32_t pt_index)
{
    ni->pts[pt_index].users--;
    wakeup_tell(&ni->nic->wakeup); /* a program thread may wait until the last user has left */
    tell_refusal(ni, pt_index);
}

static void forget_headers(struct pt *pt)
{
    for (struct unexpected_header *h; (h = unexpected_any(&pt->unexpected)) != NULL;) {
        unexpected_remove(&pt->unexpected, h);
        unexpected_forget(container_of(h, struct unexpected, header));
    }
    unexpected_free(&pt->unexpected);
}

void pt_clear(struct pt *pt)
{
    forget_headers(pt);
    struct match_list *lists[] = {&pt->priority, &pt->overflow};
    for (unsigned i = 0; i < 2; i++) {
        for (struct match_entry *e; (e = match_any(lists[i])) != NULL;) {
            le_free(container_of(e, struct le, match));
        }
        match_free(lists[i]);
    }
}
