/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.12.1: what appending an entry does with the unexpected messages that it matches. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE], other[SIZE];

/* `count` messages of 10 + i bytes with match bits i wait in the overflow list; the target has
 * taken their PUT events. */
static void fill_overflow(struct scene *s, int count, unsigned options)
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | options,
                     (void *)9);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (int i = 0; i < count; i++) {
            rule_put(s, md, 10 + (ptl_size_t)i, (ptl_match_bits_t)i, PTL_NI_OK);
        }
    }
    STEP();
}

static ptl_me_t exact(struct scene *s, ptl_match_bits_t bits, unsigned options)
{
    ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | options);
    me.match_bits = bits;
    me.ignore_bits = 0;
    return me;
}

CASE(claim_once, ALL_KINDS, SELF | PAIR,
     "3.12.1: a use-once entry takes the oldest header that it matches: ..._OVERFLOW, AUTO_UNLINK, "
     "never LINK; its handle is not valid; the next message does not find it")
{
    fill_overflow(s, 2, 0);
    if (s->target) {
        for (int i = 0; i < 2; i++) {
            ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
            ptl_handle_me_t entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)5);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(5), .hdr_data = IS(i),
                   .rlength = IS(10 + i), .mlength = IS(10 + i), .start = IS(to),
                   .remote_offset = IS(0), .initiator = &s->from, .pt_index = IS(SUITE_PT));
            EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(5));
            INVALID(suite_unlink_code(s, entry));
            NO_EVENT(s->eq);
        }
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 77, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)6);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(6), .hdr_data = IS(77));
    }
}

CASE(claim_all, ALL_KINDS, SELF | PAIR,
     "3.12.1: another entry takes all headers that it matches, oldest first, and is then linked; "
     "what comes later lands in it")
{
    enum { COUNT = 7 };
    fill_overflow(s, COUNT, 0);
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)5);
        for (int i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(5), .hdr_data = IS(i));
        }
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(5));
        NO_EVENT(s->eq);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 50, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(5), .start = IS(other), .hdr_data = IS(50),
               .list = IS(PTL_PRIORITY_LIST));
    }
}

CASE(claim_overflow_never, ALL_KINDS, SELF | PAIR,
     "3.12.1: appending to the overflow list takes no headers: LINK only")
{
    fill_overflow(s, 2, 0);
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)4);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(4));
        NO_EVENT(s->eq);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(0));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(1));
    }
}

CASE(claim_by_bits, MATCHING_KINDS, SELF | PAIR,
     "3.12.1: only headers that match are taken, others stay; each append gives an overflow event "
     "or LINK")
{
    fill_overflow(s, 8, 0);
    if (s->target) {
        ptl_me_t me = exact(s, 5, PTL_ME_USE_ONCE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(5));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        me = exact(s, 5, PTL_ME_USE_ONCE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(2));
        me = exact(s, 2, 0);
        me.ignore_bits = 4; /* 2 and 6 */
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)3);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(2));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(6));
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(3));
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, NULL);
        static const int rest[] = {0, 1, 3, 4, 7};
        for (int i = 0; i < 5; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(rest[i]));
        }
        NO_EVENT(s->eq);
    }
}

CASE(claim_by_source, MATCHING_KINDS, SELF | PAIR, "3.12.1: headers are matched by source, too")
{
    fill_overflow(s, 1, 0);
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        me.match_id = suite_bystander(s);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1));
        me.match_id = s->from;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2));
    }
}

CASE(claim_no_truncate, MATCHING_KINDS, SELF | PAIR,
     "3.12.1: an entry with NO_TRUNCATE does not take a header of a message longer than itself")
{
    fill_overflow(s, 6, 0); /* 10 to 15 bytes */
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, 12, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        for (int i = 0; i < 3; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(i));
        }
        EXPECT(s->eq, PTL_EVENT_LINK);
        suite_target(s, PTL_PRIORITY_LIST, other, 1, PTL_ME_OP_PUT, NULL);
        for (int i = 3; i < 6; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(i), .mlength = IS(10 + i));
        }
    }
}

CASE(claim_unchecked, ALL_KINDS, SELF | PAIR,
     "3.12.1: headers are taken without a look at uid or OP_ options; no register moves")
{
    fill_overflow(s, 2, 0);
    int permission = suite_status(s, PTL_SR_PERMISSION_VIOLATIONS);
    int operation = suite_status(s, PTL_SR_OPERATION_VIOLATIONS);
    if (s->target) {
        ptl_me_t me = suite_entry(s, other, SIZE,
                                  PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(0));
        me.uid = s->uid + 1;
        me.options = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(1));
        EXPECT_STATUS(PTL_SR_PERMISSION_VIOLATIONS, permission);
        EXPECT_STATUS(PTL_SR_OPERATION_VIOLATIONS, operation);
    }
}

CASE(claim_kinds, ALL_KINDS, SELF | PAIR,
     "3.13: unexpected gets, atomics and fetches act on the overflow entry, and are told as "
     "GET_OVERFLOW, ATOMIC_OVERFLOW, FETCH_ATOMIC_OVERFLOW")
{
    static uint64_t cell[1], word[2];
    static const int type[] = {PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC,
                               PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_PUT};
    cell[0] = 1000;
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, cell, 8, PTL_ME_OP_PUT | PTL_ME_OP_GET, (void *)9);
    }
    STEP();
    if (s->initiator) {
        word[0] = 5;
        word[1] = 0;
        ptl_handle_md_t out = rule_md(s, &word[0], 8), in = rule_md(s, &word[1], 8);
        OK(PtlGet(in, 0, 8, s->to, SUITE_PT, 1, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
        CHECK_EQ(word[1], 1000);
        OK(PtlAtomic(out, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 2, 0, NULL, 22, PTL_SUM,
                     PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        OK(PtlFetchAtomic(in, 0, out, 0, 8, s->to, SUITE_PT, 3, 0, NULL, 33, PTL_SUM,
                          PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        CHECK_EQ(word[1], 1005);
        OK(PtlSwap(in, 0, out, 0, 8, s->to, SUITE_PT, 4, 0, NULL, 44, NULL, PTL_SWAP,
                   PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        CHECK_EQ(word[1], 1010);
        OK(PtlPut(out, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 5, 0, NULL, 55));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < 5; i++) {
            EXPECT(s->eq, type[i], .user_ptr = IS(9), .list = IS(PTL_OVERFLOW_LIST));
        }
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, (void *)1);
        for (int i = 0; i < 5; i++) {
            ptl_event_t e = EXPECT(s->eq, type[i] + 1, .user_ptr = IS(1), .start = IS(cell),
                                   .rlength = IS(8), .mlength = IS(8));
            CHECK(!s->matching || e.match_bits == (ptl_match_bits_t)i + 1);
            CHECK(i == 0 || e.hdr_data == 11u * ((unsigned)i + 1));
            CHECK(i < 1 || i > 3 || e.atomic_type == PTL_UINT64_T);
            CHECK(i < 1 || i > 3 || e.atomic_operation == (i == 3 ? PTL_SWAP : PTL_SUM));
        }
        CHECK_EQ(cell[0], 5);
        NO_EVENT(s->eq);
    }
}

CASE(
    claim_masked, ALL_KINDS, SELF | PAIR,
    "3.12: EVENT_OVER_DISABLE keeps back overflow events, and SUCCESS_DISABLE too; the headers are "
    "taken all the same")
{
    static const unsigned option[2] = {PTL_ME_EVENT_OVER_DISABLE, PTL_ME_EVENT_SUCCESS_DISABLE};
    fill_overflow(s, 4, 0);
    if (s->target) {
        for (int i = 0; i < 2; i++) {
            ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | option[i]);
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
            EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
            NO_EVENT(s->eq);
        }
        ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(2));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(3));
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(2));
    }
}

CASE(claim_counts, ALL_KINDS, SELF | PAIR,
     "3.12: EVENT_CT_OVERFLOW counts the headers that are taken when appending, EVENT_CT_COMM does "
     "not; the overflow entry's EVENT_CT_COMM counts at delivery")
{
    ptl_handle_ct_t own = suite_ct(s);
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE,
                                  PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE |
                                      PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = own;
        suite_append(s, PTL_OVERFLOW_LIST, &me, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (int i = 0; i < 6; i++) {
            rule_put(s, md, 100, (ptl_match_bits_t)i, PTL_NI_OK);
        }
    }
    STEP();
    if (s->target) {
        EXPECT_CT(own, 6, 0);
        unsigned once = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, once | PTL_ME_EVENT_CT_COMM, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW);
        EXPECT_CT(s->ct, 0, 0);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE,
                     once | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_OVER_DISABLE, NULL);
        EXPECT_CT(s->ct, 1, 0);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES, NULL);
        EXPECT_CT(s->ct, 401, 0);
        EXPECT_CT(own, 6, 0);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) { /* not EVENT_CT_COMM: what comes now is not counted */
        EXPECT_CT(s->ct, 401, 0);
    }
}

CASE(claim_counts_without_queue, ALL_KINDS, SELF | PAIR,
     "3.12: EVENT_CT_OVERFLOW counts on an index without event queue, too")
{
    ptl_pt_index_t index = suite_pt(s, 0, PTL_EQ_NONE, 21);
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_OVERFLOW_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        OK(PtlPut(rule_md(s, from, 8), 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW);
        OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
        EXPECT_CT(s->ct, 1, 0);
    }
}

CASE(claim_triggers, ALL_KINDS, SELF | PAIR,
     "3.16: a header that is counted when an entry is appended fires what waits for the counter")
{
    fill_overflow(s, 1, 0);
    if (s->target) {
        ptl_ct_event_t one = {1, 0};
        OK(PtlTriggeredCTInc(s->mdct, one, s->ct, 1));
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW,
                     NULL);
        EXPECT_CT(s->mdct, 1, 0);
    }
}

CASE(claim_many, MATCHING_KINDS, SELF | PAIR,
     "3.12.1: among many headers each entry finds its own, newest first, every second, by mask")
{
    enum { COUNT = 400 };
    fill_overflow(s, COUNT, 0);
    if (s->target) {
        unsigned once = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
        for (int i = COUNT - 1; i >= COUNT / 2; i--) {
            ptl_me_t me = exact(s, (ptl_match_bits_t)i, once);
            suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(i));
        }
        for (int i = 1; i < COUNT / 2; i += 2) { /* the oldest odd one */
            ptl_me_t me = exact(s, 1, once);
            me.ignore_bits = ~(ptl_match_bits_t)1;
            suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(i));
        }
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, NULL);
        for (int i = 0; i < COUNT / 2; i += 2) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(i));
        }
        NO_EVENT(s->eq);
    }
}

/* Headers of several peers: each in its order, found by who sent them. */
static void unexpected_crowd(struct scene *s)
{
    enum { EACH = 10 };
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                     NULL);
    }
    crowd_step(s);
    if (!s->target) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        for (int i = 0; i < EACH; i++) {
            rule_put(s, md, 8, (ptl_match_bits_t)(100 * crowd.rank + i), PTL_NI_OK);
        }
    }
    crowd_step(s);
    if (s->target) {
        for (int r = crowd.size - 1; r > 0; r--) {
            ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT);
            me.match_id = crowd.id[r];
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)(long)r);
            for (int i = 0; i < EACH; i++) {
                EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(r), .initiator = &crowd.id[r],
                       .hdr_data = IS(100 * r + i));
            }
            EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(r));
        }
        NO_EVENT(s->eq);
    }
}

CASE(claim_of_peers, MATCHING_KINDS, BARE,
     "3.12.1: the headers of several peers are told apart by match_id, each in order")
{
    crowd_run(s, 4, 0, 0, NULL, unexpected_crowd);
}
