/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered operations one after the other, generated:
 *
 *   order   many on one counter, with thresholds of 3, 2, 1, 3, 2, 1, ...: each step of the
 *           counter lets those of one threshold happen, in the order of the calls
 *   chain   each counts on the counter that triggers the next; a put is the last
 */
#include "matrix_kit.h"

enum { LENGTH = 64, IN_ORDER = 12, STEPS = 3, CHAIN = 60 };
static char of_move[IN_ORDER], of_entry;
static const ptl_ct_event_t one = {1, 0};

static void make_regions(void)
{
    region_make(&region[PUT_SIDE], PLAIN, LENGTH, 1);
    region_make(&region[GET_SIDE], PLAIN, LENGTH, 2);
    region_make(&region[ENTRY], PLAIN, LENGTH, 3);
}

static void append(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, region_start(&region[ENTRY]), LENGTH,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET, &of_entry);
    }
    STEP();
}

/* ---- Order ------------------------------------------------------------------ */

static struct suite_move bind(struct scene *s, enum suite_call call)
{
    struct suite_move m = suite_move_to(s, call);
    m.length = LENGTH;
    m.op = call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT32_T;
    m.ack = PTL_ACK_REQ;
    m.triggered = true;
    m.trigger = s->mdct;
    if (s->initiator) {
        ptl_handle_md_t put_md =
            suite_md(s, region_start(&region[PUT_SIDE]), LENGTH, PTL_MD_EVENT_SEND_DISABLE);
        m.get_md = suite_md(s, region_start(&region[GET_SIDE]), LENGTH, 0);
        m.md = call == CALL_GET ? m.get_md : put_md;
    }
    return m;
}

/* The i-th of the row, in what tells it from the others. */
static void number(const struct scene *s, struct suite_move *m, unsigned i)
{
    m->threshold = STEPS - i % STEPS;
    m->user_ptr = &of_move[i];
    m->hdr_data = i;
    m->bits = s->matching ? i : 0;
}

static void happened(struct scene *s, const struct suite_move *m)
{
    struct due due = {0};
    struct landing l = {&region[ENTRY], 0, LENGTH, PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
    landing_move(m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &l);
    if (s->initiator) {
        due_add(&due, answer_event(m, &l));
        TAKE(s->mdeq, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, m, &l));
        TAKE(s->eq, &due);
    }
}

static void order_body(struct scene *s)
{
    struct watch w;
    make_regions();
    watch_begin(&w, s);
    struct suite_move m = bind(s, (enum suite_call)s->c->number);
    append(s);
    for (unsigned i = 0; s->initiator && i < IN_ORDER; i++) {
        number(s, &m, i);
        OK(suite_move(&m));
    }
    WATCH_END(&w);
    for (unsigned step = 1; step <= STEPS; step++) {
        if (s->initiator) {
            OK(PtlCTInc(s->mdct, one));
        }
        for (unsigned i = STEPS - step; i < IN_ORDER; i += STEPS) {
            number(s, &m, i);
            happened(s, &m);
        }
        WATCH_END(&w);
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
    }
}

/* ---- Chain ------------------------------------------------------------------- */

static void arm_chain(struct scene *s, ptl_handle_ct_t *ct, bool set)
{
    for (int i = 0; i < CHAIN; i++) {
        ct[i] = suite_ct(s);
    }
    for (int i = 1; i < CHAIN; i++) {
        OK(set ? PtlTriggeredCTSet(ct[i], one, ct[i - 1], 1)
               : PtlTriggeredCTInc(ct[i], one, ct[i - 1], 1));
    }
}

static void chain_body(struct scene *s)
{
    struct due due = {0};
    struct watch w;
    ptl_handle_ct_t ct[CHAIN];
    make_regions();
    watch_begin(&w, s);
    struct suite_move m = suite_move_to(s, CALL_PUT);
    m.length = LENGTH;
    m.user_ptr = &of_move[0];
    struct landing l = {&region[ENTRY], 0, LENGTH, PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
    append(s);
    landing_move(&m, &region[PUT_SIDE], &region[PUT_SIDE], &region[ENTRY], &l);
    if (s->initiator) {
        arm_chain(s, ct, s->c->number != 0);
        m.md = suite_md(s, region_start(&region[PUT_SIDE]), LENGTH, 0);
        m.triggered = true;
        m.trigger = ct[CHAIN - 1];
        m.threshold = 1;
        OK(suite_move(&m));
        NO_EVENT(s->mdeq);
        OK(PtlCTInc(ct[0], one));
        due_add(&due, send_event(&m));
        TAKE(s->mdeq, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, &m, &l));
        TAKE(s->eq, &due);
        CHECK_REGION(&region[ENTRY]);
    }
    WATCH_END(&w);
    for (int i = 0; s->initiator && i < CHAIN; i++) {
        COUNTED(ct[i], 1, 0);
    }
}

GENERATE(trigger_orders)
{
    for (long call = CALL_PUT; call < CALL_COUNT; call++) {
        suite_add_each(
            (struct suite_case){
                .rule = "3.16: operations of one threshold happen in the order of the calls",
                .body = order_body,
                .number = call},
            ALL_KINDS, SELF | PAIR, "trigger.order.%s", suite_call_name[call]);
    }
    for (long set = 0; set < 2; set++) {
        suite_add_each(
            (struct suite_case){.rule = "3.16: what is triggered may count, and trigger again",
                                .body = chain_body,
                                .number = set},
            ALL_KINDS, SELF | PAIR, "trigger.chain.%s", set ? "ct_set" : "ct_inc");
    }
}
