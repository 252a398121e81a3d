/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.7: the portal table. */
#include "rule_kit.h"

/* Opens an interface whose portal table is as small as it can be, nothing allocated. */
static void open_small(struct scene *s)
{
    ptl_ni_limits_t d = rule_some_limits();
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, &d, &s->limits, &s->ni));
    CHECK_EQ(s->limits.max_pt_index, 63);
    s->to = s->from = rule_self_id(s);
}

CASE(pt_any, ALL_KINDS, BARE,
     "3.7.1: PTL_PT_ANY gives 0 first, then further indexes until all are taken: PTL_PT_FULL")
{
    open_small(s);
    bool seen[64] = {false};
    ptl_pt_index_t index = 1234;
    for (int i = 0; i < 64; i++) {
        OK(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
        CHECK(i != 0 || index == 0);
        CHECK(index < 64 && !seen[index]);
        seen[index] = true;
    }
    CODE(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_FULL);
    OK(PtlPTFree(s->ni, 17));
    OK(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &index));
    CHECK_EQ(index, 17);
}

CASE(pt_requested, ALL_KINDS, BARE,
     "3.7.1: an index that is asked for is given if it is free, the last one too, else "
     "PTL_PT_IN_USE; one above the limit is an error")
{
    static const ptl_pt_index_t wanted[] = {2, 4, 8, 9, 12, 13, 14, 15, 16, 63};
    open_small(s);
    for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        ptl_pt_index_t index = PTL_PT_ANY;
        OK(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, wanted[i], &index));
        CHECK_EQ(index, wanted[i]);
        CODE(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, wanted[i], &index), PTL_PT_IN_USE);
    }
    ptl_pt_index_t index;
    INVALID(PtlPTAlloc(s->ni, 0, PTL_EQ_NONE, 64, &index));
}

CASE(pt_free, ALL_KINDS, SELF,
     "3.7.2: an index with entries cannot be freed (PTL_PT_IN_USE); without, it can, and is new")
{
    ptl_pt_index_t index = suite_pt(s, 0, s->eq, PTL_PT_ANY), again;
    for (int list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t entry;
        OK(suite_append_code(s, index, (ptl_list_t)list, &me, NULL, &entry));
        CODE(PtlPTFree(s->ni, index), PTL_PT_IN_USE);
        suite_unlink(s, entry);
    }
    OK(PtlPTFree(s->ni, index));
    INVALID(PtlPTFree(s->ni, index));
    INVALID(PtlPTEnable(s->ni, index));
    INVALID(PtlPTDisable(s->ni, index));
    OK(PtlPTAlloc(s->ni, 0, s->eq, index, &again));
    CHECK_EQ(again, index);
}

CASE(pt_free_headers, ALL_KINDS, SELF, "3.7.2: freeing an index forgets its unexpected headers")
{
    static char memory[8];
    ptl_pt_index_t index = suite_pt(s, 0, s->eq, PTL_PT_ANY);
    ptl_me_t me = suite_entry(s, memory, 8,
                              PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_UNLINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_OVERFLOW_LIST, &me, NULL, &entry));
    ptl_handle_md_t md = rule_md(s, memory, 8);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
    EXPECT(s->mdeq, PTL_EVENT_ACK);
    EXPECT(s->eq, PTL_EVENT_PUT, .pt_index = IS(index));
    OK(PtlPTFree(s->ni, index));
    suite_pt(s, 0, s->eq, index);
    me.options = PTL_ME_OP_PUT;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    EXPECT(s->eq, PTL_EVENT_LINK);
    NO_EVENT(s->eq);
}

CASE(
    pt_unallocated, ALL_KINDS, SELF | PAIR,
    "3.7: a message for an index that is not allocated, or above the limit, is dropped and counted")
{
    int before = suite_status(s, PTL_SR_DROP_COUNT);
    STEP();
    if (s->initiator) {
        static char data[20000];
        ptl_handle_md_t md = rule_md(s, data, sizeof(data));
        ptl_pt_index_t bad[] = {61, 60000};
        for (int i = 0; i < 2; i++) {
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, bad[i], 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED, .mlength = IS(0));
            OK(PtlPut(md, 0, sizeof(data), PTL_ACK_REQ, s->to, bad[i], 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED, .mlength = IS(0));
            OK(PtlGet(md, 0, 8, s->to, bad[i], 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_DROPPED, .mlength = IS(0));
        }
    }
    STEP();
    if (s->target) {
        EXPECT_STATUS(PTL_SR_DROP_COUNT, before + 6);
        NO_EVENT(s->eq);
    }
}

CASE(pt_disable, ALL_KINDS, SELF | PAIR,
     "3.7.3: a disabled index refuses messages with PTL_NI_PT_DISABLED and counts them, posts no "
     "event, and keeps its entries; others may be appended; PtlPTEnable goes on")
{
    static char memory[4];
    int before = suite_status(s, PTL_SR_DROP_COUNT);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, memory, 4, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (void *)1);
        OK(PtlPTDisable(s->ni, SUITE_PT));
        suite_target(s, PTL_PRIORITY_LIST, memory, 4, PTL_ME_OP_PUT | PTL_ME_OP_GET, (void *)2);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, memory, 4);
    if (s->initiator) {
        rule_put(s, md, 4, 0, PTL_NI_PT_DISABLED);
        OK(PtlGet(md, 0, 4, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_PT_DISABLED, .mlength = IS(0));
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
        EXPECT_STATUS(PTL_SR_DROP_COUNT, before + 2);
        OK(PtlPTEnable(s->ni, SUITE_PT));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 4, 0, PTL_NI_OK);
        rule_put(s, md, 4, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2));
    }
}

CASE(pt_disable_twice, ALL_KINDS, SELF,
     "3.7.3: disabling a disabled index and enabling an enabled one change nothing")
{
    OK(PtlPTEnable(s->ni, SUITE_PT));
    OK(PtlPTDisable(s->ni, SUITE_PT));
    OK(PtlPTDisable(s->ni, SUITE_PT));
    OK(PtlPTEnable(s->ni, SUITE_PT));
    suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    rule_put(s, rule_md(s, NULL, 0), 0, 0, PTL_NI_OK);
    EXPECT(s->eq, PTL_EVENT_PUT);
}

CASE(pt_disable_replies, ALL_KINDS, SELF | PAIR,
     "3.7.3: replies and acks of a process's own operations arrive while its index is disabled")
{
    static char here[8] = "", there[8] = "written";
    ptl_pt_index_t other = suite_pt(s, 0, s->eq, 30);
    ptl_me_t me =
        suite_entry(s, there, 8, PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, other, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, here, 8);
        OK(PtlPTDisable(s->ni, SUITE_PT));
        OK(PtlGet(md, 0, 8, s->to, other, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
        CHECK_EQ(here[0], 'w');
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, other, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
    }
}

CASE(pt_disable_waits, ALL_KINDS, PAIR,
     "3.7.3: behind PtlPTDisable no delivery is under way: the memory of entries rests")
{
    enum { LENGTH = 4 << 20 };
    static unsigned char memory[LENGTH], copy[LENGTH];
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, memory, LENGTH);
        STEP();
        for (int i = 1; i <= 3; i++) {
            for (size_t at = 0; at < LENGTH; at += 64) {
                memory[at] = (unsigned char)i;
            }
            OK(PtlPut(md, 0, LENGTH, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            ptl_event_t event;
            OK(PtlEQWait(s->mdeq, &event));
            CHECK(event.type == PTL_EVENT_ACK);
            CHECK(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_PT_DISABLED);
        }
    } else {
        suite_target(s, PTL_PRIORITY_LIST, memory, LENGTH, PTL_ME_OP_PUT, NULL);
        STEP();
        for (int i = 0; i < 4; i++) {
            rule_nudge(s, 2);
            OK(PtlPTDisable(s->ni, SUITE_PT));
            for (size_t at = 0; at < LENGTH; at++) {
                copy[at] = memory[at];
            }
            rule_nudge(s, 2);
            for (size_t at = 0; at < LENGTH; at++) {
                CHECK_EQ(memory[at], copy[at]);
            }
            OK(PtlPTEnable(s->ni, SUITE_PT));
        }
    }
}

CASE(pt_alloc_disabled, ALL_KINDS, SELF | PAIR,
     "3.7.1: with PTL_PT_ALLOC_DISABLED an index refuses messages until PtlPTEnable")
{
    ptl_pt_index_t index = suite_pt(s, PTL_PT_ALLOC_DISABLED, s->eq, 31);
    ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    ptl_handle_md_t md = rule_md(s, NULL, 0);
    STEP();
    if (s->initiator) {
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_PT_DISABLED);
    }
    STEP();
    OK(PtlPTEnable(s->ni, index));
    STEP();
    if (s->initiator) {
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .pt_index = IS(index));
    }
}

CASE(pt_promises, ALL_KINDS, SELF | PAIR,
     "3.7.1: the options that promise or permit something are accepted, and messages arrive")
{
    unsigned all = PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED;
    ptl_pt_index_t index = suite_pt(s, all, s->eq, 32);
    ptl_me_t me =
        suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        OK(PtlPut(rule_md(s, NULL, 0), 0, 0, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .pt_index = IS(index));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
    }
}

CASE(pt_no_queue, ALL_KINDS, SELF | PAIR,
     "3.7.1: without an event queue messages are delivered all the same")
{
    static char memory[8];
    memory[0] = 0;
    ptl_pt_index_t index = suite_pt(s, 0, PTL_EQ_NONE, 33);
    ptl_me_t me = suite_entry(s, memory, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        static char data[8] = "no queue";
        OK(PtlPut(rule_md(s, data, 8), 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
    }
    if (s->target) {
        EXPECT_CT(s->ct, 1, 0);
        CHECK_EQ(memory[0], 'n');
    }
}

CASE(pt_flowctrl_needs_queue, ALL_KINDS, SELF,
     "3.7.1: flow control without an event queue is refused with PTL_PT_EQ_NEEDED")
{
    ptl_pt_index_t index;
    CODE(PtlPTAlloc(s->ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &index), PTL_PT_EQ_NEEDED);
    suite_pt(s, PTL_PT_FLOWCTRL, s->eq, PTL_PT_ANY);
}

CASE(pt_shared_queue, ALL_KINDS, SELF | PAIR,
     "3.7.1: several indexes may share a queue; pt_index tells whose event it is")
{
    ptl_pt_index_t index[3];
    for (ptl_pt_index_t i = 0; i < 3; i++) {
        index[i] = suite_pt(s, 0, s->eq, 40 + i);
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
        ptl_handle_me_t entry;
        OK(suite_append_code(s, index[i], PTL_PRIORITY_LIST, &me, NULL, &entry));
        EXPECT(s->eq, PTL_EVENT_LINK, .pt_index = IS(index[i]));
    }
    STEP();
    for (int i = 2; i >= 0; i--) {
        if (s->initiator) {
            OK(PtlPut(rule_md(s, NULL, 0), 0, 0, PTL_ACK_REQ, s->to, index[i], 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .pt_index = IS(index[i]));
        }
    }
}
