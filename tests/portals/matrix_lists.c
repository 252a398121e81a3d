/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two lists and the unexpected headers together: rows of random calls against a model.
 *
 *   message    takes the first entry that matches, of the priority list or else of the
 *              overflow list, where it leaves a header
 *   append     to either list; for the priority list it takes headers, oldest first
 *   search     only or delete, of one header or all
 *   unlink     which an entry refuses while a header refers to it
 *
 * The model is arrays, walked from the front. Both processes of a pair draw the same
 * random numbers. A row that fails is found again by its number.
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS = 70, ENTRIES = CALLS, SLOT = 32, ROWS = 60 };

struct entry {
    ptl_list_t list;
    bool once, linked;
    bool used_up; /* by a message, with AUTO_UNLINK */
    unsigned match, ignore, headers;
    ptl_handle_me_t handle;
};

struct header {
    struct suite_move m;
    struct landing l;
    unsigned entry;
    bool taken;
};

struct row {
    uint64_t random;
    unsigned entries, headers;
    int drops;
    struct entry entry[ENTRIES];
    struct header header[CALLS];
    struct due due;
    ptl_handle_md_t md;
};

static char of_move, of_search;
static char of_entry[ENTRIES];

static bool fits(const struct scene *s, const struct entry *e, unsigned bits)
{
    return !s->matching || ((e->match ^ bits) & ~e->ignore & 3) == 0;
}

/* What a message does: the model's answer, as a place in the list of entries or -1. */
static int first_match(const struct scene *s, const struct row *r, unsigned bits)
{
    for (ptl_list_t list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
        for (unsigned i = 0; i < r->entries; i++) {
            if (r->entry[i].linked && r->entry[i].list == list && fits(s, &r->entry[i], bits)) {
                return (int)i;
            }
        }
    }
    return -1;
}

/* Each entry has a slot of its own in the region; the offset in the entry is 0. */
static struct suite_event at_offset_zero(struct suite_event e)
{
    e.remote_offset = IS(0);
    return e;
}

static void message(struct scene *s, struct row *r, unsigned serial)
{
    struct suite_move m = suite_move_to(s, CALL_PUT);
    m.md = r->md;
    m.offset = serial % 8;
    m.length = SLOT - 8;
    m.bits = s->matching ? matrix_random(&r->random) % 4 : 0;
    m.hdr_data = serial;
    m.user_ptr = &of_move;
    m.ack = PTL_ACK_REQ;
    int i = first_match(s, r, (unsigned)m.bits);
    struct landing l = {&region[ENTRY], 0, 0, PTL_NI_DROPPED, PTL_PRIORITY_LIST, &of_move};
    if (i >= 0) {
        l = (struct landing){&region[ENTRY], (size_t)i * SLOT, m.length,
                             PTL_NI_OK,      r->entry[i].list, &of_entry[i]};
        landing_move(&m, &region[PUT_SIDE], &region[PUT_SIDE], &region[ENTRY], &l);
    }
    if (s->initiator) {
        OK(suite_move(&m));
        due_add(&r->due, at_offset_zero(answer_event(&m, &l)));
        TAKE(s->mdeq, &r->due);
    }
    if (i < 0) {
        r->drops++;
        return;
    }
    struct entry *e = &r->entry[i];
    if (s->target) {
        due_add(&r->due, landing_event(s, &m, &l));
        due_then(&r->due);
        if (e->once) {
            due_add(&r->due, entry_event(s, PTL_EVENT_AUTO_UNLINK, &of_entry[i]));
        }
        TAKE(s->eq, &r->due);
    }
    e->used_up = e->once;
    e->linked = !e->once;
    if (e->list == PTL_OVERFLOW_LIST) {
        r->header[r->headers++] = (struct header){m, l, (unsigned)i, false};
        e->headers++;
    }
}

/* Takes a header away; the last of an entry that is used up frees it. */
static void take(struct scene *s, struct row *r, struct header *h)
{
    struct entry *e = &r->entry[h->entry];
    h->taken = true;
    if (--e->headers == 0 && e->used_up) {
        due_late(&r->due, entry_event(s, PTL_EVENT_AUTO_FREE, &of_entry[h->entry]));
    }
}

/* What an entry finds among the headers, in their order; gives how many. */
static unsigned find(struct scene *s, struct row *r, const struct entry *e, void *user_ptr,
                     bool look_only)
{
    unsigned found = 0;
    for (unsigned i = 0; i < r->headers && (found == 0 || !e->once); i++) {
        struct header *h = &r->header[i];
        if (h->taken || !fits(s, e, (unsigned)h->m.bits)) {
            continue;
        }
        struct suite_event event = landing_overflow(s, &h->m, &h->l, user_ptr);
        if (look_only) {
            event.type = PTL_EVENT_SEARCH;
        }
        due_add(&r->due, event);
        if (!look_only) {
            take(s, r, h);
        }
        due_then(&r->due);
        found++;
    }
    return found;
}

static struct entry draw_entry(struct row *r)
{
    static const unsigned masks[] = {0, 0, 1, 2, 3};
    struct entry e = {.once = matrix_random(&r->random) % 3 != 0};
    e.match = (unsigned)(matrix_random(&r->random) % 4);
    e.ignore = masks[matrix_random(&r->random) % COUNT_OF(masks)];
    return e;
}

static ptl_me_t make_entry(struct scene *s, const struct entry *e, size_t slot)
{
    ptl_me_t me = suite_entry(s, region_at(&region[ENTRY], slot * SLOT), SLOT,
                              PTL_ME_OP_PUT | (e->once ? PTL_ME_USE_ONCE : 0));
    me.match_bits = e->match;
    me.ignore_bits = e->ignore;
    return me;
}

static void append(struct scene *s, struct row *r, ptl_list_t list)
{
    unsigned i = r->entries++;
    struct entry *e = &r->entry[i];
    *e = draw_entry(r);
    e->list = list;
    ptl_me_t me = make_entry(s, e, i);
    if (s->target) {
        e->handle = suite_append(s, list, &me, &of_entry[i]);
    }
    unsigned found = list == PTL_PRIORITY_LIST ? find(s, r, e, &of_entry[i], false) : 0;
    e->linked = found == 0 || !e->once;
    due_add(&r->due,
            entry_event(s, e->linked ? PTL_EVENT_LINK : PTL_EVENT_AUTO_UNLINK, &of_entry[i]));
    if (s->target) {
        TAKE(s->eq, &r->due);
    }
}

static void search(struct scene *s, struct row *r, ptl_search_op_t op)
{
    struct entry e = draw_entry(r);
    ptl_me_t me = make_entry(s, &e, 0);
    if (s->target) {
        OK(suite_search_code(s, SUITE_PT, op, &me, &of_search));
    }
    if (find(s, r, &e, &of_search, op == PTL_SEARCH_ONLY) == 0) {
        struct suite_event none = entry_event(s, PTL_EVENT_SEARCH, &of_search);
        none.fail = PTL_NI_NO_MATCH;
        due_add(&r->due, none);
    }
    if (s->target) {
        TAKE(s->eq, &r->due);
    }
}

static void unlink_one(struct scene *s, struct row *r)
{
    if (r->entries == 0) {
        return;
    }
    struct entry *e = &r->entry[matrix_random(&r->random) % r->entries];
    int code = !e->linked ? PTL_ARG_INVALID : e->headers != 0 ? PTL_IN_USE : PTL_OK;
    if (s->target) {
        CODE(suite_unlink_code(s, e->handle), code);
    }
    e->linked = e->linked && code != PTL_OK;
}

static void lists_body(struct scene *s)
{
    static struct row row; /* too large for a stack */
    struct row *r = &row;
    struct watch w;
    memset(r, 0, sizeof(*r));
    r->random = (uint64_t)s->c->number;
    region_make(&region[PUT_SIDE], PLAIN, SLOT, 1);
    region_make(&region[ENTRY], PLAIN, (size_t)ENTRIES * SLOT, 2);
    watch_begin(&w, s);
    if (s->initiator) {
        r->md = suite_md(s, region_start(&region[PUT_SIDE]), SLOT, PTL_MD_EVENT_SEND_DISABLE);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        STEP();
        unsigned draw = (unsigned)(matrix_random(&r->random) % 20);
        if (draw < 9) {
            message(s, r, i);
        } else if (draw < 12) {
            append(s, r, PTL_PRIORITY_LIST);
        } else if (draw < 16) {
            append(s, r, PTL_OVERFLOW_LIST);
        } else if (draw < 19) {
            search(s, r, draw == 16 ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY);
        } else {
            unlink_one(s, r);
        }
        r->due.n = r->due.group = 0; /* the other process's */
    }
    WATCH_END(&w, .drops = r->drops);
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
    }
}

GENERATE(lists)
{
    for (long row = 0; row < ROWS; row++) {
        suite_add_each((struct suite_case){.rule = "3.12: entries and headers are looked for in "
                                                   "the order in which they came, list by list",
                                           .body = lists_body,
                                           .number = row},
                       ALL_KINDS, SELF | PAIR, "lists.row%ld", row);
    }
}
