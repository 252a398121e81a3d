/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.11, 3.12: entries: which one a message takes, what arrives in it, what is told. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE], other[SIZE];

/* ---- Which entry ----------------------------------------------------------- */

CASE(entry_first, ALL_KINDS, SELF | PAIR,
     "3.12: of several entries of a list that match, the one that was appended first is taken")
{
    if (s->target) {
        for (long i = 1; i <= 3; i++) {
            suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                         (void *)i);
        }
    }
    STEP();
    for (int i = 1; i <= 3; i++) {
        if (s->initiator) {
            rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i));
            EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(i));
        }
    }
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_DROPPED);
    }
}

CASE(entry_priority_first, ALL_KINDS, SELF | PAIR,
     "3.12: the priority list is searched before the overflow list, however late it was filled")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, SIZE, PTL_ME_OP_PUT, (void *)1);
        suite_target(s, PTL_PRIORITY_LIST, other, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, (void *)2);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2), .list = IS(PTL_PRIORITY_LIST));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(2));
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1), .list = IS(PTL_OVERFLOW_LIST));
    }
}

static void append_bits(struct scene *s, ptl_match_bits_t bits, ptl_match_bits_t ignore, long user)
{
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = bits;
    me.ignore_bits = ignore;
    suite_append(s, PTL_PRIORITY_LIST, &me, (void *)user);
}

CASE(match_bits, MATCHING_KINDS, SELF | PAIR,
     "3.12: match bits must agree wherever ignore_bits has a zero; order decides, not precision")
{
    static const struct {
        ptl_match_bits_t bits;
        long user; /* of the entry that takes it; 0 for none */
    } put[] = {
        {0x1234, 1},
        {0x1235, 2},
        {0x12ff, 2},
        {0xff00000000000000u, 3},
        {0, 5},
        {0x5678, 4},
        {0xabcd0000u, 0},
        {0x8000000000000000u, 0},
        {0xff000000000000ffu, 3},
        {0x1200, 2},
    };
    if (s->target) {
        append_bits(s, 0x1234, 0, 1);
        append_bits(s, 0x12aa, 0xff, 2);
        append_bits(s, 0xff00000000000000u, 0x00ffffffffffffffu, 3);
        append_bits(s, 0x5678, 0, 4);
        append_bits(s, 0x5678, 0xffff, 5);
        append_bits(s, 0x1234, 0, 6);
    }
    STEP();
    for (unsigned i = 0; i < sizeof(put) / sizeof(put[0]); i++) {
        if (s->initiator) {
            rule_put(s, rule_md(s, from, 8), 8, put[i].bits,
                     put[i].user != 0 ? PTL_NI_OK : PTL_NI_DROPPED);
        }
        if (s->target && put[i].user != 0) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(put[i].user),
                   .match_bits = IS(put[i].bits));
        }
    }
}

CASE(match_source, MATCHING_KINDS, SELF | PAIR,
     "3.12: an entry for another process does not match; one for this process and wildcards do")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE,
                                  PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                      PTL_ME_EVENT_UNLINK_DISABLE);
        ptl_process_t any = me.match_id;
        me.match_id = suite_bystander(s);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        me.match_id = s->from;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
        me.match_id = any;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)3);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2), .initiator = &s->from);
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(3));
    }
}

CASE(match_source_halves, MP, SELF | PAIR,
     "3.12: PTL_NID_ANY and PTL_PID_ANY are wildcards each for its half of match_id")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE,
                                  PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                      PTL_ME_EVENT_UNLINK_DISABLE);
        ptl_process_t wrong = suite_bystander(s);
        ptl_process_t id[4] = {
            {.phys = {PTL_NID_ANY, wrong.phys.pid}},
            {.phys = {s->from.phys.nid + 1, PTL_PID_ANY}},
            {.phys = {PTL_NID_ANY, s->from.phys.pid}},
            {.phys = {s->from.phys.nid, PTL_PID_ANY}},
        };
        for (long i = 0; i < 4; i++) {
            me.match_id = id[i];
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)i);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2));
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(3));
    }
}

CASE(match_many, MATCHING_KINDS, SELF | PAIR,
     "3.12: among many entries with bits of their own, each message finds its entry in any order")
{
    enum { COUNT = 701 };
    if (s->target) {
        for (long i = 0; i < COUNT; i++) {
            ptl_me_t me = suite_entry(s, to, SIZE,
                                      PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                          PTL_ME_EVENT_UNLINK_DISABLE);
            me.match_bits = (ptl_match_bits_t)i << 40 | (ptl_match_bits_t)i;
            me.ignore_bits = i % 3 == 0 ? 0xf0000 : 0;
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)i);
        }
    }
    STEP();
    for (long k = 0; k < COUNT; k++) {
        long i = k * 97 % COUNT;
        if (k % 32 == 0) {
            STEP(); /* the initiator is not so far ahead that the target's event queue overflows */
        }
        if (s->initiator) {
            ptl_match_bits_t bits = (ptl_match_bits_t)i << 40 | (ptl_match_bits_t)i;
            static ptl_handle_md_t md;
            md = k == 0 ? rule_md(s, from, 8) : md;
            rule_put(s, md, 8, i % 3 == 0 ? bits | 0x50000 : bits, PTL_NI_OK);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i));
        }
    }
}

CASE(list_limit, ALL_KINDS, BARE,
     "3.12.1: a list takes max_list_size entries, then PTL_LIST_TOO_LONG; all lists together "
     "max_entries, then PTL_NO_SPACE; an unlinked entry makes room")
{
    ptl_ni_limits_t d = rule_some_limits();
    d.max_list_size = 5;
    d.max_entries = 8;
    rule_open(s, &d);
    CHECK_EQ(s->limits.max_list_size, 5);
    CHECK_EQ(s->limits.max_entries, 8);
    ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry[9];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5; i++) {
            OK(suite_append_code(s, SUITE_PT, PTL_PRIORITY_LIST, &me, NULL, &entry[i]));
        }
        CODE(suite_append_code(s, SUITE_PT, PTL_PRIORITY_LIST, &me, NULL, &entry[8]),
             PTL_LIST_TOO_LONG);
        for (int i = 5; i < 8; i++) {
            OK(suite_append_code(s, SUITE_PT, PTL_OVERFLOW_LIST, &me, NULL, &entry[i]));
        }
        CODE(suite_append_code(s, SUITE_PT, PTL_OVERFLOW_LIST, &me, NULL, &entry[8]), PTL_NO_SPACE);
        for (int i = 0; i < 8; i++) {
            OK(suite_unlink_code(s, entry[i]));
        }
    }
}

/* ---- What arrives ---------------------------------------------------------- */

CASE(entry_truncates, ALL_KINDS, SELF | PAIR,
     "3.12: what does not fit in the entry is cut off; mlength says what arrived, rlength what was "
     "asked for")
{
    static const struct {
        ptl_size_t length, offset, mlength;
    } put[] = {{100, 0, 100},
               {200, 0, 100},
               {50, 60, 40},
               {8, 100, 0},
               {0, 50, 0},
               {8, 5000, 0},
               {8, PTL_SIZE_MAX, 0},
               {SIZE, 99, 1},
               {SIZE, 0, 100},
               {1, 99, 1},
               {10, PTL_SIZE_MAX - 4, 0}};
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 100, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    for (unsigned i = 0; i < sizeof(put) / sizeof(put[0]); i++) {
        ptl_size_t m = put[i].mlength;
        memset(to, 0x77, SIZE);
        suite_fill(from, SIZE, i);
        STEP();
        if (s->initiator) {
            OK(PtlPut(rule_md(s, from, SIZE), 0, put[i].length, PTL_ACK_REQ, s->to, SUITE_PT, 0,
                      put[i].offset, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(m), .remote_offset = IS(put[i].offset));
        }
        STEP();
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(put[i].length), .mlength = IS(m),
                   .remote_offset = IS(put[i].offset));
            ptl_size_t at = m != 0 ? put[i].offset : 0;
            CHECK_BYTES(to, at, 0x77);
            CHECK_FILL(to + at, m, i);
            CHECK_BYTES(to + at + m, SIZE - at - m, 0x77);
        }
        STEP();
        if (s->initiator) {
            memset(other, 0x66, SIZE);
            OK(PtlGet(rule_md(s, other, SIZE), 0, put[i].length, s->to, SUITE_PT, 0, put[i].offset,
                      NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(m), .remote_offset = IS(put[i].offset));
            CHECK_FILL(other, m, i);
            CHECK_BYTES(other + m, SIZE - m, 0x66);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_GET, .rlength = IS(put[i].length), .mlength = IS(m));
        }
        STEP();
    }
}

CASE(entry_no_truncate, MATCHING_KINDS, SELF | PAIR,
     "3.12: an entry with NO_TRUNCATE does not match what would be cut off; the next one may")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 100, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, (void *)1);
        suite_target(s, PTL_PRIORITY_LIST, to, 200, PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE, (void *)2);
    }
    STEP();
    static const struct {
        ptl_size_t length, offset;
        int user;
    } put[] = {{100, 0, 1}, {101, 0, 2}, {0, 100, 1}, {0, 101, 2},  {100, 1, 2},
               {200, 0, 2}, {201, 0, 0}, {1, 200, 0}, {SIZE, 0, 0}, {1, PTL_SIZE_MAX, 0}};
    for (unsigned i = 0; i < sizeof(put) / sizeof(put[0]); i++) {
        if (s->initiator) {
            OK(PtlPut(rule_md(s, from, SIZE), 0, put[i].length, PTL_ACK_REQ, s->to, SUITE_PT, 0,
                      put[i].offset, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = put[i].user != 0 ? PTL_NI_OK : PTL_NI_DROPPED);
        }
        if (s->target && put[i].user != 0) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(put[i].user), .mlength = IS(put[i].length));
        }
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

CASE(
    entry_use_once, ALL_KINDS, SELF | PAIR,
    "3.12: a use-once entry takes one message, of no bytes too; AUTO_UNLINK follows its event, and "
    "its handle is no longer valid")
{
    ptl_handle_me_t entry[3] = {0, 0, 0};
    if (s->target) {
        for (long i = 0; i < 3; i++) {
            entry[i] = suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                                    PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE, (void *)i);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 0, 0, PTL_NI_OK);
        OK(PtlGet(md, 0, 100, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        rule_put(s, md, SIZE, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    for (int i = 0; i < 3 && s->target; i++) {
        EXPECT(s->eq, i == 1 ? PTL_EVENT_GET : PTL_EVENT_PUT, .user_ptr = IS(i));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(i), .pt_index = IS(SUITE_PT));
        INVALID(suite_unlink_code(s, entry[i]));
    }
}

CASE(entry_persists, ALL_KINDS, SELF | PAIR,
     "3.12: an entry without USE_ONCE takes messages until it is unlinked")
{
    ptl_handle_me_t entry = 0;
    if (s->target) {
        entry = suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    ptl_handle_md_t md = rule_md(s, from, SIZE);
    for (int i = 0; i < 40; i++) {
        if (s->initiator) {
            rule_put(s, md, (ptl_size_t)i * 200, 0, PTL_NI_OK);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(i * 200));
        }
    }
    STEP();
    if (s->target) {
        suite_unlink(s, entry);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
        INVALID(suite_unlink_code(s, entry));
    }
}

CASE(entry_copied, ALL_KINDS, SELF | PAIR,
     "3.12.1: the structure that was appended may be changed behind the call")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, 64, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        memset(&me, 0xff, sizeof(me));
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, 64, 5);
        rule_put(s, rule_md(s, from, SIZE), SIZE, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(64), .start = IS(to));
        CHECK_FILL(to, 64, 5);
    }
}

CASE(entry_overlap, MATCHING_KINDS, SELF | PAIR,
     "3.12: entries may share memory; each message goes through the entry that it matches")
{
    if (s->target) {
        memset(to, 0, SIZE);
        append_bits(s, 1, 0, 1);
        ptl_me_t me = suite_entry(s, to + 100, 100, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        suite_fill(from, 300, 1);
        rule_put(s, md, 300, 1, PTL_NI_OK);
        suite_fill(from, 100, 2);
        rule_put(s, md, 100, 2, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to), .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + 100), .user_ptr = IS(2));
        CHECK_FILL(to, 100, 1);
        CHECK_FILL(to + 100, 100, 2);
    }
}
