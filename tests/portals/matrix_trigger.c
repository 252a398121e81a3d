/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered operations, generated: each of them with each way in which a counter comes to
 * its threshold, or does not.
 *
 *   reached    the counter is there already       message    answers of messages count
 *   zero       the threshold is 0                 failed     failures of messages count
 *   one        the last step, by PtlCTInc         cancelled  PtlCTCancelTriggered comes before
 *   jump       from 0, beyond it, by PtlCTInc     freed      PtlCTFree comes before
 *   set        by PtlCTSet
 *   failures   by failures only                   mixed      by successes and failures
 *
 * Until then nothing may happen, and buffers are read no sooner; then it happens once.
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum what { MOVE, CT_INC, CT_SET, APPEND, UNLINK };
enum how {
    REACHED,
    ZERO,
    ONE_MORE,
    JUMP,
    SET,
    FAILURES,
    BOTH,
    MESSAGE,
    FAILED,
    CANCELLED,
    FREED,
    HOWS
};
static const char *const how_name[HOWS] = {"reached", "zero",      "one",   "jump",
                                           "set",     "failures",  "mixed", "message",
                                           "failed",  "cancelled", "freed"};

struct trigger_case {
    enum what what;
    enum suite_call call; /* of MOVE */
    enum how how;
    ptl_size_t threshold;
};

enum { LENGTH = 64, MESSAGE_PT = 21, NO_PT = 22 };
static char of_move, of_entry;
static const ptl_ct_event_t incremented = {3, 0}, set_to = {7, 2};

/* Everything that a case holds in its hands. */
struct stage {
    const struct trigger_case *c;
    struct watch w;
    bool actor; /* this process has the counter */
    ptl_handle_ct_t trigger, other;
    ptl_handle_md_t counting; /* messages that the trigger counts */
    ptl_handle_me_t entry;
    struct suite_move m;
    struct landing l;
    int drops;
};

static bool at_once(const struct trigger_case *c)
{
    return c->how == REACHED || c->how == ZERO;
}

static bool never(const struct trigger_case *c)
{
    return c->how == CANCELLED || c->how == FREED;
}

static bool of_target(const struct trigger_case *c)
{
    return c->what == APPEND || c->what == UNLINK;
}

static ptl_size_t threshold(const struct trigger_case *c)
{
    return c->how == ZERO ? 0 : c->threshold;
}

/* ---- The two sides before ---------------------------------------------------- */

static void prepare_target(struct scene *s, struct stage *g)
{
    struct region *entry = &region[ENTRY];
    ptl_handle_me_t handle;
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry),
                              PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    if (g->c->what != APPEND) {
        g->entry = suite_append(s, PTL_PRIORITY_LIST, &me, &of_entry);
    }
    me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
    if (of_target(g->c)) {
        me.options |= PTL_ME_EVENT_CT_COMM;
        me.ct_handle = g->trigger;
    }
    suite_pt(s, 0, PTL_EQ_NONE, MESSAGE_PT);
    OK(suite_append_code(s, MESSAGE_PT, PTL_PRIORITY_LIST, &me, NULL, &handle));
}

static void prepare_initiator(struct scene *s, struct stage *g)
{
    struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
    ptl_handle_md_t put_md = suite_md(s, region_start(put), region_units(put), 0);
    g->m.get_md = suite_md(s, region_start(get), region_units(get), 0);
    g->m.md = g->m.call == CALL_GET ? g->m.get_md : put_md;
    bool mine = !of_target(g->c);
    g->counting = suite_md_with(s, NULL, 0, mine ? PTL_MD_EVENT_CT_ACK : 0, PTL_EQ_NONE,
                                mine ? g->trigger : PTL_CT_NONE);
}

static void set_stage(struct scene *s, struct stage *g)
{
    const struct trigger_case *c = g->c;
    region_make(&region[PUT_SIDE], PLAIN, LENGTH, 1);
    region_make(&region[GET_SIDE], PLAIN, LENGTH, 2);
    region_make(&region[ENTRY], PLAIN, LENGTH, 3);
    g->actor = of_target(c) ? s->target : s->initiator;
    g->trigger = suite_ct(s);
    g->other = suite_ct(s);
    g->m = suite_move_to(s, c->what == MOVE ? c->call : CALL_PUT);
    g->m.length = LENGTH;
    g->m.ack = PTL_ACK_REQ;
    g->m.user_ptr = &of_move;
    g->m.hdr_data = 17;
    g->m.op = c->call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    g->m.type = PTL_INT16_T;
    g->l = (struct landing){&region[ENTRY], 0, LENGTH, PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
    if (s->initiator) {
        prepare_initiator(s, g);
    }
    if (s->target) {
        prepare_target(s, g);
    }
    STEP();
}

/* ---- The triggered call, and what triggers it --------------------------------- */

static void arm(struct scene *s, struct stage *g)
{
    const struct trigger_case *c = g->c;
    ptl_size_t t = threshold(c);
    ptl_ct_event_t start = {c->how == REACHED ? t : c->how == ONE_MORE ? t - 1 : 0, 0};
    OK(PtlCTSet(g->trigger, start));
    struct region *entry = &region[ENTRY];
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry), PTL_ME_OP_PUT);
    struct suite_move m = g->m;
    m.triggered = true;
    m.trigger = g->trigger;
    m.threshold = t;
    switch (c->what) {
    case MOVE:
        OK(suite_move(&m));
        break;
    case CT_INC:
        OK(PtlTriggeredCTInc(g->other, incremented, g->trigger, t));
        break;
    case CT_SET:
        OK(PtlTriggeredCTSet(g->other, set_to, g->trigger, t));
        break;
    case APPEND:
        OK(PtlTriggeredMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, &of_entry, &g->entry,
                                g->trigger, t));
        suite_own(s, MADE_ENTRY, g->entry);
        break;
    case UNLINK:
        OK(PtlTriggeredMEUnlink(g->entry, g->trigger, t));
        break;
    }
}

/* Messages whose end the trigger counts, sent by the initiator. */
static void send_counting(struct scene *s, struct stage *g, ptl_pt_index_t pt)
{
    for (ptl_size_t i = 0; s->initiator && i < threshold(g->c); i++) {
        OK(PtlPut(g->counting, 0, 0, PTL_CT_ACK_REQ * !of_target(g->c), s->to, pt, 0, 0, NULL, 0));
    }
}

static void fire(struct scene *s, struct stage *g)
{
    ptl_size_t t = threshold(g->c);
    ptl_ct_event_t all = {t, 0}, more = {t + 3, 0}, one = {1, 0}, failures = {0, t},
                   rest = {0, t - 1};
    switch (g->c->how) {
    case ONE_MORE:
        OK(PtlCTInc(g->trigger, one));
        break;
    case JUMP:
        OK(PtlCTInc(g->trigger, more));
        break;
    case SET:
        OK(PtlCTSet(g->trigger, all));
        break;
    case FAILURES:
        OK(PtlCTInc(g->trigger, failures));
        break;
    case BOTH:
        OK(PtlCTInc(g->trigger, one));
        OK(PtlCTInc(g->trigger, rest));
        break;
    case CANCELLED:
        OK(PtlCTCancelTriggered(g->trigger));
        COUNTED(g->trigger, 0, 0);
        OK(PtlCTInc(g->trigger, all));
        break;
    case FREED:
        OK(PtlCTFree(g->trigger));
        break;
    default:
        break;
    }
}

/* ---- What must have happened --------------------------------------------------- */

/* A put that shows whether the entry is there. */
static void probe(struct scene *s, struct stage *g, bool linked)
{
    struct due due = {0};
    struct landing l = g->l;
    if (!linked) {
        l.fail = PTL_NI_DROPPED;
        l.mlength = 0;
        g->drops++;
    }
    landing_move(&g->m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &l);
    STEP();
    if (s->initiator) {
        OK(suite_move(&g->m));
        due_add(&due, send_event(&g->m));
        due_add(&due, answer_event(&g->m, &l));
        TAKE(s->mdeq, &due);
    }
    if (s->target && linked) {
        due_add(&due, landing_event(s, &g->m, &l));
        TAKE(s->eq, &due);
    }
    STEP();
}

static void moved(struct scene *s, struct stage *g)
{
    struct due due = {0};
    landing_move(&g->m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &g->l);
    if (s->initiator) {
        if (move_puts(g->m.call)) {
            due_add(&due, send_event(&g->m));
        }
        due_add(&due, answer_event(&g->m, &g->l));
        TAKE(s->mdeq, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, &g->m, &g->l));
        TAKE(s->eq, &due);
    }
}

static void happened(struct scene *s, struct stage *g)
{
    struct due due = {0};
    switch (g->c->what) {
    case MOVE:
        moved(s, g);
        break;
    case CT_INC:
        if (g->actor) {
            COUNT_COMES(g->other, incremented.success);
            COUNTED(g->other, incremented.success, 0);
        }
        break;
    case CT_SET:
        if (g->actor) {
            COUNT_COMES(g->other, set_to.success + set_to.failure);
            COUNTED(g->other, set_to.success, set_to.failure);
        }
        break;
    case APPEND:
        if (g->actor) {
            due_add(&due, entry_event(s, PTL_EVENT_LINK, &of_entry));
            TAKE(s->eq, &due);
        }
        break;
    case UNLINK:
        break;
    }
    WATCH_END(&g->w, .drops = g->drops);
}

static void is_pending(struct scene *s, struct stage *g)
{
    WATCH_END(&g->w);
    if (g->actor) {
        COUNTED(g->other, 0, 0);
    }
    if (s->initiator && g->c->what == MOVE) {
        CODE(PtlMDRelease(g->m.md), PTL_IN_USE);
        if (g->m.call == CALL_FETCH || g->m.call == CALL_SWAP) {
            CODE(PtlMDRelease(g->m.get_md), PTL_IN_USE);
        }
    }
    region_fill(&region[PUT_SIDE], 77); /* what counts is what is there in the end */
    if (of_target(g->c)) {
        probe(s, g, g->c->what == UNLINK);
    }
}

static void trigger_body(struct scene *s)
{
    const struct trigger_case *c = s->c->data;
    struct stage g = {.c = c};
    watch_begin(&g.w, s);
    set_stage(s, &g);
    if (g.actor) {
        arm(s, &g);
    }
    if (!at_once(c)) {
        is_pending(s, &g);
    }
    if (c->how == MESSAGE || c->how == FAILED) {
        bool lost = c->how == FAILED;
        send_counting(s, &g, lost ? NO_PT : MESSAGE_PT);
        g.drops += lost ? (int)threshold(c) : 0;
    } else if (g.actor) {
        fire(s, &g);
    }
    if (!never(c)) {
        happened(s, &g);
    }
    WATCH_END(&g.w, .drops = g.drops);
    if (g.actor && c->how != FREED) { /* it is over, whatever is counted now */
        ptl_ct_event_t again = {10, 0};
        OK(PtlCTInc(g.trigger, again));
        WATCH_END(&g.w, .drops = g.drops);
        COUNTED(g.other,
                never(c)            ? 0
                : c->what == CT_INC ? 3
                : c->what == CT_SET ? 7
                                    : 0,
                c->what == CT_SET && !never(c) ? 2 : 0);
    } else {
        WATCH_END(&g.w, .drops = g.drops);
    }
    if (of_target(c)) {
        probe(s, &g, (c->what == APPEND) != never(c));
        WATCH_END(&g.w, .drops = g.drops);
    }
    if (s->initiator) {
        suite_release(s, g.m.md);
        CHECK_REGION(&region[PUT_SIDE]);
        CHECK_REGION(&region[GET_SIDE]);
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
    }
}

/* ---- The matrix --------------------------------------------------------------------- */

static const char *const rules[HOWS] = {
    "3.16: an operation whose threshold is reached happens at once",
    "3.16: a threshold of 0 is reached from the beginning",
    "3.16: it happens with the step that reaches its threshold, once",
    "3.16: a counter that passes the threshold in one step triggers, too",
    "3.16: PtlCTSet triggers as well",
    "3.16: failures count for the threshold",
    "3.16: the threshold is one of success and failure together",
    "3.16: a message that is counted triggers",
    "3.16: a message that fails, and is counted, triggers",
    "3.14: PtlCTCancelTriggered forgets what waits, and nothing else happens",
    "3.14: PtlCTFree forgets what waits for the counter"};

static void add(enum what what, enum suite_call call, const char *name, unsigned kinds)
{
    for (enum how how = 0; how < HOWS; how++) {
        for (ptl_size_t t = 1; t <= (how == ZERO ? 1 : 5); t += 4) {
            if (how == FAILED && (what == APPEND || what == UNLINK)) {
                continue; /* a target counts no failure that it refuses */
            }
            if (how == BOTH && t == 1) {
                continue;
            }
            struct trigger_case *c = malloc(sizeof(*c));
            if (c == NULL) {
                abort();
            }
            *c = (struct trigger_case){what, call, how, t};
            suite_add_each((struct suite_case){.rule = rules[how], .body = trigger_body, .data = c},
                           kinds, SELF | PAIR, "trigger.%s.%s.%d", name, how_name[how], (int)t);
        }
    }
}

GENERATE(triggers)
{
    for (enum suite_call call = CALL_PUT; call < CALL_COUNT; call++) {
        add(MOVE, call, suite_call_name[call], ALL_KINDS);
    }
    add(CT_INC, CALL_PUT, "ct_inc", ALL_KINDS);
    add(CT_SET, CALL_PUT, "ct_set", ALL_KINDS);
    add(APPEND, CALL_PUT, "append", MATCHING_KINDS);
    add(UNLINK, CALL_PUT, "unlink", MATCHING_KINDS);
}
