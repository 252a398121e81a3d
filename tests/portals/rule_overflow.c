/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.12: what the overflow list takes, and what becomes of its entries. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE], other[SIZE];

/* An entry of the priority list is appended at the target and yields only LINK. */
static void expect_no_header(struct scene *s)
{
    ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET);
    suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    EXPECT(s->eq, PTL_EVENT_LINK);
    NO_EVENT(s->eq);
}

CASE(
    overflow_delivers, ALL_KINDS, SELF | PAIR,
    "3.12: an unexpected message lands in the overflow entry, whose own event tells of it at once, "
    "and is acknowledged then")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                     (void *)3);
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, 500, 2);
        OK(PtlPut(rule_md(s, from, SIZE), 0, 500, PTL_ACK_REQ, s->to, SUITE_PT, 0x99, 40, NULL, 6));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(500), .remote_offset = IS(40));
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(3), .list = IS(PTL_OVERFLOW_LIST),
               .start = IS(to + 40), .rlength = IS(500), .mlength = IS(500), .hdr_data = IS(6),
               .remote_offset = IS(40), .initiator = &s->from, .pt_index = IS(SUITE_PT));
        CHECK_FILL(to + 40, 500, 2);
        EXPECT_CT(s->ct, 1, 0);
    }
}

CASE(overflow_header_disabled, ALL_KINDS, SELF | PAIR,
     "3.12: with UNEXPECTED_HDR_DISABLE no header is kept, whatever lands there")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_UNEXPECTED_HDR_DISABLE,
                     NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 100, 0, PTL_NI_OK);
        rule_put(s, md, SIZE, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(100));
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(SIZE));
        expect_no_header(s);
    }
}

static const ptl_ni_limits_t few_headers = {.max_entries = 64,
                                            .max_unexpected_headers = 4,
                                            .max_mds = 64,
                                            .max_cts = 64,
                                            .max_eqs = 64,
                                            .max_pt_index = 63,
                                            .max_list_size = 64,
                                            .max_triggered_ops = 64,
                                            .max_msg_size = 1 << 20,
                                            .max_atomic_size = 64,
                                            .max_fetch_atomic_size = 64,
                                            .max_waw_ordered_size = 64,
                                            .max_war_ordered_size = 64,
                                            .max_volatile_size = 64};

static void black_hole(struct scene *s)
{
    enum { COUNT = 2000 };
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, NULL, 0,
                     PTL_ME_OP_PUT | PTL_ME_UNEXPECTED_HDR_DISABLE | PTL_ME_EVENT_COMM_DISABLE,
                     NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md =
            suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md, 0, i % 7 == 0 ? SIZE : 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                      0));
        }
        EXPECT_CT(s->mdct, COUNT, 0);
    }
    STEP();
    if (s->target) {
        expect_no_header(s);
    }
}

GENERATE(black_holes)
{
    suite_add_each((struct suite_case){.rule = "3.12: an overflow entry that truncates, posts no "
                                               "events and keeps no headers swallows any number "
                                               "of messages, with flow control too",
                                       .body = black_hole,
                                       .desired = &few_headers,
                                       .pt_options = PTL_PT_FLOWCTRL,
                                       .event_count = 2},
                   ALL_KINDS, SELF | PAIR, "overflow_black_hole");
}

static void headers_exhausted(struct scene *s)
{
    int before = suite_status(s, PTL_SR_DROP_COUNT);
    if (s->target) {
        CHECK_EQ(s->limits.max_unexpected_headers, 4);
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    if (s->initiator) {
        for (int i = 0; i < 6; i++) {
            rule_put(s, md, i == 5 ? SIZE : 8, (ptl_match_bits_t)i,
                     i < 4 ? PTL_NI_OK : PTL_NI_DROPPED);
        }
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < 4; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
        }
        NO_EVENT(s->eq);
        EXPECT_STATUS(PTL_SR_DROP_COUNT, before + 2);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(0));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 8, 9, PTL_NI_OK);
        rule_put(s, md, 8, 10, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(9));
    }
}

GENERATE(exhausted)
{
    suite_add_each((struct suite_case){.rule = "3.12, 3.6.1: without flow control a message beyond "
                                               "max_unexpected_headers is dropped and counted; a "
                                               "header that is taken away makes room",
                                       .body = headers_exhausted,
                                       .desired = &few_headers},
                   ALL_KINDS, SELF | PAIR, "overflow_headers_exhausted");
}

CASE(overflow_truncates, ALL_KINDS, SELF | PAIR,
     "3.12: a message that the overflow entry cuts off is told with what was kept, later too")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, 10, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, SIZE, 1);
        OK(PtlPut(rule_md(s, from, SIZE), 0, SIZE, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(10));
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(SIZE), .mlength = IS(10));
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .rlength = IS(SIZE), .mlength = IS(10),
               .start = IS(to));
        CHECK_FILL(to, 10, 1);
    }
}

CASE(overflow_no_truncate, MATCHING_KINDS, SELF | PAIR,
     "3.12: an overflow entry with NO_TRUNCATE leaves what is too long to the next one")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, 10, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, (void *)1);
        suite_target(s, PTL_OVERFLOW_LIST, to + 10, 20, PTL_ME_OP_PUT, (void *)2);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 11, 0, PTL_NI_OK);
        rule_put(s, md, 10, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2), .mlength = IS(11));
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1), .mlength = IS(10));
    }
}

/* ---- AUTO_UNLINK and AUTO_FREE --------------------------------------------- */

CASE(free_after_last_header, MATCHING_KINDS, SELF | PAIR,
     "3.12: a used-up overflow entry posts AUTO_UNLINK behind its last message and AUTO_FREE only "
     "when no header refers to it any more")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, 100,
                                  PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
        me.min_free = 50;
        suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)1);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (ptl_match_bits_t i = 0; i < 3; i++) {
            rule_put(s, md, 20, i, PTL_NI_OK);
        }
        rule_put(s, md, 20, 3, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < 3; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1), .start = IS(to + 20 * i));
        }
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        NO_EVENT(s->eq);
        static const int order[3] = {1, 2, 0};
        for (int i = 0; i < 3; i++) {
            ptl_me_t me = suite_entry(s, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
            me.match_bits = (ptl_match_bits_t)order[i];
            me.ignore_bits = 0;
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2),
                   .start = IS(to + 20 * order[i]));
            if (i == 2) { /* the order of these two is open */
                ptl_event_t e[2];
                OK(PtlEQGet(s->eq, &e[0]));
                OK(PtlEQGet(s->eq, &e[1]));
                int f = e[0].type == PTL_EVENT_AUTO_FREE ? 0 : 1;
                EVENT_IS(e[f], PTL_EVENT_AUTO_FREE, .user_ptr = IS(1), .pt_index = IS(SUITE_PT));
                EVENT_IS(e[1 - f], PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(2));
            } else {
                EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(2));
            }
            NO_EVENT(s->eq);
        }
    }
}

CASE(free_without_headers, ALL_KINDS, SELF | PAIR,
     "3.12: a use-once overflow entry that keeps no header posts PUT, AUTO_UNLINK, AUTO_FREE at "
     "once")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE, (void *)1);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), SIZE, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_AUTO_FREE, .user_ptr = IS(1));
        NO_EVENT(s->eq);
    }
}

CASE(free_by_search, ALL_KINDS, SELF | PAIR,
     "3.12: a header that a search deletes frees the entry as one that is claimed; AUTO_FREE comes "
     "behind the last event that refers to the buffer")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (void *)1);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, (void *)2));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .user_ptr = IS(2));
        NO_EVENT(s->eq);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, (void *)3));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(3));
        EXPECT(s->eq, PTL_EVENT_AUTO_FREE, .user_ptr = IS(1));
        NO_EVENT(s->eq);
    }
}

CASE(free_masked, ALL_KINDS, SELF | PAIR,
     "3.12: UNLINK_DISABLE keeps back AUTO_FREE as well as AUTO_UNLINK")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW);
        NO_EVENT(s->eq);
    }
}

CASE(free_never_priority, ALL_KINDS, SELF | PAIR,
     "3.12: an entry of the priority list never posts AUTO_FREE")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        NO_EVENT(s->eq);
    }
}

CASE(
    unlink_overflow, ALL_KINDS, SELF | PAIR,
    "3.12.2: an overflow entry to which a header refers is in use; when the header is taken it can "
    "be unlinked, silently")
{
    ptl_handle_me_t entry = 0;
    if (s->target) {
        entry = suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        OK(suite_unlink_code(s, entry));
        NO_EVENT(s->eq);
    }
}

CASE(overflow_blocks, MATCHING_KINDS, SELF | PAIR,
     "3.12: a run time's blocks: several overflow entries are filled one behind the other, each "
     "told "
     "when it is full and when it is free; refilled, all goes on")
{
    enum { BLOCKS = 3, BLOCK = 2048, MESSAGES = 60 };
    static unsigned char block[BLOCKS][BLOCK];
    int taken = 0, unlinked = 0, freed = 0, arrived = 0;
    ptl_me_t me = suite_entry(s, NULL, BLOCK,
                              PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN |
                                  PTL_ME_EVENT_LINK_DISABLE);
    me.min_free = 512;
    for (long b = 0; b < BLOCKS && s->target; b++) {
        me.start = block[b];
        suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)b);
    }
    STEP();
    for (int i = 0; i < MESSAGES; i++) {
        ptl_size_t length = 1 + (ptl_size_t)(i * 37 % 512);
        if (s->initiator) {
            suite_fill(from, length, (unsigned)i);
            rule_put(s, rule_md(s, from, SIZE), length, (ptl_match_bits_t)i, PTL_NI_OK);
        }
        STEP();
        if (s->target) {
            suite_target(s, PTL_PRIORITY_LIST, other, SIZE,
                         PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
                         (void *)100);
            ptl_event_t e;
            while (PtlEQGet(s->eq, &e) == PTL_OK) {
                arrived += e.type == PTL_EVENT_PUT;
                unlinked += e.type == PTL_EVENT_AUTO_UNLINK;
                if (e.type == PTL_EVENT_PUT_OVERFLOW) {
                    EVENT_IS(e, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(i), .mlength = IS(length),
                             .user_ptr = IS(100));
                    CHECK_FILL(e.start, length, (unsigned)i);
                    taken++;
                } else if (e.type == PTL_EVENT_AUTO_FREE) {
                    freed++;
                    CHECK((long)e.user_ptr >= 0 && (long)e.user_ptr < BLOCKS);
                    me.start = block[(long)e.user_ptr];
                    suite_append(s, PTL_OVERFLOW_LIST, &me, e.user_ptr);
                }
            }
            CHECK_EQ(taken, i + 1);
            CHECK_EQ(arrived, i + 1);
            CHECK(freed == unlinked);
        }
        STEP();
    }
    CHECK(!s->target || freed >= 3);
}
