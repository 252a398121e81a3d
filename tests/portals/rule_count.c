/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.14: counting events. */
#include "rule_kit.h"

#include <pthread.h>
#include <string.h>

static ptl_ct_event_t value_of(ptl_size_t success, ptl_size_t failure)
{
    return (ptl_ct_event_t){success, failure};
}

CASE(count_set_inc, ALL_KINDS, SELF,
     "3.14: a counter begins at {0, 0}; PtlCTSet gives it any value, PtlCTInc adds to one half; an "
     "increment of both is an error and adds nothing")
{
    ptl_ct_event_t v = value_of(7, 7);
    OK(PtlCTGet(s->ct, &v));
    CHECK(v.success == 0 && v.failure == 0);
    OK(PtlCTInc(s->ct, value_of(3, 0)));
    OK(PtlCTInc(s->ct, value_of(0, 2)));
    OK(PtlCTInc(s->ct, value_of(0, 0)));
    EXPECT_CT(s->ct, 3, 2);
    INVALID(PtlCTInc(s->ct, value_of(1, 1)));
    EXPECT_CT(s->ct, 3, 2);
    OK(PtlCTSet(s->ct, value_of(PTL_SIZE_MAX - 1, 9)));
    EXPECT_CT(s->ct, PTL_SIZE_MAX - 1, 9);
    OK(PtlCTSet(s->ct, value_of(0, 0)));
    EXPECT_CT(s->ct, 0, 0);
}

CASE(count_wait_passed, ALL_KINDS, SELF,
     "3.14: PtlCTWait returns at once, with the value, if the test is passed already, or is 0")
{
    ptl_ct_event_t v;
    OK(PtlCTWait(s->ct, 0, &v));
    CHECK_EQ(v.success, 0);
    OK(PtlCTInc(s->ct, value_of(5, 0)));
    for (ptl_size_t test = 0; test <= 5; test++) {
        OK(PtlCTWait(s->ct, test, &v));
        CHECK(v.success == 5 && v.failure == 0);
    }
}

CASE(count_wait_failure, ALL_KINDS, SELF,
     "3.14: PtlCTWait and PtlCTPoll return, with PTL_OK, as soon as there is a failure; successes "
     "and failures do not add up for the test")
{
    ptl_ct_event_t v;
    unsigned which = 9;
    ptl_size_t test = 100;
    OK(PtlCTInc(s->ct, value_of(0, 1)));
    OK(PtlCTWait(s->ct, 100, &v));
    CHECK(v.success == 0 && v.failure == 1);
    OK(PtlCTPoll(&s->ct, &test, 1, PTL_TIME_FOREVER, &v, &which));
    CHECK(v.failure == 1 && which == 0);
    OK(PtlCTSet(s->ct, value_of(99, 0)));
    CODE(PtlCTPoll(&s->ct, &test, 1, 10, &v, &which), PTL_CT_NONE_REACHED);
}

CASE(count_poll, ALL_KINDS, SELF,
     "3.14: PtlCTPoll tells which of its counters has passed its own test; none within the time "
     "gives PTL_CT_NONE_REACHED")
{
    enum { COUNTERS = 10 };
    ptl_handle_ct_t ct[COUNTERS];
    ptl_size_t test[COUNTERS];
    ptl_ct_event_t v;
    unsigned which = 99;
    for (unsigned i = 0; i < COUNTERS; i++) {
        ct[i] = suite_ct(s);
        test[i] = i + 2;
        OK(PtlCTSet(ct[i], value_of(i + 1, 0)));
    }
    CODE(PtlCTPoll(ct, test, COUNTERS, 0, &v, &which), PTL_CT_NONE_REACHED);
    uint64_t begin = suite_now_ms();
    CODE(PtlCTPoll(ct, test, COUNTERS, 40, &v, &which), PTL_CT_NONE_REACHED);
    CHECK(suite_now_ms() - begin >= 39);
    for (unsigned i = 0; i < COUNTERS; i++) {
        OK(PtlCTInc(ct[i], value_of(1, 0)));
        OK(PtlCTPoll(ct, test, COUNTERS, PTL_TIME_FOREVER, &v, &which));
        CHECK_EQ(which, i);
        CHECK_EQ(v.success, test[i]);
        test[i] = PTL_SIZE_MAX;
    }
}

CASE(count_wait_for_peer, ALL_KINDS, PAIR,
     "3.14: PtlCTWait and PtlCTPoll, asleep, return when a peer's message is counted")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, NULL);
    } else {
        rule_meet(s, s->to);
    }
    STEP();
    for (ptl_size_t i = 1; i <= 4; i++) {
        if (s->initiator) {
            suite_sleep_ms(40);
            OK(PtlPut(rule_md(s, NULL, 0), 0, 0, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        } else {
            ptl_ct_event_t v;
            unsigned which;
            if (i % 2) {
                OK(PtlCTWait(s->ct, i, &v));
            } else {
                OK(PtlCTPoll(&s->ct, &i, 1, PTL_TIME_FOREVER, &v, &which));
            }
            CHECK(v.success >= i && v.success <= 4);
        }
    }
}

CASE(count_data_are_there, ALL_KINDS, PAIR, "3.14: whoever sees a message counted sees its data")
{
    enum { ROUNDS = 200, LONG = 3000 };
    static uint64_t cell[LONG / 8], source[LONG / 8];
    if (s->target) {
        memset(cell, 0, sizeof(cell));
        suite_target(s, PTL_PRIORITY_LIST, cell, sizeof(cell),
                     PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, source, sizeof(source));
        for (uint64_t r = 1; r <= ROUNDS; r++) {
            for (int i = 0; i < LONG / 8; i++) {
                source[i] = r;
            }
            ptl_size_t length = r % 2 ? 8 : sizeof(source);
            OK(PtlPut(md, sizeof(source) - length, length, PTL_ACK_REQ, s->to, SUITE_PT, 0,
                      sizeof(source) - length, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
    } else {
        for (uint64_t r = 1; r <= ROUNDS; r++) {
            ptl_ct_event_t v;
            OK(PtlCTWait(s->ct, r, &v));
            CHECK(*(volatile uint64_t *)&cell[LONG / 8 - 1] >= v.success);
        }
    }
}

CASE(count_shared, ALL_KINDS, SELF | PAIR,
     "3.14: several entries and MDs may share a counter; everything adds up")
{
    enum { ENTRIES = 5, EACH = 10 };
    ptl_pt_index_t index[ENTRIES];
    for (ptl_pt_index_t i = 0; i < ENTRIES; i++) {
        index[i] = suite_pt(s, 0, PTL_EQ_NONE, 50 + i);
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
        ptl_handle_me_t entry;
        OK(suite_append_code(s, index[i], PTL_PRIORITY_LIST, &me, NULL, &entry));
    }
    STEP();
    if (s->initiator) {
        for (int i = 0; i < ENTRIES * EACH; i++) {
            static ptl_handle_md_t md[2];
            if (i < 2) {
                md[i] = suite_md_with(s, NULL, 0, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_SEND,
                                      PTL_EQ_NONE, s->mdct);
            }
            OK(PtlPut(md[i % 2], 0, 0, PTL_CT_ACK_REQ, s->to, index[i % ENTRIES], 0, 0, NULL, 0));
        }
        EXPECT_CT(s->mdct, 2 * ENTRIES * EACH, 0);
    }
    if (s->target) {
        EXPECT_CT(s->ct, ENTRIES * EACH, 0);
    }
}

CASE(count_freed, ALL_KINDS, SELF | PAIR,
     "3.14: a freed counter is no longer valid; what still names it counts nowhere, and goes on")
{
    ptl_ct_event_t v;
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(s->ni, &ct));
    ptl_me_t me =
        suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE);
    me.ct_handle = ct;
    suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    ptl_handle_md_t md = suite_md_with(s, NULL, 0, PTL_MD_EVENT_CT_ACK, s->mdeq, ct);
    OK(PtlCTFree(ct));
    INVALID(PtlCTGet(ct, &v));
    INVALID(PtlCTFree(ct));
    ptl_handle_ct_t next = suite_ct(s); /* perhaps in the same place */
    STEP();
    if (s->initiator) {
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
    }
    STEP();
    EXPECT_CT(next, 0, 0);
}

static void *increment(void *argument)
{
    ptl_handle_ct_t ct = *(ptl_handle_ct_t *)argument;
    for (int i = 0; i < 3000; i++) {
        if (PtlCTInc(ct, i % 3 ? value_of(1, 0) : value_of(0, 1)) != PTL_OK) {
            return argument;
        }
    }
    return NULL;
}

CASE(count_threads, ALL_KINDS, SELF,
     "3.14: increments of several threads, and of messages meanwhile, all count")
{
    enum { THREADS = 3, MESSAGES = 500 };
    suite_target(s, PTL_PRIORITY_LIST, NULL, 0,
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&thread[i], NULL, increment, &s->ct) == 0);
    }
    ptl_handle_md_t md = suite_md_with(s, NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
    for (int i = 0; i < MESSAGES; i++) {
        OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(thread[i], &failed);
        CHECK(failed == NULL);
    }
    EXPECT_CT(s->ct, THREADS * 2000 + MESSAGES, THREADS * 1000);
}

CASE(count_set_wakes, ALL_KINDS, SELF,
     "3.14: PtlCTSet and PtlCTInc of another thread end a PtlCTWait")
{
    pthread_t thread;
    ptl_ct_event_t v;
    CHECK(pthread_create(&thread, NULL, increment, &s->ct) == 0);
    OK(PtlCTWait(s->ct, 1, &v));
    pthread_join(thread, NULL);
    EXPECT_CT(s->ct, 2000, 1000);
}
