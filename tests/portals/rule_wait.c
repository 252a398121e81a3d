/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.7: flow control that waits. A message that there is no room for stays in the network for
 * PINWHEEL_FLOWCTRL_MS before it is refused; here that is longer than a case has, so that
 * what is seen was not refused. rule_flow.c has what comes after.
 */
#include "rule_kit.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 9000, EVENTS = 8, MANY = 3 * EVENTS };
static unsigned char from[SIZE], to[SIZE];

static void start(struct scene *s, enum suite_call call, ptl_size_t length)
{
    static const uint64_t operand;
    struct suite_move m = suite_move_to(s, call);
    m.md = m.get_md = rule_md(s, from, SIZE);
    m.get_offset = SIZE / 2;
    m.length = length;
    m.ack = PTL_ACK_REQ;
    m.op = call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT64_T;
    m.operand = &operand;
    OK(suite_move(&m));
}

/* The call sends so much to the entry, of which the initiator is to hear `fail`. */
static void move(struct scene *s, enum suite_call call, ptl_size_t length, ptl_ni_fail_t fail)
{
    start(s, call, length);
    bool acked = call == CALL_PUT || call == CALL_ATOMIC;
    EXPECT(s->mdeq, acked ? PTL_EVENT_ACK : PTL_EVENT_REPLY, .fail = fail,
           .mlength = IS(fail == PTL_NI_OK ? length : 0));
}

static const struct moved {
    const char *name;
    enum suite_call call;
    ptl_size_t length;
} moves[] = {
    {"put_0", CALL_PUT, 0},     {"put_8", CALL_PUT, 8},       {"put_9000", CALL_PUT, SIZE},
    {"get_8", CALL_GET, 8},     {"get_9000", CALL_GET, SIZE}, {"atomic_8", CALL_ATOMIC, 8},
    {"fetch_8", CALL_FETCH, 8}, {"swap_8", CALL_SWAP, 8},
};
enum { MOVES = sizeof(moves) / sizeof(moves[0]) };

static void append_target(struct scene *s)
{
    suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
}

static void wait_for_entry(struct scene *s)
{
    const struct moved *m = s->c->data;
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    STEP();
    if (s->initiator) {
        move(s, m->call, m->length, PTL_NI_OK);
    } else {
        rule_nudge(s, 20);
        NO_EVENT(s->eq);
        append_target(s);
        EXPECT(s->eq,
               m->call == CALL_PUT      ? PTL_EVENT_PUT
               : m->call == CALL_GET    ? PTL_EVENT_GET
               : m->call == CALL_ATOMIC ? PTL_EVENT_ATOMIC
                                        : PTL_EVENT_FETCH_ATOMIC,
               .rlength = IS(m->length));
        NO_EVENT(s->eq);
        EXPECT_STATUS(PTL_SR_DROP_COUNT, drops);
    }
}

/* Sends `count` puts whose hdr_data count from 0, and awaits their acks. */
static void put_many(struct scene *s, int count)
{
    ptl_handle_eq_t acks = suite_eq(s, (ptl_size_t)count);
    ptl_handle_md_t md = suite_md_with(s, from, SIZE, PTL_MD_EVENT_SEND_DISABLE, acks, PTL_CT_NONE);
    for (int i = 0; i < count; i++) {
        OK(PtlPut(md, 0, i % 5 == 4 ? SIZE : 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                  (ptl_hdr_data_t)i));
    }
    for (int i = 0; i < count; i++) {
        EXPECT(acks, PTL_EVENT_ACK);
    }
}

static void wait_for_events(struct scene *s)
{
    if (s->target) {
        append_target(s);
    }
    STEP();
    if (s->initiator) {
        put_many(s, MANY);
    } else {
        for (int i = 0; i < MANY; i++) {
            if (i % EVENTS == 0) {
                rule_nudge(s, 5); /* the queue is full now, or soon */
            }
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
        }
        NO_EVENT(s->eq);
    }
}

/* Closes the index by messages of its own, which do not wait. */
static void close_by_flow(struct scene *s)
{
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    for (int i = 0; i <= EVENTS; i++) {
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 77));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = i < EVENTS ? PTL_NI_OK : PTL_NI_PT_DISABLED);
    }
    for (int i = 0; i < EVENTS; i++) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(77));
    }
    EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
}

static void wait_for_enable(struct scene *s)
{
    if (s->target) {
        append_target(s);
        close_by_flow(s);
    }
    STEP();
    if (s->initiator) {
        put_many(s, EVENTS);
    } else {
        int drops = suite_status(s, PTL_SR_DROP_COUNT);
        rule_nudge(s, 20);
        NO_EVENT(s->eq);
        EXPECT_STATUS(PTL_SR_DROP_COUNT, drops);
        OK(PtlPTEnable(s->ni, SUITE_PT));
        for (int i = 0; i < EVENTS; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
        }
    }
}

static void disabled_meanwhile(struct scene *s)
{
    const struct moved *m = s->c->data;
    if (s->target) {
        append_target(s);
        close_by_flow(s);
    }
    STEP();
    if (s->initiator) {
        move(s, m->call, m->length, PTL_NI_PT_DISABLED);
    } else {
        rule_nudge(s, 20);
        OK(PtlPTDisable(s->ni, SUITE_PT));
    }
    STEP();
}

static void freed_meanwhile(struct scene *s)
{
    ptl_pt_index_t other = suite_pt(s, PTL_PT_FLOWCTRL, s->eq, 33);
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    STEP();
    if (s->initiator) {
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, other, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
    } else {
        rule_nudge(s, 20);
        OK(PtlPTFree(s->ni, other));
    }
    STEP();
    if (s->target) {
        OK(PtlPTAlloc(s->ni, PTL_PT_FLOWCTRL, s->eq, 33, &other));
    }
}

static void closed_meanwhile(struct scene *s)
{
    const struct moved *m = s->c->data;
    STEP();
    if (s->initiator) {
        start(s, m->call, m->length);
        ptl_event_t e;
        OK(PtlEQWait(s->mdeq, &e));
        CHECK(e.ni_fail_type == PTL_NI_DROPPED || e.ni_fail_type == PTL_NI_UNDELIVERABLE);
    } else {
        rule_nudge(s, 20);
        OK(PtlNIFini(s->ni));
        s->closed = true;
    }
}

GENERATE(wait_cases)
{
    setenv("PINWHEEL_FLOWCTRL_MS", "60000", 1); /* for all processes */
    static const struct {
        const char *name, *rule;
        void (*body)(struct scene *s);
        bool one, alone;
    } deeds[] = {
        {"entry", "3.7: a message that matches nothing waits for an entry", wait_for_entry, false,
         false},
        {"disabled", "3.7: a message that waits is refused when the program disables the index",
         disabled_meanwhile, false, false},
        {"closed", "3.6: a message that waits when the interface is closed is dropped",
         closed_meanwhile, false, true},
        {"events", "3.7: messages wait while a queue is full; none is lost or out of order",
         wait_for_events, true, false},
        {"enable", "3.7: messages for an index that flow control closed wait for PtlPTEnable",
         wait_for_enable, true, false},
        {"freed", "3.7: a message that waits when its index is freed is dropped", freed_meanwhile,
         true, false},
    };
    for (size_t d = 0; d < sizeof(deeds) / sizeof(deeds[0]); d++) {
        for (int i = 0; i < (deeds[d].one ? 1 : MOVES); i++) {
            bool kinds_differ = !deeds[d].alone;
            suite_add_each((struct suite_case){.rule = deeds[d].rule,
                                               .body = deeds[d].body,
                                               .data = &moves[i],
                                               .pt_options = PTL_PT_FLOWCTRL,
                                               .event_count = EVENTS,
                                               .alone = deeds[d].alone},
                           kinds_differ ? ALL_KINDS
                           : i % 2      ? MP
                                        : NL,
                           PAIR, "%s.%s", deeds[d].name, deeds[d].one ? "put" : moves[i].name);
        }
    }
}
