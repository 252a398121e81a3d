/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.10: memory descriptors. */
#include "rule_kit.h"

#include <string.h>
#include <sys/mman.h>

enum { SIZE = 20000 };
static unsigned char from[SIZE], to[SIZE];

/* An entry over `to` that posts no events of messages, at the target. */
static void open_target(struct scene *s, ptl_size_t length)
{
    if (s->target) {
        memset(to, 0, SIZE);
        suite_target(s, PTL_PRIORITY_LIST, to, length,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
}

CASE(md_volatile, ALL_KINDS, SELF | PAIR,
     "3.10: with PTL_MD_VOLATILE the buffer may be changed as soon as the call is back, up to "
     "max_volatile_size")
{
    enum { PIECE = 512, COUNT = 32 };
    ptl_size_t length = s->limits.max_volatile_size < PIECE ? s->limits.max_volatile_size : PIECE;
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, SIZE, PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE);
        for (unsigned i = 0; i < COUNT; i++) {
            suite_fill(from, length, i);
            OK(PtlPut(md, 0, length, i == COUNT - 1 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, s->to, SUITE_PT,
                      0, (ptl_size_t)i * PIECE, NULL, 0));
            memset(from, 0xee, length);
        }
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    for (unsigned i = 0; i < COUNT && s->target; i++) {
        CHECK_FILL(to + i * PIECE, length, i);
    }
}

CASE(md_volatile_longest, ALL_KINDS, SELF | PAIR,
     "3.10: PTL_MD_VOLATILE holds for a put of exactly max_volatile_size, and for atomics")
{
    ptl_size_t length = s->limits.max_volatile_size < SIZE ? s->limits.max_volatile_size : SIZE;
    open_target(s, SIZE);
    ptl_handle_md_t md = suite_md(s, from, SIZE, PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE);
    if (s->initiator) {
        suite_fill(from, length, 3);
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        memset(from, 0xee, length);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        CHECK_FILL(to, length, 3);
        memset(to, 0, SIZE);
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, 256, 4);
        OK(PtlAtomic(md, 0, 256, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_BOR,
                     PTL_UINT64_T));
        memset(from, 0xee, 256);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        CHECK_FILL(to, 256, 4);
    }
}

CASE(
    md_volatile_beyond, ALL_KINDS, SELF | PAIR,
    "3.10: a put beyond max_volatile_size through a PTL_MD_VOLATILE MD is not refused, and arrives")
{
    open_target(s, SIZE);
    if (s->initiator) {
        suite_fill(from, SIZE, 5);
        OK(PtlPut(suite_md(s, from, SIZE, PTL_MD_VOLATILE), 0, SIZE, PTL_ACK_REQ, s->to, SUITE_PT,
                  0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(SIZE));
    }
    STEP();
    if (s->target) {
        CHECK_FILL(to, SIZE, 5);
    }
}

CASE(md_success_disable, ALL_KINDS, SELF | PAIR,
     "3.10: EVENT_SUCCESS_DISABLE keeps back the full events of successes, not those of failures")
{
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, SIZE,
                                      PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_CT_ACK |
                                          PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_SEND);
        OK(PtlPut(md, 0, 100, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlGet(md, 0, 100, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT_CT(s->mdct, 3, 0);
        NO_EVENT(s->mdeq);
        OK(PtlPut(md, 0, 100, PTL_ACK_REQ, s->to, 62, 0, 0, (void *)7, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED, .user_ptr = IS(7));
        OK(PtlGet(md, 0, 100, s->to, 62, 0, 0, (void *)8));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_DROPPED, .user_ptr = IS(8));
        EXPECT_CT(s->mdct, 4, 2);
        NO_EVENT(s->mdeq);
    }
}

CASE(md_send_disable, ALL_KINDS, SELF | PAIR,
     "3.10: EVENT_SEND_DISABLE keeps back SEND events, and only those; they are counted all the "
     "same")
{
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_handle_md_t md =
            suite_md(s, from, SIZE, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_SEND);
        OK(PtlPut(md, 0, 100, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)1, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .user_ptr = IS(1));
        OK(PtlGet(md, 0, 100, s->to, SUITE_PT, 0, 0, (void *)2));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .user_ptr = IS(2));
        EXPECT_CT(s->mdct, 1, 0);
        NO_EVENT(s->mdeq);
    }
}

CASE(md_counts_each, ALL_KINDS, SELF | PAIR,
     "3.10: EVENT_CT_SEND, _ACK and _REPLY each count their own kind, once an operation")
{
    open_target(s, SIZE);
    if (s->initiator) {
        static const unsigned option[3] = {PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_ACK,
                                           PTL_MD_EVENT_CT_REPLY};
        uint64_t word = 1;
        ptl_handle_md_t plain = suite_md_with(s, &word, 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
        for (int i = 0; i < 3; i++) {
            ptl_handle_ct_t ct = suite_ct(s);
            ptl_handle_md_t md = suite_md_with(s, from, SIZE, option[i], PTL_EQ_NONE, ct);
            OK(PtlPut(md, 0, 10, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlAtomic(md, 0, 16, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_MAX,
                         PTL_UINT8_T));
            OK(PtlGet(md, 0, 9000, s->to, SUITE_PT, 0, 0, NULL));
            OK(PtlFetchAtomic(md, 0, plain, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                              PTL_UINT64_T));
            EXPECT_CT(ct, 2, 0);
        }
    }
}

CASE(md_counts_bytes, ALL_KINDS, SELF | PAIR,
     "3.10: EVENT_CT_BYTES counts the bytes asked for of a SEND, those moved of an ACK or REPLY; a "
     "failure counts one failure")
{
    open_target(s, 60);
    if (s->initiator) {
        static const unsigned option[3] = {PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_ACK,
                                           PTL_MD_EVENT_CT_REPLY};
        static const ptl_size_t bytes[3] = {100, 60, 60};
        for (int i = 0; i < 3; i++) {
            ptl_handle_ct_t ct = suite_ct(s);
            ptl_handle_md_t md =
                suite_md_with(s, from, SIZE, option[i] | PTL_MD_EVENT_CT_BYTES, PTL_EQ_NONE, ct);
            OK(PtlPut(md, 0, 100, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlGet(md, 0, 100, s->to, SUITE_PT, 0, 0, NULL));
            EXPECT_CT(ct, bytes[i], 0);
            OK(PtlPut(md, 0, 100, PTL_CT_ACK_REQ, s->to, 62, 0, 0, NULL, 0));
            OK(PtlGet(md, 0, 100, s->to, 62, 0, 0, NULL));
            EXPECT_CT(ct, i == 0 ? 200 : bytes[i], i == 0 ? 0 : 1);
        }
    }
}

CASE(md_many, ALL_KINDS, SELF | PAIR,
     "3.10: many MDs may describe one buffer with other queues, counters and options")
{
    enum { COUNT = 1000 };
    open_target(s, SIZE);
    if (s->initiator) {
        static ptl_handle_md_t md[COUNT];
        ptl_handle_eq_t eq[2] = {s->mdeq, suite_eq(s, 8)};
        for (int i = 0; i < COUNT; i++) {
            md[i] = suite_md_with(s, from, SIZE, i % 3 == 0 ? PTL_MD_EVENT_SEND_DISABLE : 0,
                                  eq[i % 2], PTL_CT_NONE);
        }
        for (int i = 0; i < COUNT; i += 97) {
            OK(PtlPut(md[i], 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)(long)i, 0));
            if (i % 3 != 0) {
                EXPECT(eq[i % 2], PTL_EVENT_SEND, .user_ptr = IS(i));
            }
            NO_EVENT(eq[0]);
            NO_EVENT(eq[1]);
        }
    }
}

CASE(md_whole_space, ALL_KINDS, SELF | PAIR,
     "3.10: an MD from null of PTL_SIZE_MAX bytes spans the address space: offsets are addresses")
{
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE);
        static unsigned char back[SIZE];
        suite_fill(from, SIZE, 6);
        memset(back, 0, SIZE);
        OK(PtlPut(md, (ptl_size_t)from, SIZE, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(SIZE));
        OK(PtlGet(md, (ptl_size_t)back, SIZE, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(SIZE));
        CHECK_FILL(back, SIZE, 6);
    }
}

CASE(md_copied, ALL_KINDS, SELF | PAIR,
     "3.10: the structure that PtlMDBind was given may be changed behind the call")
{
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_md_t bind = {from, 8, PTL_MD_EVENT_SEND_DISABLE, s->mdeq, PTL_CT_NONE};
        ptl_handle_md_t md;
        OK(PtlMDBind(s->ni, &bind, &md));
        suite_own(s, MADE_MD, md);
        memset(&bind, 0xff, sizeof(bind));
        from[0] = 99;
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
        INVALID(PtlPut(md, 1, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    }
    STEP();
    if (s->target) {
        CHECK_EQ(to[0], 99);
    }
}

CASE(md_release_in_use, ALL_KINDS, SELF,
     "3.10: an MD that a triggered operation waits with is in use; cancelled, it is free")
{
    ptl_handle_md_t md = suite_md(s, from, 8, 0);
    OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, s->ct, 1));
    CODE(PtlMDRelease(md), PTL_IN_USE);
    OK(PtlCTCancelTriggered(s->ct));
    OK(PtlMDRelease(md));
    INVALID(PtlMDRelease(md));
    INVALID(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
}

CASE(md_release_under_way, ALL_KINDS, SELF | PAIR,
     "3.10: an MD cannot be released before its operations have ended; behind their last event it "
     "can")
{
    enum { LONG = 4 << 20 };
    static unsigned char memory[LONG], other[LONG];
    if (s->target) {
        memset(other, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, other, LONG, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        suite_fill(memory, LONG, 9);
        ptl_handle_md_t md = rule_md(s, memory, LONG);
        OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        int code = PtlMDRelease(md);
        CHECK(code == PTL_OK || code == PTL_IN_USE);
        if (code == PTL_IN_USE) {
            suite_release(s, md);
        }
        /* released: so it has ended, and its events are there */
        ptl_event_t e;
        OK(PtlEQGet(s->mdeq, &e));
        EVENT_IS(e, PTL_EVENT_ACK, .mlength = IS(LONG));
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(LONG));
        CHECK_FILL(other, LONG, 9);
    }
}

CASE(md_release_behind_event, ALL_KINDS, SELF | PAIR,
     "3.10: whoever has seen the last event of an MD can release it at once")
{
    open_target(s, SIZE);
    for (int i = 0; i < 20 && s->initiator; i++) {
        ptl_handle_md_t md = suite_md_with(s, from, SIZE, 0, s->mdeq, PTL_CT_NONE);
        OK(PtlPut(md, 0, i % 2 ? 8 : SIZE, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        OK(PtlMDRelease(md));
        md = suite_md_with(s, from, SIZE, 0, s->mdeq, PTL_CT_NONE);
        OK(PtlGet(md, 0, i % 2 ? 8 : SIZE, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        OK(PtlMDRelease(md));
        md = suite_md_with(s, from, SIZE, 0, s->mdeq, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        OK(PtlMDRelease(md));
    }
}

CASE(md_unreliable, ALL_KINDS, SELF | PAIR,
     "3.10: an MD with PTL_MD_UNRELIABLE sends puts without ack; with PTL_ACK_REQ they are refused")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, SIZE, PTL_MD_UNRELIABLE);
        INVALID(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 11));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
    }
    if (s->target) {
        /* this library loses none */
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(11));
    }
}

CASE(md_queue_freed, ALL_KINDS, SELF | PAIR,
     "3.13: the events of an MD whose queue was freed are lost; the message is not")
{
    open_target(s, SIZE);
    if (s->initiator) {
        ptl_handle_eq_t eq;
        OK(PtlEQAlloc(s->ni, 4, &eq));
        ptl_handle_md_t md = suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, eq, s->mdct);
        suite_fill(from, 100, 4);
        OK(PtlEQFree(eq));
        OK(PtlPut(md, 0, 100, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(s->mdct, 1, 0);
    }
    STEP();
    if (s->target) {
        CHECK_FILL(to, 100, 4);
    }
}

CASE(md_unreadable, ALL_KINDS, SELF | PAIR,
     "3.10: a source that is not mapped ends the operation with PTL_NI_SEGV, not the process")
{
    open_target(s, SIZE);
    if (s->initiator) {
        void *nowhere = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(nowhere != MAP_FAILED);
        ptl_handle_md_t md = rule_md(s, nowhere, SIZE);
        static const ptl_size_t length[3] = {8, 1000, SIZE};
        for (int i = 0; i < 3; i++) {
            OK(PtlPut(md, 0, length[i], PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            ptl_event_t e;
            OK(PtlEQWait(s->mdeq, &e));
            CHECK_EQ(e.ni_fail_type, PTL_NI_SEGV);
            CHECK(e.type == PTL_EVENT_ACK || e.type == PTL_EVENT_SEND);
            if (e.type == PTL_EVENT_SEND) {
                EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_SEGV);
            }
            OK(PtlGet(md, 0, length[i], s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_SEGV);
        }
        munmap(nowhere, SIZE);
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
    }
}
