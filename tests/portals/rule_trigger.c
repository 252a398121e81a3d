/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.16: triggered operations. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];

static ptl_ct_event_t value_of(ptl_size_t success, ptl_size_t failure)
{
    return (ptl_ct_event_t){success, failure};
}

static void inc(ptl_handle_ct_t ct)
{
    OK(PtlCTInc(ct, value_of(1, 0)));
}

static void open_target(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
}

static void triggered_put(struct scene *s, ptl_handle_md_t md, ptl_hdr_data_t hdr,
                          ptl_handle_ct_t ct, ptl_size_t threshold)
{
    OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, hdr, ct, threshold));
}

CASE(trigger_at_threshold, ALL_KINDS, SELF | PAIR,
     "3.16: a triggered operation happens when the counter reaches its threshold, not before, and "
     "once")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, SIZE, 0);
        triggered_put(s, md, 5, s->ct, 3);
        for (int i = 0; i < 2; i++) {
            inc(s->ct);
            NO_EVENT(s->mdeq);
        }
        inc(s->ct);
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        inc(s->ct);
        OK(PtlCTSet(s->ct, value_of(0, 0)));
        OK(PtlCTSet(s->ct, value_of(3, 0)));
        NO_EVENT(s->mdeq);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(5));
        NO_EVENT(s->eq);
    }
}

CASE(trigger_sum, ALL_KINDS, SELF,
     "3.16: successes and failures add up to the threshold; PtlCTSet fires as PtlCTInc does")
{
    ptl_handle_ct_t done = suite_ct(s);
    OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 4));
    OK(PtlCTInc(s->ct, value_of(2, 0)));
    OK(PtlCTInc(s->ct, value_of(0, 1)));
    EXPECT_CT(done, 0, 0);
    OK(PtlCTInc(s->ct, value_of(0, 1)));
    EXPECT_CT(done, 1, 0);
    OK(PtlTriggeredCTInc(done, value_of(0, 10), s->ct, 9));
    OK(PtlCTSet(s->ct, value_of(0, 8)));
    EXPECT_CT(done, 1, 0);
    OK(PtlCTSet(s->ct, value_of(3, 6)));
    EXPECT_CT(done, 1, 10);
}

CASE(trigger_reached, ALL_KINDS, SELF | PAIR,
     "3.16: if the threshold is reached already, or is 0, the operation happens at once")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, SIZE, 0);
        triggered_put(s, md, 1, s->ct, 0);
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        OK(PtlCTSet(s->ct, value_of(7, 0)));
        for (ptl_size_t threshold = 0; threshold <= 7; threshold++) {
            triggered_put(s, md, 2 + threshold, s->ct, threshold);
            EXPECT(s->mdeq, PTL_EVENT_SEND);
        }
    }
    for (int i = 1; i < 10 && s->target; i++) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
    }
}

CASE(trigger_reads_late, ALL_KINDS, SELF | PAIR,
     "3.16: the buffer is read when the operation happens, with PTL_MD_VOLATILE too")
{
    open_target(s);
    for (int v = 0; v < 2; v++) {
        if (s->initiator) {
            ptl_handle_md_t md =
                suite_md(s, from, SIZE, PTL_MD_EVENT_SEND_DISABLE | (v ? PTL_MD_VOLATILE : 0));
            OK(PtlCTSet(s->ct, value_of(0, 0)));
            suite_fill(from, 100, 1);
            OK(PtlTriggeredPut(md, 0, 100, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, s->ct, 1));
            suite_fill(from, 100, 2);
            inc(s->ct);
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        STEP();
        if (s->target) {
            CHECK_FILL(to, 100, 2);
            memset(to, 0, SIZE);
        }
        STEP();
    }
}

CASE(trigger_order, ALL_KINDS, SELF | PAIR,
     "3.16: of one counter, operations with the same threshold happen in the order of the calls, "
     "those with lower thresholds before")
{
    enum { EACH = 8 };
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md_with(s, from, SIZE, 0, PTL_EQ_NONE, PTL_CT_NONE);
        for (ptl_hdr_data_t i = 0; i < EACH; i++) { /* in the array of calls: 30.., 10.., 20.. */
            triggered_put(s, md, 30 + i, s->ct, 3);
            triggered_put(s, md, 10 + i, s->ct, 1);
            triggered_put(s, md, 20 + i, s->ct, 2);
        }
        OK(PtlCTInc(s->ct, value_of(3, 0)));
    }
    for (int k = 10; k <= 30 && s->target; k += 10) {
        for (int i = 0; i < EACH; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(k + i));
        }
    }
}

CASE(trigger_each_call, ALL_KINDS, SELF | PAIR,
     "3.16: every data movement has a triggered form, which does what the plain one does")
{
    static uint64_t word[2], cell;
    cell = 100;
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, &cell, 8,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        static const uint64_t then[CALL_COUNT] = {5, 5, 10, 15, 5},
                              got[CALL_COUNT] = {0, 5, 0, 10, 15};
        ptl_handle_md_t check = rule_md(s, &word[1], 8);
        for (int call = 0; call < CALL_COUNT; call++) {
            uint64_t operand = 15;
            struct suite_move m = suite_move_to(s, (enum suite_call)call);
            m.md = rule_md(s, &word[call == CALL_GET ? 1 : 0], 8);
            m.get_md = rule_md(s, &word[1], 8);
            m.length = 8;
            m.ack = PTL_ACK_REQ;
            m.operand = &operand;
            m.op = call == CALL_SWAP ? PTL_CSWAP : PTL_SUM;
            m.type = PTL_UINT64_T;
            m.triggered = true;
            m.trigger = s->ct;
            m.threshold = (ptl_size_t)call + 1;
            word[0] = word[1] = 0;
            OK(suite_move(&m));
            NO_EVENT(s->mdeq);
            operand = 0; /* of a swap, the operand is read by the call */
            word[0] = 5;
            inc(s->ct);
            EXPECT(s->mdeq,
                   call == CALL_PUT || call == CALL_ATOMIC ? PTL_EVENT_ACK : PTL_EVENT_REPLY,
                   .mlength = IS(8));
            CHECK_EQ(word[1], got[call]);
            OK(PtlGet(check, 0, 8, s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(word[1], then[call]);
        }
    }
}

CASE(trigger_set, ALL_KINDS, SELF,
     "3.16: a triggered PtlCTSet gives its counter the value; if that is the counter that "
     "triggered, "
     "it may be armed again")
{
    ptl_handle_ct_t other = suite_ct(s);
    OK(PtlTriggeredCTSet(other, value_of(40, 2), s->ct, 1));
    inc(s->ct);
    EXPECT_CT(other, 40, 2);
    for (int round = 0; round < 5; round++) {
        OK(PtlCTSet(s->ct, value_of(0, 0)));
        OK(PtlTriggeredCTInc(other, value_of(1, 0), s->ct, 2));
        OK(PtlTriggeredCTSet(s->ct, value_of(0, 0), s->ct, 2));
        inc(s->ct);
        inc(s->ct);
        EXPECT_CT(s->ct, 0, 0);
        EXPECT_CT(other, 41 + (ptl_size_t)round, 2);
    }
}

CASE(trigger_chain, ALL_KINDS, SELF,
     "3.16: one operation may trigger the next, in a chain of any length")
{
    enum { LENGTH = 2000 };
    static ptl_handle_ct_t ct[LENGTH + 1];
    for (int i = 0; i <= LENGTH; i++) {
        ct[i] = suite_ct(s);
    }
    for (int i = LENGTH - 1; i >= 0; i--) {
        OK(PtlTriggeredCTInc(ct[i + 1], value_of(1, 0), ct[i], 1));
    }
    inc(ct[0]);
    EXPECT_CT(ct[LENGTH], 1, 0);
    for (int i = 0; i < LENGTH; i += 137) {
        EXPECT_CT(ct[i], 1, 0);
    }
}

CASE(trigger_cancel, ALL_KINDS, SELF,
     "3.14: PtlCTCancelTriggered forgets what waits for the counter, without other effect; what "
     "waits for another one stays")
{
    ptl_handle_ct_t other = suite_ct(s), done = suite_ct(s);
    inc(s->ct);
    OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 2));
    OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 3));
    OK(PtlTriggeredCTInc(done, value_of(10, 0), other, 1));
    OK(PtlCTCancelTriggered(s->ct));
    EXPECT_CT(s->ct, 1, 0);
    OK(PtlCTInc(s->ct, value_of(5, 0)));
    EXPECT_CT(done, 0, 0);
    inc(other);
    EXPECT_CT(done, 10, 0);
    OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 7)); /* it can trigger again */
    inc(s->ct);
    EXPECT_CT(done, 11, 0);
}

CASE(trigger_free, ALL_KINDS, SELF | PAIR,
     "3.14: PtlCTFree deletes what waits for the counter; it never happens, its MD is free")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_ct_t ct;
        OK(PtlCTAlloc(s->ni, &ct));
        ptl_handle_md_t md = suite_md(s, from, SIZE, 0);
        triggered_put(s, md, 1, ct, 1);
        OK(PtlCTFree(ct));
        OK(PtlMDRelease(md));
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

CASE(trigger_of_freed, ALL_KINDS, SELF,
     "3.16: a triggered count of a counter that was freed meanwhile does nothing")
{
    ptl_handle_ct_t gone;
    OK(PtlCTAlloc(s->ni, &gone));
    OK(PtlTriggeredCTInc(gone, value_of(1, 0), s->ct, 1));
    OK(PtlTriggeredCTSet(gone, value_of(9, 0), s->ct, 1));
    OK(PtlCTFree(gone));
    ptl_handle_ct_t next = suite_ct(s);
    inc(s->ct);
    EXPECT_CT(next, 0, 0);
}

static ptl_ni_limits_t few; /* triggered operations */

static void limited(struct scene *s)
{
    CHECK_EQ(s->limits.max_triggered_ops, 4);
    ptl_handle_ct_t done = suite_ct(s);
    for (int round = 0; round < 3; round++) {
        OK(PtlCTSet(s->ct, value_of(0, 0)));
        for (ptl_size_t i = 1; i <= 4; i++) {
            OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, i));
        }
        CODE(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 5), PTL_NO_SPACE);
        inc(s->ct);
        OK(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 9));
        CODE(PtlTriggeredCTInc(done, value_of(1, 0), s->ct, 5), PTL_NO_SPACE);
        EXPECT_CT(done, (ptl_size_t)round + 1, 0);
        OK(PtlCTCancelTriggered(s->ct));
    }
}

GENERATE(register_limited)
{
    few = rule_some_limits();
    few.max_triggered_ops = 4;
    suite_add_each((struct suite_case){.rule =
                                           "3.16: max_triggered_ops may wait, then PTL_NO_SPACE; "
                                           "each that happens or is cancelled makes room",
                                       .body = limited,
                                       .desired = &few},
                   ALL_KINDS, SELF, "trigger_limit");
}

CASE(trigger_by_message, ALL_KINDS, SELF | PAIR,
     "3.16: a message that is counted triggers, while the program makes no call: the answer comes "
     "back to the sender")
{
    ptl_pt_index_t answers = suite_pt(s, 0, s->mdeq, 12);
    ptl_me_t me = suite_entry(s, from, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, answers, PTL_PRIORITY_LIST, &me, NULL, &entry));
    enum { ROUNDS = 20 };
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
        ptl_handle_md_t md = suite_md_with(s, to, SIZE, 0, PTL_EQ_NONE, PTL_CT_NONE);
        for (ptl_size_t i = 1; i <= ROUNDS; i++) {
            OK(PtlTriggeredPut(md, 0, 64, PTL_NO_ACK_REQ, s->from, answers, 0, 64, NULL, i, s->ct,
                               i));
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md_with(s, from, SIZE, 0, PTL_EQ_NONE, PTL_CT_NONE);
        for (unsigned i = 1; i <= ROUNDS; i++) {
            suite_fill(from, 64, i);
            OK(PtlPut(md, 0, 64, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_PUT, .hdr_data = IS(i));
            CHECK_FILL(from + 64, 64, i);
        }
        suite_show(s, 1, 1);
    } else {
        while (suite_look(s, 0, 1) != 1) { /* no call of the library */
            suite_sleep_ms(1);
        }
    }
    STEP();
    suite_show(s, 1, 0);
}

CASE(trigger_by_ack, ALL_KINDS, SELF | PAIR,
     "3.16: acks, replies and sends that are counted trigger, failures as well")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_ct_t done = suite_ct(s);
        for (ptl_size_t i = 1; i <= 4; i++) {
            OK(PtlTriggeredCTInc(done, value_of(1, 0), s->mdct, i));
        }
        ptl_handle_md_t md =
            suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
        OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(done, 1, 0);
        md = suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, s->mdct);
        OK(PtlGet(md, 0, SIZE, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT_CT(done, 2, 0);
        OK(PtlGet(md, 0, 8, s->to, 60, 0, 0, NULL));
        EXPECT_CT(done, 3, 0);
        md = suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, s->mdct);
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(done, 4, 0);
        EXPECT_CT(s->mdct, 3, 1);
    }
}

CASE(
    trigger_append, MATCHING_KINDS, SELF | PAIR,
    "3.16, an extension: PtlTriggeredMEAppend gives a handle at once; messages find the entry from "
    "the threshold on, PtlTriggeredMEUnlink takes it away")
{
    ptl_handle_me_t entry = 0;
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        OK(PtlTriggeredMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, (void *)3, &entry, s->ct,
                                1));
        OK(PtlTriggeredMEUnlink(entry, s->ct, 2));
        CODE(PtlMEUnlink(entry), PTL_IN_USE); /* not appended yet */
        NO_EVENT(s->eq);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, from, 8);
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        inc(s->ct);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(3));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(3));
        inc(s->ct);
        NO_EVENT(s->eq);
        INVALID(PtlMEUnlink(entry));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
}

CASE(trigger_append_claims, MATCHING_KINDS, SELF | PAIR,
     "3.16, an extension: an entry appended by a counter takes unexpected messages then")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                     NULL);
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        ptl_handle_me_t entry;
        OK(PtlTriggeredMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, (void *)3, &entry, s->ct,
                                1));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 4, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
        inc(s->ct);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(3), .hdr_data = IS(4));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(3));
    }
}

CASE(trigger_append_fails, MATCHING_KINDS, SELF,
     "3.16, an extension: an append that cannot be done at its time posts LINK with PTL_NI_DROPPED")
{
    ptl_pt_index_t index;
    OK(PtlPTAlloc(s->ni, 0, s->eq, PTL_PT_ANY, &index));
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
    ptl_handle_me_t entry;
    OK(PtlTriggeredMEAppend(s->ni, index, &me, PTL_PRIORITY_LIST, (void *)3, &entry, s->ct, 1));
    int code = PtlPTFree(s->ni, index);
    CHECK(code == PTL_OK || code == PTL_PT_IN_USE);
    inc(s->ct);
    EXPECT(s->eq, PTL_EVENT_LINK, .fail = code == PTL_OK ? PTL_NI_DROPPED : PTL_NI_OK,
           .user_ptr = IS(3));
}

/* A barrier that only counters and triggered puts make: each member tells all others. */
static void barrier_of_counters(struct scene *s)
{
    enum { ROUNDS = 8 };
    ptl_handle_md_t md = suite_md_with(s, NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
    suite_target(s, PTL_PRIORITY_LIST, NULL, 0,
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
    ptl_size_t others = (ptl_size_t)crowd.size - 1;
    crowd_step(s);
    /* all rounds are armed ahead; a round ends when everybody has told its end of the one before */
    for (ptl_size_t round = 1; round < ROUNDS; round++) {
        for (int r = 0; r < crowd.size; r++) {
            if (r != crowd.rank) {
                OK(PtlTriggeredPut(md, 0, 0, PTL_NO_ACK_REQ, crowd.id[r], SUITE_PT, 0, 0, NULL, 0,
                                   s->ct, round * others));
            }
        }
    }
    suite_sleep_ms(5 * crowd.rank);
    for (int r = 0; r < crowd.size; r++) {
        if (r != crowd.rank) {
            OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, crowd.id[r], SUITE_PT, 0, 0, NULL, 0));
        }
    }
    EXPECT_CT(s->ct, ROUNDS * others, 0);
}

CASE(trigger_crowd, ALL_KINDS, BARE,
     "3.16: counters of several processes that trigger puts to each other go on without the "
     "programs")
{
    crowd_run(s, 4, 0, 0, NULL, barrier_of_counters);
}
