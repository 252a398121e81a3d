/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits that count things: as many as the limit says can be had, not one more; a
 * refusal changes nothing; what is given back can be had again.
 */
#include "limits_kit.h"

#include <string.h>

enum { SMALL = 16, LARGE = 100 };

static unsigned char memory[256];

/* ---- Things that are allocated --------------------------------------------- */

struct thing {
    const char *name;
    size_t offset; /* of its limit */
    int own;       /* that the scene has */
    int refusal;
    int (*make)(struct scene *s, int i, uint32_t *handle);
    int (*drop)(struct scene *s, uint32_t handle);
    enum suite_made what;
    unsigned kinds;
    const char *rule;
    ptl_ni_limits_t wish[2];
};

static int make_ct(struct scene *s, int i, uint32_t *h)
{
    return PtlCTAlloc(s->ni, h);
}
static int drop_ct(struct scene *s, uint32_t h)
{
    return PtlCTFree(h);
}
static int make_eq(struct scene *s, int i, uint32_t *h)
{
    return PtlEQAlloc(s->ni, 1, h);
}
static int drop_eq(struct scene *s, uint32_t h)
{
    return PtlEQFree(h);
}
static int make_md(struct scene *s, int i, uint32_t *h)
{
    ptl_md_t md = {memory, sizeof(memory), 0, s->mdeq, PTL_CT_NONE};
    return PtlMDBind(s->ni, &md, h);
}
static int drop_md(struct scene *s, uint32_t h)
{
    return PtlMDRelease(h);
}

static int append(struct scene *s, ptl_pt_index_t pt, ptl_list_t list, uint32_t *h)
{
    ptl_me_t me = suite_entry(s, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    return s->matching ? PtlMEAppend(s->ni, pt, &me, list, NULL, h)
                       : PtlLEAppend(s->ni, pt, (ptl_le_t *)&me, list, NULL, h);
}

/* Entries on all four lists of two indices. */
static int make_entry(struct scene *s, int i, uint32_t *h)
{
    if (i == 0) {
        suite_pt(s, 0, PTL_EQ_NONE, SUITE_PT + 4);
    }
    return append(s, i & 1 ? SUITE_PT : SUITE_PT + 4, i & 2 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                  h);
}
static int make_priority(struct scene *s, int i, uint32_t *h)
{
    return append(s, SUITE_PT, PTL_PRIORITY_LIST, h);
}
static int make_overflow(struct scene *s, int i, uint32_t *h)
{
    return append(s, SUITE_PT, PTL_OVERFLOW_LIST, h);
}
static int drop_entry(struct scene *s, uint32_t h)
{
    return suite_unlink_code(s, h);
}

static struct thing things[] = {
    {"max_cts",
     LIMIT_OF(max_cts),
     SUITE_OWN_CTS,
     PTL_NO_SPACE,
     make_ct,
     drop_ct,
     MADE_CT,
     ALL_KINDS,
     "3.14: PtlCTAlloc gives max_cts counters, then PTL_NO_SPACE",
     {{0}}},
    {"max_eqs",
     LIMIT_OF(max_eqs),
     SUITE_OWN_EQS,
     PTL_NO_SPACE,
     make_eq,
     drop_eq,
     MADE_EQ,
     ALL_KINDS,
     "3.13: PtlEQAlloc gives max_eqs queues, then PTL_NO_SPACE",
     {{0}}},
    {"max_mds",
     LIMIT_OF(max_mds),
     SUITE_OWN_MDS,
     PTL_NO_SPACE,
     make_md,
     drop_md,
     MADE_MD,
     ALL_KINDS,
     "3.10: PtlMDBind gives max_mds MDs, then PTL_NO_SPACE",
     {{0}}},
    {"max_entries",
     LIMIT_OF(max_entries),
     SUITE_OWN_ENTRIES,
     PTL_NO_SPACE,
     make_entry,
     drop_entry,
     MADE_ENTRY,
     ALL_KINDS,
     "3.12: max_entries entries of all lists, then PTL_NO_SPACE",
     {{0}}},
    {"max_list_size.priority",
     LIMIT_OF(max_list_size),
     0,
     PTL_LIST_TOO_LONG,
     make_priority,
     drop_entry,
     MADE_ENTRY,
     ALL_KINDS,
     "3.12: max_list_size entries of a priority list, then PTL_LIST_TOO_LONG",
     {{0}}},
    {"max_list_size.overflow",
     LIMIT_OF(max_list_size),
     0,
     PTL_LIST_TOO_LONG,
     make_overflow,
     drop_entry,
     MADE_ENTRY,
     ALL_KINDS,
     "3.12: max_list_size entries of an overflow list, then PTL_LIST_TOO_LONG",
     {{0}}},
};
enum { THINGS = sizeof(things) / sizeof(things[0]) };

static int limit_of(struct scene *s, const struct thing *t)
{
    int value;
    memcpy(&value, (char *)&s->limits + t->offset, sizeof(value));
    return value;
}

static void refused(struct scene *s, const struct thing *t, int i)
{
    uint32_t h = 0x5a5a5a5a;
    suite_check_code(t->make(s, i, &h), t->refusal, t->name, __FILE__, __LINE__);
    CHECK_EQ(h, 0x5a5a5a5a);
}

static void make(struct scene *s, const struct thing *t, int i, uint32_t *h)
{
    suite_check_code(t->make(s, i, h), PTL_OK, t->name, __FILE__, __LINE__);
    suite_own(s, t->what, *h);
}

/* Fills to the limit, is refused, and again after one or half were given back. */
static void holds(struct scene *s)
{
    const struct thing *t = s->c->data;
    uint32_t h[LARGE];
    int n = limit_of(s, t) - t->own;
    CHECK(n >= 4 && n <= LARGE);
    CHECK_EQ(limit_of(s, t), s->c->number);
    for (int i = 0; i < n; i++) {
        make(s, t, i, &h[i]);
    }
    for (int again = 0; again < 3; again++) {
        refused(s, t, n);
    }
    OK(t->drop(s, h[n / 2])); /* one below */
    make(s, t, n, &h[n / 2]); /* at it */
    refused(s, t, n + 1);
    for (int i = 0; i < n; i += 2) {
        OK(t->drop(s, h[i]));
    }
    for (int i = 0; i < n; i += 2) {
        make(s, t, i + 4, &h[i]); /* never 0: an index exists already */
    }
    refused(s, t, n);
}

GENERATE(what_is_held)
{
    static const int sizes[2] = {SMALL, LARGE};
    for (int i = 0; i < THINGS; i++) {
        for (int size = 0; size < 2; size++) {
            things[i].wish[size] = limits_with(things[i].offset, sizes[size]);
            suite_add_each((struct suite_case){.rule = things[i].rule,
                                               .body = holds,
                                               .data = &things[i],
                                               .number = sizes[size],
                                               .desired = &things[i].wish[size]},
                           things[i].kinds, SELF, "%s.%d", things[i].name, sizes[size]);
        }
    }
}

/* The limits that an interface has without wishes: as many as they say. */
static void holds_all(struct scene *s)
{
    const struct thing *t = s->c->data;
    int limit = limit_of(s, t), made = t->own;
    uint32_t h, last = 0;
    int code = PTL_OK;
    for (int i = 0; made <= limit && (code = t->make(s, i, &h)) == PTL_OK; i++) {
        last = h;
        made++;
    }
    suite_check_code(code, t->refusal, t->name, __FILE__, __LINE__);
    CHECK_EQ(made, limit);
    OK(t->drop(s, last));
    OK(t->make(s, 1, &h));
    refused(s, t, 1);
}

GENERATE(all_that_is_held)
{
    for (int i = 0; i < THINGS; i++) {
        if (things[i].offset != LIMIT_OF(max_list_size)) { /* all entries may be in one list */
            suite_add_each(
                (struct suite_case){
                    .rule = things[i].rule, .body = holds_all, .data = &things[i], .alone = true},
                MP | NL, SELF, "%s.full", things[i].name);
        }
    }
}

/* One list full, the other has room. */
static ptl_ni_limits_t short_lists;

static void lists_apart(struct scene *s)
{
    uint32_t h;
    for (int i = 0; i < SMALL; i++) {
        OK(make_priority(s, i, &h));
        suite_own(s, MADE_ENTRY, h);
    }
    CODE(make_priority(s, 0, &h), PTL_LIST_TOO_LONG);
    for (int i = 0; i < SMALL; i++) {
        OK(make_overflow(s, i, &h));
        suite_own(s, MADE_ENTRY, h);
    }
    CODE(make_overflow(s, 0, &h), PTL_LIST_TOO_LONG);
    suite_pt(s, 0, PTL_EQ_NONE, SUITE_PT + 4);
    OK(append(s, SUITE_PT + 4, PTL_PRIORITY_LIST, &h));
    suite_own(s, MADE_ENTRY, h);
}

/* A list and the table of entries are full at once. */
static ptl_ni_limits_t one_list;

static void list_and_table(struct scene *s)
{
    uint32_t h;
    for (int i = 0; i < SMALL; i++) {
        OK(make_priority(s, i, &h));
        suite_own(s, MADE_ENTRY, h);
    }
    CODE(make_priority(s, 0, &h), PTL_NO_SPACE);
}

GENERATE(short_lists_cases)
{
    one_list = limits_with(LIMIT_OF(max_list_size), SMALL);
    one_list.max_entries = SMALL + SUITE_OWN_ENTRIES;
    suite_add_each((struct suite_case){.rule = "3.12: where list and max_entries are full at once, "
                                               "PTL_NO_SPACE says so",
                                       .body = list_and_table,
                                       .desired = &one_list},
                   ALL_KINDS, SELF, "max_entries.one_list");
    short_lists = limits_with(LIMIT_OF(max_list_size), SMALL);
    suite_add_each((struct suite_case){.rule = "3.12: max_list_size holds for each list by itself",
                                       .body = lists_apart,
                                       .desired = &short_lists},
                   ALL_KINDS, SELF, "max_list_size.apart");
}

/* ---- Portal table ---------------------------------------------------------- */

CASE(max_pt_index, ALL_KINDS, SELF,
     "3.7: the indices 0 to max_pt_index can all be allocated, then PTL_PT_ANY gives PTL_PT_FULL")
{
    ptl_pt_index_t index = 0x5a5a5a5a, last = (ptl_pt_index_t)s->limits.max_pt_index;
    bool taken[1024] = {false};
    CHECK(last < 1024);
    for (ptl_pt_index_t i = 0; i < last - 1; i++) { /* two are the scene's */
        index = suite_pt(s, 0, PTL_EQ_NONE, PTL_PT_ANY);
        CHECK(index <= last && !taken[index]);
        taken[index] = true;
    }
    index = 0x5a5a5a5a;
    CODE(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_FULL);
    CODE(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, last, &index), PTL_PT_IN_USE);
    INVALID(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, last + 1, &index));
    CHECK_EQ(index, 0x5a5a5a5a);
    OK(PtlPTFree(s->ni, last));
    OK(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    CHECK_EQ(index, last);
}

CASE(first_index, ALL_KINDS, BARE, "3.7: on a new interface PTL_PT_ANY gives 0 first")
{
    ptl_handle_ni_t ni;
    ptl_pt_index_t index = 1;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    CHECK_EQ(index, 0);
    PtlFini();
}

/* ---- Triggered operations -------------------------------------------------- */

static ptl_ni_limits_t few_triggered;

static int arm(struct scene *s, ptl_handle_md_t md, ptl_handle_ct_t trigger, int i)
{
    static const unsigned long long operand;
    struct suite_move m = suite_move_to(s, (enum suite_call)(i % (CALL_COUNT + 2)));
    ptl_ct_event_t one = {1, 0};
    if (i % (CALL_COUNT + 2) == CALL_COUNT) {
        return PtlTriggeredCTInc(s->mdct, one, trigger, 10);
    }
    if (i % (CALL_COUNT + 2) == CALL_COUNT + 1) {
        return PtlTriggeredCTSet(s->mdct, one, trigger, 10);
    }
    m.triggered = true;
    m.md = m.get_md = md;
    m.length = 8;
    m.get_offset = 8;
    m.op = m.call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT64_T;
    m.operand = &operand;
    m.trigger = trigger;
    m.threshold = 10;
    return suite_move(&m);
}

/* number: which call is tried first, so that each is the refused one in some case */
static void triggered_ops(struct scene *s)
{
    int first = (int)s->c->number;
    ptl_handle_md_t md = suite_md_with(s, memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_ct_t one = suite_ct(s), two = suite_ct(s);
    CHECK_EQ(s->limits.max_triggered_ops, SMALL);
    for (int i = 0; i < SMALL; i++) {
        OK(arm(s, md, i & 1 ? one : two, first + i));
    }
    for (int i = 0; i < 8; i++) {
        CODE(arm(s, md, one, first + SMALL + i), PTL_NO_SPACE);
    }
    OK(PtlCTCancelTriggered(one)); /* half of them */
    for (int i = 0; i < SMALL / 2; i++) {
        OK(arm(s, md, one, first + i));
    }
    CODE(arm(s, md, two, first), PTL_NO_SPACE);
    OK(PtlCTFree(two));
    for (int i = 0; i < SMALL / 2; i++) {
        OK(arm(s, md, one, first + i));
    }
    CODE(arm(s, md, one, first), PTL_NO_SPACE);
    OK(PtlCTCancelTriggered(one));
    EXPECT_CT(s->mdct, 0, 0);
}

/* What has fired counts no more. */
static void triggered_fired(struct scene *s)
{
    ptl_handle_ct_t trigger = suite_ct(s);
    ptl_ct_event_t one = {1, 0}, ten = {10, 0};
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < SMALL; i++) {
            OK(PtlTriggeredCTInc(s->mdct, one, trigger, (ptl_size_t)round * 10));
        }
        CODE(PtlTriggeredCTInc(s->mdct, one, trigger, (ptl_size_t)round * 10), PTL_NO_SPACE);
        OK(PtlCTInc(trigger, ten));
        EXPECT_CT(s->mdct, (ptl_size_t)round * SMALL, 0);
    }
}

GENERATE(triggered_limits)
{
    few_triggered = limits_with(LIMIT_OF(max_triggered_ops), SMALL);
    for (int i = 0; i < CALL_COUNT + 2; i++) {
        suite_add_each((struct suite_case){.rule = "3.16: max_triggered_ops operations may wait, "
                                                   "then PTL_NO_SPACE",
                                           .body = triggered_ops,
                                           .number = i,
                                           .desired = &few_triggered},
                       ALL_KINDS, SELF, "max_triggered_ops.from_%d", i);
    }
    suite_add_each((struct suite_case){.rule = "3.16: operations that have happened do not count "
                                               "against max_triggered_ops",
                                       .body = triggered_fired,
                                       .desired = &few_triggered},
                   ALL_KINDS, SELF, "max_triggered_ops.fired");
}
