/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.11.3, 3.12.3: searches of the unexpected messages. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];

/* `count` messages of 10 + i bytes with match bits i wait in the overflow list. */
static void fill_overflow(struct scene *s, int count)
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, (void *)9);
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

static void search(struct scene *s, ptl_search_op_t op, unsigned options, long user)
{
    ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | options);
    OK(suite_search_code(s, SUITE_PT, op, &me, (void *)user));
}

CASE(
    search_nothing, ALL_KINDS, SELF,
    "3.12.3: a search that finds nothing posts one SEARCH event with PTL_NI_NO_MATCH, user_ptr and "
    "index, whichever its kind")
{
    for (int once = 0; once < 2; once++) {
        for (int op = PTL_SEARCH_ONLY; op <= PTL_SEARCH_DELETE; op++) {
            search(s, (ptl_search_op_t)op, once ? PTL_ME_USE_ONCE : 0, 4);
            EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(4),
                   .pt_index = IS(SUITE_PT));
            NO_EVENT(s->eq);
        }
    }
}

CASE(search_only_once, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH_ONLY with USE_ONCE posts SEARCH for the oldest message, filled like an "
     "overflow "
     "event, and leaves it")
{
    fill_overflow(s, 3);
    for (int i = 0; i < 3 && s->target; i++) {
        search(s, PTL_SEARCH_ONLY, PTL_ME_USE_ONCE, 5);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .user_ptr = IS(5), .hdr_data = IS(0), .start = IS(to),
               .rlength = IS(10), .mlength = IS(10), .remote_offset = IS(0), .initiator = &s->from,
               .pt_index = IS(SUITE_PT));
        NO_EVENT(s->eq);
    }
}

CASE(search_only_all, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH_ONLY without USE_ONCE posts SEARCH for each message, in order, and leaves all")
{
    fill_overflow(s, 5);
    for (int round = 0; round < 2 && s->target; round++) {
        search(s, PTL_SEARCH_ONLY, 0, 5);
        for (int i = 0; i < 5; i++) {
            EXPECT(s->eq, PTL_EVENT_SEARCH, .user_ptr = IS(5), .hdr_data = IS(i));
        }
        NO_EVENT(s->eq);
    }
}

CASE(search_delete_once, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH_DELETE with USE_ONCE takes the oldest message away and posts its ..._OVERFLOW "
     "event, not SEARCH, LINK or AUTO_UNLINK")
{
    fill_overflow(s, 3);
    for (int i = 0; i < 4 && s->target; i++) {
        search(s, PTL_SEARCH_DELETE, PTL_ME_USE_ONCE, 6);
        if (i < 3) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(6), .hdr_data = IS(i),
                   .start = IS(to), .rlength = IS(10 + i));
        } else {
            EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(6));
        }
        NO_EVENT(s->eq);
    }
}

CASE(search_delete_all, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH_DELETE without USE_ONCE takes all that match, in order")
{
    fill_overflow(s, 4);
    if (s->target) {
        search(s, PTL_SEARCH_DELETE, 0, 6);
        for (int i = 0; i < 4; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(6), .hdr_data = IS(i));
        }
        NO_EVENT(s->eq);
        search(s, PTL_SEARCH_DELETE, 0, 7);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(7));
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        EXPECT(s->eq, PTL_EVENT_LINK);
    }
}

CASE(search_never_linked, ALL_KINDS, SELF | PAIR,
     "3.12.3: the entry of a search is never linked: no message lands in it")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, NULL));
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_DROPPED);
    }
}

CASE(search_not_priority, ALL_KINDS, SELF | PAIR,
     "3.12.3: messages that landed in the priority list are not found")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        search(s, PTL_SEARCH_ONLY, 0, 1);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH);
    }
}

CASE(search_matches, MATCHING_KINDS, SELF | PAIR,
     "3.12.3: a search finds what an entry with its bits and source would take")
{
    fill_overflow(s, 8);
    if (s->target) {
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
        me.match_bits = 1;
        me.ignore_bits = 6; /* 1, 3, 5, 7 */
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, NULL));
        for (int i = 1; i < 8; i += 2) {
            EXPECT(s->eq, PTL_EVENT_SEARCH, .match_bits = IS(i));
        }
        NO_EVENT(s->eq);
        me.match_id = suite_bystander(s);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH);
        me.match_id = s->from;
        me.match_bits = 6;
        me.ignore_bits = 0;
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .match_bits = IS(6));
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH);
    }
}

CASE(search_no_truncate, MATCHING_KINDS, SELF | PAIR,
     "3.12.3: with NO_TRUNCATE the length of the entry decides, too")
{
    fill_overflow(s, 6);
    if (s->target) {
        ptl_me_t me = suite_entry(s, NULL, 12, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE);
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        for (int i = 0; i < 3; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(i));
        }
        NO_EVENT(s->eq);
    }
}

CASE(search_kinds, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH_ONLY tells of gets and atomics, too; SEARCH_DELETE posts GET_OVERFLOW and "
     "ATOMIC_OVERFLOW for them")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        OK(PtlGet(md, 0, 8, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        OK(PtlAtomic(md, 0, 16, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_BXOR,
                     PTL_UINT8_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        search(s, PTL_SEARCH_ONLY, 0, 1);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .rlength = IS(8));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .rlength = IS(16));
        search(s, PTL_SEARCH_DELETE, 0, 2);
        EXPECT(s->eq, PTL_EVENT_GET_OVERFLOW, .rlength = IS(8));
        EXPECT(s->eq, PTL_EVENT_ATOMIC_OVERFLOW, .rlength = IS(16), .op = IS(PTL_BXOR),
               .datatype = IS(PTL_UINT8_T));
    }
}

CASE(search_counts, ALL_KINDS, SELF | PAIR,
     "3.12.3: with EVENT_CT_OVERFLOW each find is a success; the end is a failure of a use-once "
     "search that found nothing and of every other search")
{
    fill_overflow(s, 3);
    if (s->target) {
        unsigned counted = PTL_ME_EVENT_CT_OVERFLOW;
        ptl_event_t e;
        search(s, PTL_SEARCH_ONLY, counted | PTL_ME_USE_ONCE, 1);
        EXPECT_CT(s->ct, 1, 0);
        search(s, PTL_SEARCH_ONLY, counted, 1);
        EXPECT_CT(s->ct, 4, 1);
        search(s, PTL_SEARCH_DELETE, counted | PTL_ME_USE_ONCE, 1);
        EXPECT_CT(s->ct, 5, 1);
        search(s, PTL_SEARCH_DELETE, counted | PTL_ME_EVENT_CT_BYTES, 1);
        EXPECT_CT(s->ct, 5 + 11 + 12, 2);
        search(s, PTL_SEARCH_ONLY, counted | PTL_ME_USE_ONCE, 1);
        EXPECT_CT(s->ct, 28, 3);
        search(s, PTL_SEARCH_ONLY, counted, 1);
        EXPECT_CT(s->ct, 28, 4);
        search(s, PTL_SEARCH_ONLY, 0, 1);
        search(s, PTL_SEARCH_DELETE, PTL_ME_EVENT_CT_COMM, 1);
        EXPECT_CT(s->ct, 28, 4);
        for (int n = 1 + 3 + 1 + 2 + 4; n > 0; n--) {
            OK(PtlEQGet(s->eq, &e));
        }
        NO_EVENT(s->eq);
    }
}

CASE(search_masked, ALL_KINDS, SELF | PAIR,
     "3.12.3: SEARCH events are posted whatever the options; OVER_DISABLE keeps back those of "
     "SEARCH_DELETE")
{
    fill_overflow(s, 1);
    if (s->target) {
        unsigned all = PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                       PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE |
                       PTL_ME_EVENT_FLOWCTRL_DISABLE;
        search(s, PTL_SEARCH_ONLY, all, 1);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .hdr_data = IS(0));
        search(s, PTL_SEARCH_DELETE, all, 2);
        NO_EVENT(s->eq);
        search(s, PTL_SEARCH_ONLY, all, 3);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(3));
    }
}

CASE(search_no_permission, ALL_KINDS, SELF | PAIR,
     "3.12.3: a search looks neither at uid nor at OP_ options, and moves no register")
{
    fill_overflow(s, 1);
    int permission = suite_status(s, PTL_SR_PERMISSION_VIOLATIONS);
    int operation = suite_status(s, PTL_SR_OPERATION_VIOLATIONS);
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    if (s->target) {
        ptl_me_t me = suite_entry(s, NULL, 0, 0);
        me.uid = s->uid + 1;
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_SEARCH, .hdr_data = IS(0));
        OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(0));
        CHECK_EQ(suite_status(s, PTL_SR_PERMISSION_VIOLATIONS), permission);
        CHECK_EQ(suite_status(s, PTL_SR_OPERATION_VIOLATIONS), operation);
        CHECK_EQ(suite_status(s, PTL_SR_DROP_COUNT), drops);
    }
}

CASE(search_then_append, ALL_KINDS, SELF | PAIR,
     "3.12.3: what SEARCH_ONLY found is still there for an entry that is appended")
{
    fill_overflow(s, 1);
    if (s->target) {
        search(s, PTL_SEARCH_ONLY, PTL_ME_USE_ONCE, 1);
        EXPECT(s->eq, PTL_EVENT_SEARCH, .start = IS(to));
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (void *)2);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2), .start = IS(to));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
    }
}

CASE(search_disabled, ALL_KINDS, SELF | PAIR,
     "3.7.3, 3.12.3: a disabled index can be searched and appended to; what came before is found")
{
    fill_overflow(s, 2);
    if (s->target) {
        OK(PtlPTDisable(s->ni, SUITE_PT));
        search(s, PTL_SEARCH_DELETE, PTL_ME_USE_ONCE, 1);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(0));
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (void *)2);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .hdr_data = IS(1), .user_ptr = IS(2));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
    }
}
