/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.7, 3.13: flow control, step by step; rule_flood.c has it under pressure. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];

#define FLOW_CASE(id_, settings_, events_, rule_)                                                  \
    static void id_(struct scene *s);                                                              \
    GENERATE(register_##id_)                                                                       \
    {                                                                                              \
        suite_add_each((struct suite_case){.rule = (rule_),                                        \
                                           .body = id_,                                            \
                                           .pt_options = PTL_PT_FLOWCTRL,                          \
                                           .event_count = (events_)},                              \
                       ALL_KINDS, settings_, "%s", #id_);                                          \
    }                                                                                              \
    static void id_(struct scene *s)

FLOW_CASE(
    flow_no_match, SELF | PAIR, 0,
    "3.7: with flow control a message that matches nothing is refused with PT_DISABLED, as are "
    "those behind it; one PT_DISABLED event tells; PtlPTEnable goes on")
{
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    for (int round = 1; round <= 2; round++) {
        STEP();
        if (s->initiator) {
            rule_put(s, md, 8, 0, PTL_NI_PT_DISABLED);
            rule_put(s, md, SIZE, 0, PTL_NI_PT_DISABLED);
            OK(PtlGet(md, 0, 8, s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_PT_DISABLED);
        }
        STEP();
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED,
                   .pt_index = IS(SUITE_PT));
            NO_EVENT(s->eq);
            EXPECT_STATUS(PTL_SR_DROP_COUNT, drops + 3 * round);
            suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                         PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, NULL);
            NO_EVENT(s->eq);
        }
        STEP();
        if (s->initiator) {
            rule_put(s, md, 8, 0, PTL_NI_PT_DISABLED);
        }
        STEP();
        if (s->target) {
            drops++;
            NO_EVENT(s->eq);
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
        STEP();
        if (s->initiator) {
            rule_put(s, md, 8, 0, PTL_NI_OK);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT);
        }
    }
}

FLOW_CASE(
    flow_again_without_entry, SELF | PAIR, 0,
    "3.7: enabled again with nothing to match, the index is disabled by the next message, with "
    "an event each time")
{
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    for (int i = 0; i < 5; i++) {
        STEP();
        if (s->initiator) {
            rule_put(s, md, 8, 0, PTL_NI_PT_DISABLED);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
    }
}

/* A put of `length` bytes, at once or by a counter; how it ended. */
static ptl_ni_fail_t put_and_hear(struct scene *s, ptl_handle_md_t md, ptl_size_t length,
                                  ptl_hdr_data_t hdr_data, ptl_handle_ct_t trigger, ptl_size_t at)
{
    if (at == 0) {
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, hdr_data));
    } else {
        OK(PtlTriggeredPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, hdr_data,
                           trigger, at));
        OK(PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
    }
    ptl_event_t e;
    OK(PtlEQWait(s->mdeq, &e));
    CHECK(e.ni_fail_type == PTL_NI_OK || e.ni_fail_type == PTL_NI_PT_DISABLED);
    return e.ni_fail_type;
}

/* Three times more puts than the queue of the index, of `events`, has room for. */
static void fill_queue(struct scene *s, int events, bool triggered)
{
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    ptl_handle_ct_t trigger = suite_ct(s);
    int told = 0, good = 0, puts = 0;
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    for (int round = 0; round < 3; round++) {
        if (s->initiator) {
            for (int i = 0; i < 20; i++, puts++) {
                good += put_and_hear(s, md, i % 4 == 3 ? SIZE : 8, (ptl_hdr_data_t)good, trigger,
                                     triggered ? (ptl_size_t)puts + 1 : 0) == PTL_NI_OK;
            }
            suite_show(s, 0, (uint64_t)good);
            CHECK_EQ(good, (round + 1) * events);
        }
        STEP();
        if (s->target) {
            for (int sent = (int)suite_look(s, 0, 0); told < sent; told++) {
                EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(told));
            }
            EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
            NO_EVENT(s->eq);
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
        STEP();
    }
}

FLOW_CASE(
    flow_queue_full, SELF | PAIR, 8,
    "3.7: a message that would overfill the event queue is refused and nothing in the queue is "
    "lost; behind PT_DISABLED and PtlPTEnable it goes on")
{
    fill_queue(s, 8, false);
}

FLOW_CASE(flow_queue_full_triggered, SELF | PAIR, 8,
          "3.7: so is a triggered message that would overfill the event queue")
{
    fill_queue(s, 8, true);
}

FLOW_CASE(flow_quiet_messages, SELF | PAIR, 4,
          "3.7: messages that post no events do not fill the queue and are not refused")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (int i = 0; i < 50; i++) {
            rule_put(s, md, 8, 0, PTL_NI_OK);
        }
    }
    if (s->target) {
        EXPECT_CT(s->ct, 50, 0);
        NO_EVENT(s->eq);
    }
}

FLOW_CASE(flow_use_once, SELF | PAIR, 8,
          "3.7: use-once entries post two events a message; the queue of a flow-controlled index "
          "loses none of them")
{
    if (s->target) {
        for (long i = 0; i < 20; i++) {
            suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                         (void *)i);
        }
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    int good = 0, told = 0;
    for (int round = 0; round < 6; round++) {
        if (s->initiator) {
            for (int i = 0; i < 10 && good < 20; i++) {
                OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
                ptl_event_t e;
                OK(PtlEQWait(s->mdeq, &e));
                good += e.ni_fail_type == PTL_NI_OK;
            }
            suite_show(s, 0, (uint64_t)good);
        }
        STEP();
        if (s->target) {
            for (int sent = (int)suite_look(s, 0, 0); told < sent; told++) {
                EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(told));
                EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(told));
            }
            ptl_event_t e;
            int code = PtlEQGet(s->eq, &e);
            CHECK(code == PTL_EQ_EMPTY || (code == PTL_OK && e.type == PTL_EVENT_PT_DISABLED));
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
        STEP();
    }
    CHECK(!s->target || told == 20);
}

FLOW_CASE(flow_event_masked, SELF | PAIR, 4,
          "3.12: with EVENT_FLOWCTRL_DISABLE an entry whose message finds no room lets no "
          "PT_DISABLED event be posted; the index is disabled all the same")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_FLOWCTRL_DISABLE,
                     NULL);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    if (s->initiator) {
        for (int i = 0; i < 6; i++) {
            rule_put(s, md, 8, 0, i < 4 ? PTL_NI_OK : PTL_NI_PT_DISABLED);
        }
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < 4; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT);
        }
        NO_EVENT(s->eq);
        OK(PtlPTEnable(s->ni, SUITE_PT));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_OK);
    }
}

FLOW_CASE(flow_other_index, SELF | PAIR, 0,
          "3.7: flow control closes the one index; others, and other queues, go on")
{
    ptl_pt_index_t open = suite_pt(s, PTL_PT_FLOWCTRL, s->eq, 25);
    ptl_pt_index_t plain = suite_pt(s, 0, s->eq, 26);
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, open, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_PT_DISABLED);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, open, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, plain, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, plain, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .pt_index = IS(SUITE_PT), .fail = PTL_NI_PT_DISABLED);
        EXPECT(s->eq, PTL_EVENT_PUT, .pt_index = IS(open));
    }
    STEP();
    NO_EVENT(s->eq);
}

FLOW_CASE(
    flow_program_disables, SELF | PAIR, 0,
    "3.7.3: PtlPTDisable posts no PT_DISABLED event on a flow-controlled index either, nor do "
    "messages that come then")
{
    if (s->target) {
        OK(PtlPTDisable(s->ni, SUITE_PT));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_PT_DISABLED);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

FLOW_CASE(flow_acks, SELF | PAIR, 0,
          "3.15: a refused message is told in every form of ack: event, count, and of gets and "
          "fetches the reply; none counts as a success")
{
    if (s->initiator) {
        static uint64_t word[2];
        ptl_handle_md_t md = suite_md(s, word, 16,
                                      PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK |
                                          PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)1, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_PT_DISABLED, .user_ptr = IS(1),
               .mlength = IS(0));
        OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(s->mdct, 0, 2);
        OK(PtlGet(md, 0, 8, s->to, SUITE_PT, 0, 0, (void *)2));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_PT_DISABLED, .user_ptr = IS(2));
        OK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)3, 0, PTL_SUM,
                     PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_PT_DISABLED, .user_ptr = IS(3));
        OK(PtlFetchAtomic(md, 8, md, 0, 8, s->to, SUITE_PT, 0, 0, (void *)4, 0, PTL_SUM,
                          PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_PT_DISABLED, .user_ptr = IS(4));
        EXPECT_CT(s->mdct, 0, 5);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
    }
}

FLOW_CASE(flow_after_delivery, PAIR, 0,
          "3.7: PT_DISABLED comes behind the events of the messages that were under way")
{
    enum { LONG = 4 << 20 };
    static unsigned char source[LONG], sink[LONG];
    memset(source, 1, LONG);
    memset(sink, 0, LONG);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, sink, LONG,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, NULL);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, source, LONG);
    if (s->initiator) {
        OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    } else {
        /* its own small message finds no entry while the other's long one arrives */
        unsigned char begun = 0;
        while (begun == 0) {
            ptl_ct_event_t ignored;
            OK(PtlCTGet(s->ct, &ignored));
            suite_peek(&begun, sink, 1);
        }
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_PT_DISABLED);
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(LONG));
        EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
        NO_EVENT(s->eq);
    }
}

FLOW_CASE(
    flow_own_events, SELF | PAIR, 4,
    "3.7: a flow-controlled queue loses nothing of what the program itself sets off beyond its "
    "count: LINK, PUT_OVERFLOW, SEND")
{
    enum { COUNT = 100 };
    if (s->target) { /* the messages before are told elsewhere */
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                     NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (int i = 0; i < COUNT; i++) {
            rule_put(s, md, 8, (ptl_match_bits_t)i, PTL_NI_OK);
        }
    }
    STEP();
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        for (long i = 0; i < COUNT; i++) {
            suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)i);
        }
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1000);
        ptl_handle_md_t md = suite_md_with(s, from, 8, 0, s->eq, PTL_CT_NONE);
        for (long i = 0; i < COUNT; i++) { /* to an index that is not there: only SEND */
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, 60, 0, 0, (void *)i, 0));
        }
        for (long i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(i));
        }
        for (long i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1000), .hdr_data = IS(i));
        }
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1000));
        for (long i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_SEND, .user_ptr = IS(i));
        }
        NO_EVENT(s->eq);
    }
}

static ptl_ni_limits_t few; /* unexpected headers */

static void headers_exhausted(struct scene *s)
{
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    for (int round = 0; round < 3; round++) {
        STEP();
        if (s->initiator) {
            for (int i = 0; i < 5; i++) {
                rule_put(s, md, 8, (ptl_match_bits_t)i, i < 3 ? PTL_NI_OK : PTL_NI_PT_DISABLED);
            }
        }
        STEP();
        if (s->target) {
            for (int i = 0; i < 3; i++) {
                EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
            }
            EXPECT(s->eq, PTL_EVENT_PT_DISABLED, .fail = PTL_NI_PT_DISABLED);
            NO_EVENT(s->eq);
            drops += 2;
            EXPECT_STATUS(PTL_SR_DROP_COUNT, drops);
            for (int i = 0; i < 3; i++) {
                suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                             PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, NULL);
                EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(i));
            }
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
    }
}

GENERATE(register_headers_exhausted)
{
    few = rule_some_limits();
    few.max_unexpected_headers = 3;
    suite_add_each((struct suite_case){.rule = "3.7: a message that finds max_unexpected_headers "
                                               "used up disables a flow-controlled index; taken "
                                               "headers make room, PtlPTEnable goes on",
                                       .body = headers_exhausted,
                                       .desired = &few,
                                       .pt_options = PTL_PT_FLOWCTRL},
                   ALL_KINDS, SELF | PAIR, "flow_headers_exhausted");
}
