/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.12: entries that manage their offset. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE], back[SIZE];

static ptl_handle_me_t append_local(struct scene *s, ptl_size_t length, ptl_size_t min_free,
                                    unsigned options)
{
    ptl_me_t me = suite_entry(s, to, length,
                              PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options);
    me.min_free = min_free;
    return suite_append(s, PTL_PRIORITY_LIST, &me, (void *)5);
}

static void put_at(struct scene *s, ptl_size_t length, ptl_size_t remote, ptl_size_t used,
                   ptl_size_t mlength)
{
    OK(PtlPut(rule_md(s, from, SIZE), 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, remote, NULL, 0));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(mlength), .remote_offset = IS(used));
}

CASE(local_one_after_another, MATCHING_KINDS, SELF | PAIR,
     "3.12: with MANAGE_LOCAL messages land one behind the other; the requested offset has no "
     "effect but stands in the target's event; the initiator hears the offset used")
{
    static const ptl_size_t length[] = {100, 0, 7, 4096, 1, 300};
    if (s->target) {
        append_local(s, SIZE, 0, PTL_ME_MANAGE_LOCAL);
    }
    STEP();
    ptl_size_t at = 0;
    for (unsigned i = 0; i < 6; i++) {
        if (s->initiator) {
            suite_fill(from, length[i], i);
            put_at(s, length[i], 1000 * i, at, length[i]);
        }
        STEP();
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + at), .mlength = IS(length[i]),
                   .remote_offset = IS(1000 * i));
            CHECK_FILL(to + at, length[i], i);
        }
        at += length[i];
    }
}

CASE(local_gets_too, MATCHING_KINDS, SELF | PAIR,
     "3.12: puts, gets and atomics share the one offset of the entry")
{
    if (s->target) {
        suite_fill(to, SIZE, 8);
        append_local(s, SIZE, 0, PTL_ME_MANAGE_LOCAL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, back, SIZE);
        static unsigned char all[SIZE];
        suite_fill(all, SIZE, 8);
        put_at(s, 64, 0, 0, 64);
        OK(PtlGet(md, 0, 100, s->to, SUITE_PT, 0, 3, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .remote_offset = IS(64), .mlength = IS(100));
        CHECK(memcmp(back, all + 64, 100) == 0);
        put_at(s, 4, 0, 164, 4);
        OK(PtlAtomic(md, 0, 16, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_MIN,
                     PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .remote_offset = IS(168));
        OK(PtlGet(md, 0, 5, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .remote_offset = IS(184));
    }
}

CASE(local_truncates, MATCHING_KINDS, SELF | PAIR,
     "3.12: what is cut off moves the offset by what arrived; a full entry takes messages of 0")
{
    if (s->target) {
        append_local(s, 150, 0, PTL_ME_MANAGE_LOCAL);
    }
    STEP();
    if (s->initiator) {
        put_at(s, 100, 0, 0, 100);
        put_at(s, 100, 0, 100, 50);
        put_at(s, 100, 0, 150, 0);
        put_at(s, 0, 0, 150, 0);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(100), .mlength = IS(100));
        EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(100), .mlength = IS(50));
        EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(100), .mlength = IS(0));
        EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(0), .mlength = IS(0));
        NO_EVENT(s->eq);
    }
}

CASE(local_min_free, MATCHING_KINDS, SELF | PAIR,
     "3.12: the entry is unlinked when less than min_free bytes are left, not when exactly as many "
     "are; AUTO_UNLINK follows the event of the message")
{
    if (s->target) {
        append_local(s, 200, 100, PTL_ME_MANAGE_LOCAL);
        append_local(s, 1000, 100, PTL_ME_MANAGE_LOCAL);
    }
    STEP();
    if (s->initiator) {
        put_at(s, 100, 0, 0, 100);
        put_at(s, 0, 0, 100, 0);
        put_at(s, 1, 0, 100, 1);
        put_at(s, 950, 0, 0, 950);
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + 100));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(5));
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(5));
        NO_EVENT(s->eq);
    }
}

CASE(local_min_free_not_local, MATCHING_KINDS, SELF | PAIR,
     "3.12: without MANAGE_LOCAL min_free has no effect")
{
    if (s->target) {
        append_local(s, 100, 100, 0);
    }
    STEP();
    for (int i = 0; i < 3; i++) {
        if (s->initiator) {
            put_at(s, 100, 0, 0, 100);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT);
        }
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

CASE(local_min_free_larger, MATCHING_KINDS, SELF | PAIR,
     "3.12: an entry shorter than its min_free takes one message")
{
    if (s->target) {
        append_local(s, 50, 100, PTL_ME_MANAGE_LOCAL);
    }
    STEP();
    if (s->initiator) {
        put_at(s, 8, 0, 0, 8);
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
    }
}

CASE(local_no_truncate, MATCHING_KINDS, SELF | PAIR,
     "3.12: with NO_TRUNCATE besides, the room that is left decides whether the entry matches")
{
    if (s->target) {
        append_local(s, 100, 0, PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE);
        suite_target(s, PTL_PRIORITY_LIST, back, SIZE, PTL_ME_OP_PUT, (void *)6);
    }
    STEP();
    if (s->initiator) {
        put_at(s, 60, 5000, 0, 60);
        put_at(s, 41, 3, 3, 41);
        put_at(s, 40, 5000, 60, 40);
        put_at(s, 1, 0, 0, 1);
        put_at(s, 0, 70, 100, 0);
    }
    if (s->target) {
        static const int user[] = {5, 6, 5, 6, 5};
        for (int i = 0; i < 5; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(user[i]));
        }
    }
}

CASE(local_may_align, MATCHING_KINDS, SELF | PAIR,
     "3.12: with MAY_ALIGN messages may be placed apart, but never one over another")
{
    enum { COUNT = 20 };
    if (s->target) {
        append_local(s, SIZE, 0, PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        for (int i = 0; i < COUNT; i++) {
            rule_put(s, md, 13, 0, PTL_NI_OK);
        }
    }
    unsigned char *end = to;
    for (int i = 0; i < COUNT && s->target; i++) {
        ptl_event_t e;
        OK(PtlEQWait(s->eq, &e));
        EVENT_IS(e, PTL_EVENT_PUT, .mlength = IS(13));
        CHECK((unsigned char *)e.start >= end && (unsigned char *)e.start < end + 64);
        end = (unsigned char *)e.start + 13;
    }
}

CASE(local_use_once, MATCHING_KINDS, SELF | PAIR,
     "3.12: USE_ONCE with MANAGE_LOCAL takes one message, at offset 0")
{
    if (s->target) {
        append_local(s, 100, 1, PTL_ME_MANAGE_LOCAL | PTL_ME_USE_ONCE);
    }
    STEP();
    if (s->initiator) {
        put_at(s, 10, 40, 0, 10);
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_DROPPED);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        NO_EVENT(s->eq);
    }
}

CASE(local_at_once, MATCHING_KINDS, SELF | PAIR,
     "3.12: AUTO_UNLINK follows the events of all messages that the entry took, long ones too")
{
    enum { LONG = 1 << 20, COUNT = 4 };
    static unsigned char source[LONG], sink[COUNT * LONG];
    if (s->target) {
        ptl_me_t me = suite_entry(s, sink, sizeof(sink),
                                  PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
        me.min_free = 1;
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    }
    STEP();
    if (s->initiator) {
        suite_fill(source, LONG, 1);
        ptl_handle_md_t md = rule_md(s, source, LONG);
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        }
        for (int i = 0; i < COUNT; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
    }
    if (s->target) {
        for (int i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(sink + (size_t)i * LONG));
            CHECK_FILL(sink + (size_t)i * LONG, LONG, 1);
        }
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        NO_EVENT(s->eq);
    }
}

/* ---- Offsets that appending moves ------------------------------------------ */

/* Two unexpected messages of 200 bytes, of which the overflow entry has kept 50 in all. */
static void two_unexpected(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, back, 50,
                     PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 200, 0, PTL_NI_OK);
        rule_put(s, md, 200, 0, PTL_NI_OK);
    }
    STEP();
}

CASE(
    local_inc_headers, MATCHING_KINDS, SELF | PAIR,
    "3.12: with LOCAL_INC_UH_RLENGTH the headers that an entry takes when appended move its offset "
    "by what was asked for; without, they do not")
{
    for (int with = 0; with < 2; with++) {
        two_unexpected(s);
        ptl_handle_me_t entry = 0;
        if (s->target) {
            ptl_me_t me = suite_entry(s, to, SIZE,
                                      PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL |
                                          (with ? PTL_ME_LOCAL_INC_UH_RLENGTH : 0));
            entry = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .rlength = IS(200));
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .rlength = IS(200));
            EXPECT(s->eq, PTL_EVENT_LINK);
        }
        STEP();
        if (s->initiator) {
            put_at(s, 10, 0, with ? 400 : 0, 10);
        }
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + (with ? 400 : 0)));
            suite_unlink(s, entry);
        }
        STEP();
    }
}

CASE(local_inc_min_free, MATCHING_KINDS, SELF | PAIR,
     "3.12: with LOCAL_INC_UH_RLENGTH min_free is looked at after each header; undercut, the entry "
     "is not linked: AUTO_UNLINK, and the other headers stay")
{
    two_unexpected(s);
    if (s->target) {
        ptl_me_t me = suite_entry(
            s, to, 300, PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH);
        me.min_free = 101;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        NO_EVENT(s->eq);
        me.min_free = 100; /* exactly what is left */
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)2);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2));
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(2));
    }
    STEP();
    if (s->initiator) {
        put_at(s, 10, 0, 200, 10);
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(2), .start = IS(to + 200));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(2));
    }
}
