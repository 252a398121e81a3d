/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List entries: linked, used up, freed.
 *
 *   append ──► LINKED ──PtlMEUnlink, no message in hand──► gone
 *                │ USE_ONCE matched, or min_free undercut
 *                ▼
 *             TAKEN OUT ──last message ends──► AUTO_UNLINK posted, gone
 *
 * A message in hand counts as a user of its entry.
 */
#include "nic/nic.h"

#include <stdlib.h>

static struct pt *entry_pt(struct le *le)
{
    return &le->ni->pts[le->pt_index];
}

void handlers_release(struct handlers *h)
{
    if (h == NULL) {
        return;
    }
    h->memory->users--;
    if (h->own_memory) {
        hpu_mem_destroy(h->memory->mem);
        table_drop(&h->memory->ni->hpu_memories, h->memory);
    }
    free(h);
}

static void unlink_from_list(struct le *le)
{
    if (le->linked) {
        struct pt *pt = entry_pt(le);
        match_remove(&pt->priority, &le->match);
        pt->recent = pt->recent == le ? NULL : pt->recent;
        le->linked = false;
    }
}

static void drop(struct le *le)
{
    unlink_from_list(le);
    handlers_release(le->handlers);
    table_drop(&le->ni->les, le);
}

static void post_entry_event(struct le *le, ptl_event_kind_t type, unsigned disable)
{
    if ((le->options & disable) == 0) {
        ptl_event_t event = {.type = type,
                             .user_ptr = le->user_ptr,
                             .pt_index = le->pt_index,
                             .ptl_list = le->list,
                             .ni_fail_type = PTL_NI_OK};
        eq_post(entry_pt(le)->eq, &event);
    }
}

/* The source that an entry accepts, in the terms of match.h. */
static void set_source(struct ni *ni, const ptl_me_t *me, struct match_entry *match)
{
    if (ni_is_logical(ni)) {
        match->nid = me->match_id.rank;
        match->any = MATCH_ANY_PID | (me->match_id.rank == PTL_RANK_ANY ? MATCH_ANY_NID : 0);
        return;
    }
    match->nid = me->match_id.phys.nid;
    match->pid = me->match_id.phys.pid;
    match->any = (me->match_id.phys.nid == PTL_NID_ANY ? MATCH_ANY_NID : 0) |
                 (me->match_id.phys.pid == PTL_PID_ANY ? MATCH_ANY_PID : 0);
}

int le_append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, struct le **result)
{
    const ptl_me_t *me = setup->me;
    if (ni->pts[pt_index].priority.entries >= (unsigned)ni->limits.max_list_size) {
        return PTL_LIST_TOO_LONG;
    }
    struct le *le = table_add(&ni->les);
    if (le == NULL) {
        return PTL_NO_SPACE;
    }
    le->ni = ni;
    le->pt_index = pt_index;
    le->start = me->start;
    le->length = me->length;
    le->options = me->options;
    le->uid = me->uid;
    le->list = setup->list;
    le->ct = setup->ct;
    le->match.picky = (me->options & PTL_ME_NO_TRUNCATE) != 0;
    le->user_ptr = setup->user_ptr;
    if (setup->matching) {
        le->min_free = me->min_free;
        le->match.bits = me->match_bits;
        le->match.ignore = me->ignore_bits;
        set_source(ni, me, &le->match);
    } else {
        le->match.ignore = ~0ull; /* the first entry always matches */
        le->match.any = MATCH_ANY_NID | MATCH_ANY_PID;
    }
    if (match_append(&ni->pts[pt_index].priority, &le->match) != 0) {
        table_drop(&ni->les, le);
        return PTL_NO_SPACE;
    }
    le->handlers = setup->handlers;
    le->plain =
        le->handlers == NULL && (le->options & (PTL_ME_USE_ONCE | PTL_ME_MANAGE_LOCAL)) == 0;
    le->linked = true;
    post_entry_event(le, PTL_EVENT_LINK, PTL_ME_EVENT_LINK_DISABLE);
    *result = le;
    return PTL_OK;
}

int le_unlink(struct le *le)
{
    if (le->users != 0) {
        return PTL_IN_USE;
    }
    drop(le);
    return PTL_OK;
}

void le_take_out(struct le *le)
{
    unlink_from_list(le);
    le->auto_unlinked = true;
}

void le_release(struct le *le)
{
    if (--le->users == 0 && le->auto_unlinked) {
        post_entry_event(le, PTL_EVENT_AUTO_UNLINK, PTL_ME_EVENT_UNLINK_DISABLE);
        drop(le);
    }
}

void pt_clear(struct ni *ni, struct pt *pt)
{
    for (struct match_entry *e; (e = match_any(&pt->priority)) != NULL;) {
        drop(container_of(e, struct le, match));
    }
    match_free(&pt->priority);
}
