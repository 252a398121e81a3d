/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * List entries: linked, used up, freed.
 *
 *   append ──► claims unexpected headers ──► LINKED ──PtlMEUnlink, not in use──► gone
 *                │ used up by them             │ USE_ONCE matched, or min_free undercut
 *                ▼                             ▼
 *             TAKEN OUT ──last message ends──► AUTO_UNLINK posted ──last header goes──►
 *             AUTO_FREE posted (overflow list), gone
 *
 * A message in progress counts as a user of its entry; so does an unexpected message
 * that an entry has claimed and that is not complete yet.
 */
#include "nic/entry.h"

#include "base/paths.h"
#include "nic/spin_calls.h"

#include <stdlib.h>
#include <string.h>

static struct pt *entry_pt(struct le *le)
{
    return &le->ni->pts[le->pt_index];
}

void handlers_release(struct handlers *h)
{
    if (h == NULL) {
        return;
    }
    telemetry_end(h->memory->ni->nic, h);
    blocks_end(h->memory->ni->nic, h->block);
    if (h->orphaned) {
        return;
    }
    free((void *)h->host_vector.parts);
    h->memory->users--;
    if (h->own_memory) {
        hpu_memory_free(h->memory);
    }
    free(h);
}

/* The source that an entry accepts, in the terms of match.h. */
static void set_source(struct ni *ni, const ptl_me_t *me, struct match_entry *match)
{
    if (ni_is_logical(ni)) {
        match->nid = me->match_id.rank;
        match->pid = 0;
        match->any = MATCH_ANY_PID | (me->match_id.rank == PTL_RANK_ANY ? MATCH_ANY_NID : 0);
        return;
    }
    match->nid = me->match_id.phys.nid;
    match->pid = me->match_id.phys.pid;
    match->any = (me->match_id.phys.nid == PTL_NID_ANY ? MATCH_ANY_NID : 0) |
                 (me->match_id.phys.pid == PTL_PID_ANY ? MATCH_ANY_PID : 0);
}

void *le_address_in_parts(const struct le *le, uint64_t offset)
{
    struct memory memory = le_memory(le, offset);
    return memory_address(&memory);
}

/* Sets all of an entry but its slot. Inlined, so that the compiler drops what a constant setup does
 * not have. */
static inline __attribute__((always_inline)) void
fill(struct le *le, struct ni *ni, uint32_t pt_index, const struct le_setup *setup)
{
    const ptl_me_t *me = setup->me;
    memset((char *)le + sizeof(le->slot), 0, offsetof(struct le, ni) - sizeof(le->slot));
    le->ni = ni;
    le->pt_index = pt_index;
    le->start = me->start;
    /* field by field: one load of the struct would wait for the stores that just made it */
    le->vector.parts = setup->vector.parts;
    le->vector.count = setup->vector.count;
    le->length = setup->length;
    le->options = me->options;
    le->uid = me->uid;
    le->list = setup->list;
    le->ct.ct = setup->ct.ct;
    le->ct.handle = setup->ct.handle;
    le->match.picky = (me->options & PTL_ME_NO_TRUNCATE) != 0;
    le->user_ptr = setup->user_ptr;
    if (likely(setup->matching)) {
        le->min_free = me->min_free;
        le->match.bits = me->match_bits;
        le->match.ignore = me->ignore_bits;
        set_source(ni, me, &le->match);
    } else {
        le->min_free = 0;
        le->match.bits = 0;
        le->match.ignore = ~0ull; /* in an NI without matching a message takes the first entry */
        le->match.nid = le->match.pid = 0;
        le->match.any = MATCH_ANY_NID | MATCH_ANY_PID;
    }
    le->handlers = setup->handlers;
    le->plain =
        setup->handlers == NULL && !le_leaves_header(le) && (me->options & ~LE_PLAIN_OPTIONS) == 0;
    le->fast = le->plain && setup->list == PTL_PRIORITY_LIST &&
               (me->options & ~LE_FAST_OPTIONS) == 0 && (me->options & PTL_ME_OP_PUT) != 0;
}

/* Returns the entry behind `le` if that one is fresh (match.h), so that messages which come in the
 * order of the entries find theirs without a search. */
static inline struct le *next_fresh(const struct le *le)
{
    const struct match_entry *e = &le->match;
    return e->fresh && e->next != NULL ? container_of(e->next, struct le, match) : NULL;
}

/* Takes an entry out of its list. `bare`, a constant, here and below: the entry is `fast` and
 * linked, and no message uses it. So it is in the priority list, has no unexpected headers, and
 * owns nothing. */
static inline __attribute__((always_inline)) void unlink_from_list(struct le *le, const bool bare)
{
    if (!bare && !le->linked) {
        return;
    }
    struct pt *pt = entry_pt(le);
    if (pt->recent == le) {
        pt->recent = next_fresh(le);
    }
    if (le_lasts(le)) {
        le->ni->epoch++;
        if (pt->found.le == le) {
            pt->found.le = NULL;
        }
    }
    match_remove(pt_list(pt, bare ? PTL_PRIORITY_LIST : le->list), &le->match);
    if (!bare) {
        pt->with_handlers -= le->handlers != NULL;
        le->linked = false;
    }
}

static inline __attribute__((always_inline)) void free_entry(struct le *le, const bool bare)
{
    if (!bare) {
        if (le->handlers != NULL && le->handlers->timers != 0) {
            timers_end_entry(le);
        }
        handlers_release(le->handlers);
        free((void *)le->vector.parts);
    }
    table_drop(&le->ni->les, le);
}

void le_free(struct le *le)
{
    unlink_from_list(le, false);
    free_entry(le, false);
}

__attribute__((noinline)) static void post_event(struct le *le, ptl_event_kind_t type,
                                                 ptl_ni_fail_t fail)
{
    ptl_event_t event = {.type = type,
                         .user_ptr = le->user_ptr,
                         .pt_index = le->pt_index,
                         .ptl_list = le->list,
                         .ni_fail_type = fail};
    eq_post(entry_pt(le)->eq, &event);
}

static inline void post_entry_event(struct le *le, ptl_event_kind_t type, unsigned disable,
                                    ptl_ni_fail_t fail)
{
    if ((le->options & disable) == 0) {
        post_event(le, type, fail);
    }
}

/* Goes on with the end of an entry that was used up: posts AUTO_UNLINK when no message uses it any
 * more, frees it when it has no unexpected headers either. */
static inline __attribute__((always_inline)) void settle(struct le *le, const bool bare)
{
    if (!bare && (!le->auto_unlinked || le->users != 0)) {
        return;
    }
    if (bare || !le->unlink_told) {
        if (!bare) {
            COUNT_PATH(use_up_settled);
        }
        le->unlink_told = true;
        post_entry_event(le, PTL_EVENT_AUTO_UNLINK, PTL_ME_EVENT_UNLINK_DISABLE, PTL_NI_OK);
    }
    if (bare || le->headers == 0) {
        if (!bare && le->list == PTL_OVERFLOW_LIST) {
            post_entry_event(le, PTL_EVENT_AUTO_FREE, PTL_ME_EVENT_UNLINK_DISABLE, PTL_NI_OK);
        }
        free_entry(le, bare);
    }
}

/* ---- unexpected headers ---- */

void unexpected_forget(struct unexpected *u)
{
    struct le *le = u->le;
    table_drop(&le->ni->unexpected, u);
    le->headers--;
    settle(le, false);
}

/* Posts the event by which the owner of `le` hears of a message that came before the append or
 * search, and counts it. */
static void tell_overflow(const struct unexpected *u, const struct le *le, struct eq_ref eq,
                          ptl_event_kind_t type)
{
    bool search = type == PTL_EVENT_SEARCH;
    le_count(le, PTL_ME_EVENT_CT_OVERFLOW, u->event.ni_fail_type, u->event.mlength);
    if (search || le_wants_event(le, PTL_ME_EVENT_OVER_DISABLE, u->event.ni_fail_type)) {
        ptl_event_t event = u->event;
        event.type = type;
        event.user_ptr = le->user_ptr;
        eq_post(eq, &event);
    }
}

void unexpected_end(struct unexpected *u, ptl_ni_fail_t fail)
{
    struct le *claimant = u->claimant;
    u->busy = false;
    u->event.ni_fail_type = fail;
    if (claimant != NULL) {
        tell_overflow(u, claimant, entry_pt(claimant)->eq, u->event.type);
        unexpected_forget(u);
        le_release(claimant);
    } else if (fail != PTL_NI_OK) {
        unexpected_remove(&entry_pt(u->le)->unexpected, &u->header);
        unexpected_forget(u);
    }
}

static bool header_fits(const struct match_entry *entry, const struct unexpected_header *header)
{
    const struct unexpected *u = container_of(header, struct unexpected, header);
    return le_fits(container_of(entry, struct le, match), u->event.remote_offset, u->event.rlength);
}

/* Whether a search finds a header: only if its message is complete. */
static bool header_found(const struct match_entry *entry, const struct unexpected_header *header)
{
    return !container_of(header, struct unexpected, header)->busy && header_fits(entry, header);
}

/* Whether each message that the entry claims advances its managed offset. */
static bool counts_headers(const struct le *le)
{
    unsigned both = PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH;
    return (le->options & both) == both;
}

/* Has a newly linked entry claim the unexpected messages that it matches; true if they use it
 * up. */
static bool claim(struct le *le)
{
    struct pt *pt = entry_pt(le);
    struct unexpected_header *h;
    while ((h = unexpected_first(&pt->unexpected, &le->match, NULL, header_fits)) != NULL) {
        struct unexpected *u = container_of(h, struct unexpected, header);
        unexpected_remove(&pt->unexpected, h);
        if (counts_headers(le)) {
            le->offset += u->event.rlength;
        }
        if (u->busy) {
            u->claimant = le;
            le->users++;
        } else {
            tell_overflow(u, le, pt->eq, u->event.type);
            unexpected_forget(u);
        }
        if ((le->options & PTL_ME_USE_ONCE) != 0 || (counts_headers(le) && le_is_undercut(le))) {
            return true;
        }
    }
    return false;
}

void le_search(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, ptl_search_op_t op)
{
    struct pt *pt = &ni->pts[pt_index];
    struct le wanted = {.slot = {.handle = 0}};
    fill(&wanted, ni, pt_index, setup);
    bool once = (wanted.options & PTL_ME_USE_ONCE) != 0, found = false;
    struct unexpected_header *h = NULL;
    while ((h = unexpected_first(&pt->unexpected, &wanted.match, h, header_found)) != NULL) {
        struct unexpected *u = container_of(h, struct unexpected, header);
        found = true;
        if (op == PTL_SEARCH_DELETE) {
            unexpected_remove(&pt->unexpected, h);
            tell_overflow(u, &wanted, pt->eq, u->event.type);
            unexpected_forget(u);
            h = NULL;
        } else {
            tell_overflow(u, &wanted, pt->eq, PTL_EVENT_SEARCH);
        }
        if (once) {
            return;
        }
    }
    if ((wanted.options & PTL_ME_EVENT_CT_OVERFLOW) != 0) {
        ct_add(wanted.ct, 0, 1);
    }
    if (!found) {
        post_entry_event(&wanted, PTL_EVENT_SEARCH, 0, PTL_NI_NO_MATCH);
    }
}

/* ---- append, unlink ---- */

static void use_up(struct le *le)
{
    le_take_out(le);
    settle(le, false);
}

/* Makes an entry; the caller has seen that the table has a place. */
static inline __attribute__((always_inline)) struct le *new_entry(struct ni *ni, uint32_t pt_index,
                                                                  const struct le_setup *setup)
{
    struct le *le = table_take(&ni->les);
    fill(le, ni, pt_index, setup);
    if (setup->handlers != NULL) {
        telemetry_begin(le);
    }
    return le;
}

static inline void put_in_list(struct le *le, struct pt *pt, struct match_list *list,
                               const struct handlers *handlers)
{
    match_append(list, &le->match);
    le->linked = true;
    if (list == &pt->priority && list->entries == 1) {
        pt->recent = le;
    }
    if (unlikely(handlers != NULL)) {
        pt->with_handlers++;
        le->ni->epoch++;
    }
}

/* Does the rarer steps after an entry was linked: reserves it if its handlers are inactive, else
 * lets it claim unexpected headers; then posts LINK. The entry may be gone afterwards. */
__attribute__((noinline)) static void after_link(struct le *le)
{
    if (le->handlers != NULL && le->handlers->inactive) {
        le_reserve(le, true); /* messages do not find it until le_activate() */
    } else if (le->list == PTL_PRIORITY_LIST && entry_pt(le)->unexpected.count != 0 && claim(le)) {
        use_up(le);
        return;
    }
    post_entry_event(le, PTL_EVENT_LINK, PTL_ME_EVENT_LINK_DISABLE, PTL_NI_OK);
}

/* Makes an entry and links it; the caller has seen that table and list have a place. */
static inline __attribute__((always_inline)) void
append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, ptl_handle_le_t *handle)
{
    struct pt *pt = &ni->pts[pt_index];
    struct le *le = new_entry(ni, pt_index, setup);
    *handle = le->slot.handle;
    put_in_list(le, pt, pt_list(pt, setup->list), setup->handlers);
    if (unlikely(pt->unexpected.count != 0) || setup->handlers != NULL ||
        (setup->me->options & PTL_ME_EVENT_LINK_DISABLE) == 0) {
        after_link(le);
    }
}

struct le *le_new(struct ni *ni, uint32_t pt_index, const struct le_setup *setup)
{
    return table_ready(&ni->les) ? new_entry(ni, pt_index, setup) : NULL;
}

int le_link(struct le *le)
{
    struct match_list *list = pt_list(entry_pt(le), le->list);
    if (!list_has_place(le->ni, list)) {
        return PTL_LIST_TOO_LONG;
    }
    put_in_list(le, entry_pt(le), list, le->handlers);
    after_link(le);
    return PTL_OK;
}

int le_append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup,
              ptl_handle_le_t *handle)
{
    if (!table_ready(&ni->les)) {
        return PTL_NO_SPACE; /* PTL_NO_SPACE comes before PTL_LIST_TOO_LONG where both are full */
    }
    if (!list_has_place(ni, pt_list(&ni->pts[pt_index], setup->list))) {
        return PTL_LIST_TOO_LONG;
    }
    append(ni, pt_index, setup, handle);
    return PTL_OK;
}

void le_append_plain(struct ni *ni, uint32_t pt_index, const ptl_me_t *me, ptl_list_t list,
                     void *user_ptr, ptl_handle_me_t *handle)
{
    struct le_setup setup = {
        .me = me, .matching = true, .list = list, .user_ptr = user_ptr, .length = me->length};
    append(ni, pt_index, &setup, handle);
}

int le_activate(struct le *le)
{
    if (le->handlers == NULL || !le->handlers->inactive) {
        return PTL_ARG_INVALID;
    }
    if (le->handlers->taken) {
        return PTL_IN_USE;
    }
    le->handlers->inactive = false;
    le->handlers->stats->inactive = 0;
    le_reserve(le, false);
    if (entry_pt(le)->unexpected.count != 0 && claim(le)) {
        use_up(le);
    }
    return PTL_OK;
}

int le_unlink(struct le *le)
{
    if (le->users != 0) {
        return PTL_IN_USE;
    }
    if (le->auto_unlinked) {
        return PTL_ARG_INVALID;
    }
    if (le->headers != 0 || le->awaited) {
        return PTL_IN_USE;
    }
    le_free(le);
    return PTL_OK;
}

void le_take_out(struct le *le)
{
    unlink_from_list(le, false);
    le->auto_unlinked = true;
}

void le_use_up(struct le *le)
{
    if (likely(le->fast && le->users == 0)) {
        COUNT_PATH(use_up_simple);
        unlink_from_list(le, true);
        settle(le, true);
    } else {
        use_up(le);
    }
}

void le_release(struct le *le)
{
    le->users--;
    settle(le, false);
}
