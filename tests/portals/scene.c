/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a crew's process does for its cases; see suite.h. The interface lives as long
 * as the crew, with one more portal table entry (FLUSH_PT), MD and counter: behind each
 * case both processes put an empty message there. Messages between two processes are
 * matched in order, so that nothing of a case arrives in the next one.
 *
 * What the helpers make is noted in `made` and freed in an order in which nothing is in
 * use: triggered operations, MDs, entries, unexpected headers, portal table, queues, counters.
 */
#include "runner.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { FLUSH_PT = 5 };
enum { WORD_NID = SUITE_WORDS - 2, WORD_PID = SUITE_WORDS - 1 }; /* of physical ids */

static struct {
    enum suite_made what;
    uint32_t handle;
} made[SUITE_MADE];
static int made_count;

static ptl_handle_md_t flush_md;
static ptl_handle_ct_t flush_ct;

/* ---- In step --------------------------------------------------------------- */

void suite_step(struct scene *s, const char *file, int line)
{
    suite_seen(file, line);
    if (s->size == 1) {
        return;
    }
    int generation = atomic_load(&suite_page->generation);
    if (atomic_fetch_add(&suite_page->arrived, 1) + 1 == s->size) {
        atomic_store(&suite_page->arrived, 0);
        atomic_fetch_add(&suite_page->generation, 1);
        return;
    }
    /* the program above ends a process whose peer does not come */
    for (int i = 0; atomic_load(&suite_page->generation) == generation; i++) {
        ptl_ct_event_t ignored;
        PtlCTGet(flush_ct, &ignored);
        sched_yield();
        if (i > 2000) {
            suite_sleep_ms(1);
        }
    }
}

void suite_show(struct scene *s, int slot, uint64_t value)
{
    atomic_store(&suite_page->process[s->rank].word[slot], value);
}

uint64_t suite_look(struct scene *s, int rank, int slot)
{
    return atomic_load(&suite_page->process[rank].word[slot]);
}

/* ---- The interface --------------------------------------------------------- */

static ptl_process_t name_of(const struct scene *s, int rank)
{
    ptl_process_t id = s->phys[rank];
    if (s->logical) {
        memset(&id, 0, sizeof(id));
        id.rank = (ptl_rank_t)rank;
    }
    return id;
}

ptl_process_t suite_bystander(struct scene *s)
{
    return name_of(s, s->size);
}

static void exchange_ids(struct scene *s)
{
    ptl_process_t mine;
    OK(PtlGetPhysId(s->ni, &mine));
    suite_show(s, WORD_NID, mine.phys.nid);
    suite_show(s, WORD_PID, mine.phys.pid);
    STEP();
    ptl_pid_t highest = 0;
    for (int r = 0; r < s->size; r++) {
        s->phys[r].phys.nid = (ptl_nid_t)suite_look(s, r, WORD_NID);
        s->phys[r].phys.pid = (ptl_pid_t)suite_look(s, r, WORD_PID);
        highest = s->phys[r].phys.pid > highest ? s->phys[r].phys.pid : highest;
    }
    /* far from those that are given out one after another */
    s->phys[s->size].phys.nid = mine.phys.nid;
    s->phys[s->size].phys.pid = highest > PTL_PID_MAX / 2 ? highest - 20011 : highest + 20011;
    s->map_size = (ptl_size_t)s->size + 1;
    s->from = name_of(s, 0);
    s->to = name_of(s, s->size - 1);
    if (s->logical) {
        OK(PtlSetMap(s->ni, s->map_size, s->phys));
    }
}

void scene_open(struct scene *s, const struct suite_case *c, int rank, int size)
{
    memset(s, 0, sizeof(*s));
    s->options = suite_ni_options(c->kind);
    s->matching = (c->kind & MATCHING_KINDS) != 0;
    s->logical = (c->kind & LOGICAL_KINDS) != 0;
    s->rank = rank;
    s->size = size;
    s->initiator = rank == 0;
    s->target = rank == size - 1;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, c->desired, &s->limits, &s->ni));
    OK(PtlGetUid(s->ni, &s->uid));
    OK(PtlCTAlloc(s->ni, &flush_ct));
    exchange_ids(s);
    ptl_md_t md = {NULL, 0, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, flush_ct};
    OK(PtlMDBind(s->ni, &md, &flush_md));
    ptl_pt_index_t index;
    OK(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, FLUSH_PT, &index));
    ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
    ptl_handle_me_t handle;
    OK(s->matching
           ? PtlMEAppend(s->ni, FLUSH_PT, &me, PTL_PRIORITY_LIST, NULL, &handle)
           : PtlLEAppend(s->ni, FLUSH_PT, (const ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL, &handle));
    STEP();
}

void scene_close(struct scene *s)
{
    STEP();
    if (!s->closed) {
        OK(PtlNIFini(s->ni));
    }
    PtlFini();
}

/* ---- A case ---------------------------------------------------------------- */

void suite_own(struct scene *s, enum suite_made what, uint32_t handle)
{
    if (made_count == SUITE_MADE) {
        FAIL("more than %d objects in one case", SUITE_MADE);
    }
    made[made_count].what = what;
    made[made_count++].handle = handle;
}

void scene_begin(struct scene *s, const struct suite_case *c)
{
    ptl_size_t events = c->event_count != 0 ? c->event_count : SUITE_EVENTS;
    s->c = c;
    s->eq = suite_eq(s, events);
    s->mdeq = suite_eq(s, events);
    s->ct = suite_ct(s);
    s->mdct = suite_ct(s);
    suite_pt(s, c->pt_options, s->eq, SUITE_PT);
    STEP();
}

/* Everything that this process has sent has been matched. */
static void flush(struct scene *s)
{
    ptl_ct_event_t zero = {0, 0};
    OK(PtlCTSet(flush_ct, zero));
    for (int r = 0; r < s->size; r++) {
        OK(PtlPut(flush_md, 0, 0, PTL_CT_ACK_REQ, name_of(s, r), FLUSH_PT, 0, 0, NULL, 0));
    }
    EXPECT_CT(flush_ct, (ptl_size_t)s->size, 0);
}

/* Frees one object, trying again while it is in use; what the case has freed is no error. */
static void free_made(struct scene *s, enum suite_made what, uint32_t handle)
{
    uint64_t end = suite_deadline();
    int code;
    do {
        code = what == MADE_MD      ? PtlMDRelease(handle)
               : what == MADE_ENTRY ? suite_unlink_code(s, handle)
               : what == MADE_PT    ? PtlPTFree(s->ni, handle)
               : what == MADE_EQ    ? PtlEQFree(handle)
                                    : PtlCTFree(handle);
        if (code == PTL_OK || code == PTL_ARG_INVALID) {
            return;
        }
        ptl_ct_event_t ignored;
        OK(PtlCTGet(flush_ct, &ignored));
        sched_yield();
    } while (code == PTL_IN_USE && suite_now_ms() < end);
    static const char *const names[] = {"MD", "entry", "counter", "queue", "portal table entry"};
    FAIL("behind the case a %s (0x%x) cannot be freed: %s", names[what], handle,
         suite_code_name(code));
}

static void free_all(struct scene *s, enum suite_made what)
{
    for (int i = 0; i < made_count; i++) {
        if (made[i].what == what) {
            free_made(s, what, made[i].handle);
        }
    }
}

/* Overflow entries to which unexpected headers refer cannot be unlinked. */
static void forget_headers(struct scene *s)
{
    ptl_me_t all = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_OP_GET);
    for (int i = 0; i < made_count; i++) {
        if (made[i].what == MADE_PT) {
            int code = suite_search_code(s, made[i].handle, PTL_SEARCH_DELETE, &all, NULL);
            CHECK(code == PTL_OK || code == PTL_ARG_INVALID);
        }
    }
}

static bool entries_in_use(struct scene *s)
{
    bool any = false;
    for (int i = 0; i < made_count; i++) {
        any |= made[i].what == MADE_ENTRY && suite_unlink_code(s, made[i].handle) == PTL_IN_USE;
    }
    return any;
}

void scene_end(struct scene *s)
{
    STEP();
    if (!s->c->alone) {
        for (int i = 0; i < made_count; i++) {
            if (made[i].what == MADE_CT) {
                PtlCTCancelTriggered(made[i].handle);
            }
        }
        flush(s);
        STEP();
        free_all(s, MADE_MD);
        if (entries_in_use(s)) {
            forget_headers(s);
        }
        free_all(s, MADE_ENTRY);
        free_all(s, MADE_PT);
        free_all(s, MADE_EQ);
        free_all(s, MADE_CT);
    }
    made_count = 0;
    STEP();
}

/* ---- Objects --------------------------------------------------------------- */

ptl_handle_md_t suite_md_with(struct scene *s, void *start, ptl_size_t length, unsigned options,
                              ptl_handle_eq_t eq, ptl_handle_ct_t ct)
{
    ptl_md_t md = {start, length, options, eq, ct};
    ptl_handle_md_t handle;
    OK(PtlMDBind(s->ni, &md, &handle));
    suite_own(s, MADE_MD, handle);
    return handle;
}

ptl_handle_md_t suite_md(struct scene *s, void *start, ptl_size_t length, unsigned options)
{
    unsigned counts = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK;
    return suite_md_with(s, start, length, options, s->mdeq,
                         options & counts ? s->mdct : PTL_CT_NONE);
}

ptl_handle_ct_t suite_ct(struct scene *s)
{
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(s->ni, &ct));
    suite_own(s, MADE_CT, ct);
    return ct;
}

ptl_handle_eq_t suite_eq(struct scene *s, ptl_size_t count)
{
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(s->ni, count, &eq));
    suite_own(s, MADE_EQ, eq);
    return eq;
}

ptl_pt_index_t suite_pt(struct scene *s, unsigned options, ptl_handle_eq_t eq,
                        ptl_pt_index_t request)
{
    ptl_pt_index_t index = PTL_PT_ANY;
    OK(PtlPTAlloc(s->ni, options, eq, request, &index));
    suite_own(s, MADE_PT, index);
    return index;
}

ptl_me_t suite_entry(struct scene *s, void *start, ptl_size_t length, unsigned options)
{
    ptl_me_t me = {.start = start,
                   .length = length,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = options,
                   .ignore_bits = ~(ptl_match_bits_t)0};
    if (options & (PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW)) {
        me.ct_handle = s->ct;
    }
    if (s->logical) {
        me.match_id.rank = PTL_RANK_ANY;
    } else {
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
    }
    return me;
}

int suite_append_code(struct scene *s, ptl_pt_index_t pt, ptl_list_t list, const ptl_me_t *me,
                      void *user_ptr, ptl_handle_me_t *handle)
{
    int code = s->matching ? PtlMEAppend(s->ni, pt, me, list, user_ptr, handle)
                           : PtlLEAppend(s->ni, pt, (const ptl_le_t *)me, list, user_ptr, handle);
    if (code == PTL_OK && handle != NULL) {
        suite_own(s, MADE_ENTRY, *handle);
    }
    return code;
}

ptl_handle_me_t suite_append(struct scene *s, ptl_list_t list, const ptl_me_t *me, void *user_ptr)
{
    ptl_handle_me_t handle = PTL_INVALID_HANDLE;
    OK(suite_append_code(s, SUITE_PT, list, me, user_ptr, &handle));
    return handle;
}

ptl_handle_me_t suite_target(struct scene *s, ptl_list_t list, void *start, ptl_size_t length,
                             unsigned options, void *user_ptr)
{
    ptl_me_t me = suite_entry(s, start, length, options | PTL_ME_EVENT_LINK_DISABLE);
    return suite_append(s, list, &me, user_ptr);
}

int suite_search_code(struct scene *s, ptl_pt_index_t pt, ptl_search_op_t op, const ptl_me_t *me,
                      void *user_ptr)
{
    return s->matching ? PtlMESearch(s->ni, pt, me, op, user_ptr)
                       : PtlLESearch(s->ni, pt, (const ptl_le_t *)me, op, user_ptr);
}

int suite_unlink_code(struct scene *s, ptl_handle_me_t handle)
{
    return s->matching ? PtlMEUnlink(handle) : PtlLEUnlink(handle);
}

void suite_unlink(struct scene *s, ptl_handle_me_t handle)
{
    uint64_t end = suite_deadline();
    int code;
    while ((code = suite_unlink_code(s, handle)) == PTL_IN_USE && suite_now_ms() < end) {
        sched_yield();
    }
    CODE(code, PTL_OK);
}

void suite_release(struct scene *s, ptl_handle_md_t md)
{
    uint64_t end = suite_deadline();
    int code;
    while ((code = PtlMDRelease(md)) == PTL_IN_USE && suite_now_ms() < end) {
        sched_yield();
    }
    CODE(code, PTL_OK);
}
