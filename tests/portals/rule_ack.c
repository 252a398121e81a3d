/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.13, 3.15: what the initiator hears of its operations. */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];

static void open_target(struct scene *s, ptl_size_t length, unsigned options)
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, length,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | options, NULL);
    }
    STEP();
}

static ptl_handle_md_t counting_md(struct scene *s, unsigned options)
{
    return suite_md(s, from, SIZE, PTL_MD_EVENT_CT_ACK | options);
}

CASE(ack_none, ALL_KINDS, SELF | PAIR,
     "3.15: without ack request there is a SEND and no ACK, not even of a failure, and no count")
{
    open_target(s, SIZE, 0);
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, 0);
        for (long i = 0; i < 3; i++) {
            OK(PtlPut(md, 0, i == 2 ? SIZE : 8, PTL_NO_ACK_REQ, s->to, i == 1 ? 60 : SUITE_PT, 0, 0,
                      (void *)i, 0));
            EXPECT(s->mdeq, PTL_EVENT_SEND, .user_ptr = IS(i));
        }
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK); /* all that came before is over */
        NO_EVENT(s->mdeq);
        EXPECT_CT(s->mdct, 0, 0);
    }
}

CASE(ack_full, ALL_KINDS, SELF | PAIR,
     "3.15: PTL_ACK_REQ gives one ACK event behind SEND, and a count if the MD has EVENT_CT_ACK")
{
    open_target(s, 100, 0);
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, 0);
        for (long i = 0; i < 4; i++) {
            OK(PtlPut(md, 0, i % 2 ? SIZE : 50, PTL_ACK_REQ, s->to, SUITE_PT, 0, 10, (void *)i, 0));
            EXPECT(s->mdeq, PTL_EVENT_SEND, .user_ptr = IS(i));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .user_ptr = IS(i), .mlength = IS(i % 2 ? 90 : 50),
                   .remote_offset = IS(10));
            EXPECT_CT(s->mdct, i + 1, 0);
        }
        NO_EVENT(s->mdeq);
    }
}

CASE(ack_counted, ALL_KINDS, SELF | PAIR,
     "3.15: PTL_CT_ACK_REQ gives a count and no ACK event; with EVENT_CT_BYTES the bytes that "
     "arrived")
{
    open_target(s, 100, 0);
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 500, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(s->mdct, 1, 0);
        md = counting_md(s, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_BYTES);
        OK(PtlPut(md, 0, 500, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 30, NULL, 0));
        EXPECT_CT(s->mdct, 71, 0);
        OK(PtlPut(md, 0, 500, PTL_CT_ACK_REQ, s->to, 60, 0, 0, NULL, 0));
        EXPECT_CT(s->mdct, 71, 1);
        NO_EVENT(s->mdeq);
    }
}

CASE(ack_completed, ALL_KINDS, SELF | PAIR,
     "3.15: PTL_OC_ACK_REQ gives one count that the operation is over, never bytes, and no event")
{
    open_target(s, 100, 0);
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_BYTES);
        OK(PtlPut(md, 0, 500, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT_CT(s->mdct, 1, 0);
        OK(PtlAtomic(md, 0, 16, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                     PTL_UINT64_T));
        EXPECT_CT(s->mdct, 2, 0);
        NO_EVENT(s->mdeq);
    }
}

CASE(ack_completed_dropped, ALL_KINDS, SELF | PAIR,
     "3.15: PTL_OC_ACK_REQ is answered for dropped and violating messages, too: counted once")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, s->to, 60, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        ptl_ct_event_t v = {0, 0};
        for (uint64_t end = suite_deadline(); v.success + v.failure < 2 && suite_now_ms() < end;) {
            OK(PtlCTGet(s->mdct, &v));
        }
        EXPECT_CT(s->mdct, v.success, 2 - v.success);
        NO_EVENT(s->mdeq);
    }
}

CASE(ack_completed_no_counter, ALL_KINDS, SELF | PAIR,
     "3.15: PTL_OC_ACK_REQ needs neither queue nor counter")
{
    open_target(s, SIZE, 0);
    if (s->initiator) {
        ptl_handle_md_t md = suite_md_with(s, from, SIZE, 0, PTL_EQ_NONE, PTL_CT_NONE);
        OK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        suite_release(s, md);
    }
}

CASE(ack_needs, ALL_KINDS, SELF,
     "3.15: PTL_ACK_REQ needs a queue in the MD, PTL_CT_ACK_REQ a counter")
{
    ptl_handle_md_t none = suite_md_with(s, from, SIZE, 0, PTL_EQ_NONE, PTL_CT_NONE);
    INVALID(PtlPut(none, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    INVALID(PtlPut(none, 0, 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    ptl_handle_md_t counter =
        suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
    INVALID(PtlPut(counter, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    ptl_handle_md_t queue = suite_md_with(s, from, SIZE, 0, s->mdeq, PTL_CT_NONE);
    INVALID(PtlPut(queue, 0, 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    NO_EVENT(s->mdeq);
    EXPECT_CT(s->mdct, 0, 0);
}

CASE(ack_not_counted, ALL_KINDS, SELF | PAIR,
     "3.10: an MD with a counter but without EVENT_CT_ACK counts no acks, whatever is requested")
{
    open_target(s, SIZE, 0);
    if (s->initiator) {
        ptl_handle_md_t md =
            suite_md_with(s, from, SIZE, PTL_MD_EVENT_SEND_DISABLE, s->mdeq, s->mdct);
        OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        EXPECT_CT(s->mdct, 0, 0);
    }
}

CASE(ack_unseen, ALL_KINDS, SELF | PAIR,
     "3.10: an MD that does not count acks is free behind SEND when only counted acks were asked "
     "for: nothing would ever tell the program that they have come")
{
    open_target(s, SIZE, 0);
    for (int i = 0; i < 50 && s->initiator; i++) {
        ptl_handle_md_t md;
        ptl_md_t bind = {from, SIZE, PTL_MD_EVENT_CT_SEND, s->mdeq, s->mdct};
        OK(PtlMDBind(s->ni, &bind, &md));
        OK(PtlPut(md, 0, i % 3 == 2 ? SIZE : 8, i % 2 == 0 ? PTL_CT_ACK_REQ : PTL_OC_ACK_REQ, s->to,
                  SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_SEND);
        OK(PtlMDRelease(md));
        EXPECT_CT(s->mdct, (ptl_size_t)i + 1, 0);
    }
}

CASE(ack_frees, ALL_KINDS, SELF | PAIR,
     "3.13: ACK implies that the buffer is free, without SEND as well: the MD can be released, one "
     "that lists parts of memory, too")
{
    open_target(s, SIZE, 0);
    for (int i = 0; i < 60 && s->initiator; i++) {
        ptl_iovec_t parts[3] = {{from, 1}, {from + 1, 1400}, {from + 1401, SIZE - 1401}};
        ptl_md_t bind = {from, SIZE, PTL_MD_EVENT_SEND_DISABLE, s->mdeq, PTL_CT_NONE};
        if (i % 2 == 0) {
            bind.start = parts;
            bind.length = 3;
            bind.options |= PTL_IOVEC;
        }
        ptl_handle_md_t md;
        OK(PtlMDBind(s->ni, &bind, &md));
        static const ptl_size_t length[3] = {8, 2000, SIZE};
        OK(PtlPut(md, 0, length[i % 3], PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(length[i % 3]));
        OK(PtlMDRelease(md));
    }
}

CASE(ack_withheld, ALL_KINDS, SELF | PAIR,
     "3.12: what lands in an entry with ACK_DISABLE is not acknowledged, in no form; the operation "
     "ends all the same and the MD is free")
{
    open_target(s, SIZE, PTL_ME_ACK_DISABLE);
    if (s->initiator) {
        ptl_handle_md_t md = counting_md(s, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, SIZE, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlPut(md, 0, 8, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        suite_release(s, md);
        NO_EVENT(s->mdeq);
        EXPECT_CT(s->mdct, 0, 0);
        ptl_handle_md_t in = rule_md(s, from, SIZE);
        OK(PtlGet(in, 0, 8, s->to, SUITE_PT, 0, 0, NULL)); /* a reply is no ack */
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
    }
}

CASE(ack_user_ptr, ALL_KINDS, SELF | PAIR,
     "3.13: SEND, ACK and REPLY have the user_ptr of their operation, also when the use-once entry "
     "that took it is gone")
{
    if (s->target) {
        for (int i = 0; i < 30; i++) {
            suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                         PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                             PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                         (void *)1000);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t put = rule_md(s, from, SIZE);
        ptl_handle_md_t get = suite_md(s, to, s->target ? 0 : SIZE, 0);
        for (long i = 0; i < 15; i++) {
            OK(PtlPut(put, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)(2 * i), 0));
            OK(PtlGet(get, 0, s->target ? 0 : 100, s->to, SUITE_PT, 0, 0, (void *)(2 * i + 1)));
        }
        for (long i = 0; i < 30; i++) {
            EXPECT(s->mdeq, i % 2 ? PTL_EVENT_REPLY : PTL_EVENT_ACK, .user_ptr = IS(i));
        }
        rule_put(s, put, 8, 0, PTL_NI_DROPPED);
    }
}

CASE(ack_list, ALL_KINDS, SELF | PAIR,
     "3.13: ACK and REPLY tell in ptl_list which list the entry was in")
{
    for (int list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
        ptl_handle_me_t entry = 0;
        if (s->target) {
            entry =
                suite_target(s, (ptl_list_t)list, to, SIZE,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_UNEXPECTED_HDR_DISABLE, NULL);
        }
        STEP();
        if (s->initiator) {
            ptl_handle_md_t md = rule_md(s, from, SIZE);
            static const ptl_size_t length[2] = {8, SIZE};
            for (int i = 0; i < 2; i++) {
                OK(PtlPut(md, 0, length[i], PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
                EXPECT(s->mdeq, PTL_EVENT_ACK, .list = IS(list));
                OK(PtlGet(md, 0, length[i], s->to, SUITE_PT, 0, 0, NULL));
                EXPECT(s->mdeq, PTL_EVENT_REPLY, .list = IS(list));
            }
        }
        STEP();
        if (s->target) {
            suite_unlink(s, entry);
        }
        STEP();
    }
}

CASE(ack_means_done, ALL_KINDS, SELF | PAIR,
     "3.13: an ACK tells that the data are in the target's memory, and its event is there")
{
    static uint64_t word;
    word = 0;
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, &word, 8, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    uint64_t value = 0;
    ptl_handle_md_t md = rule_md(s, &value, 8);
    for (uint64_t i = 1; i <= 20; i++) {
        if (s->initiator) {
            value = i;
            rule_put(s, md, 8, 0, PTL_NI_OK);
        }
        STEP();
        if (s->target) {
            ptl_event_t e;
            CHECK_EQ(word, i);
            OK(PtlEQGet(s->eq, &e));
        }
        STEP();
    }
}

CASE(send_alone, ALL_KINDS, SELF | PAIR,
     "3.13: behind SEND the buffer may be changed, whether the data have arrived or not")
{
    enum { COUNT = 24, LONG = 150000 };
    static unsigned char source[LONG], sink[COUNT][LONG];
    if (s->target) {
        ptl_me_t me = suite_entry(s, sink, sizeof(sink), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    }
    STEP();
    static const ptl_size_t length[3] = {8, 1500, LONG};
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, source, LONG, 0);
        for (unsigned i = 0; i < COUNT; i++) {
            suite_fill(source, LONG, i);
            OK(PtlPut(md, 0, length[i % 3], PTL_NO_ACK_REQ, s->to, SUITE_PT, 0,
                      (ptl_size_t)i * LONG, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_SEND);
            memset(source, 0xdd, LONG);
        }
    }
    for (unsigned i = 0; i < COUNT && s->target; i++) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(length[i % 3]));
        CHECK_FILL(sink[i], length[i % 3], i);
    }
}

CASE(fetch_two_mds, ALL_KINDS, SELF | PAIR,
     "3.15: a fetch posts SEND for its put MD and REPLY for its get MD, each counted there")
{
    open_target(s, SIZE, 0);
    if (s->initiator) {
        static uint64_t word[2];
        ptl_handle_eq_t eq = suite_eq(s, 8);
        ptl_handle_ct_t ct = suite_ct(s);
        ptl_handle_md_t put = suite_md_with(
            s, &word[0], 8, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK, eq,
            ct);
        ptl_handle_md_t get = suite_md(s, &word[1], 8,
                                       PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY |
                                           PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES);
        OK(PtlFetchAtomic(get, 0, put, 0, 8, s->to, SUITE_PT, 0, 0, (void *)6, 0, PTL_SUM,
                          PTL_UINT64_T));
        EXPECT(eq, PTL_EVENT_SEND, .user_ptr = IS(6));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .user_ptr = IS(6), .mlength = IS(8));
        EXPECT_CT(ct, 1, 0);
        EXPECT_CT(s->mdct, 8, 0);
        NO_EVENT(eq);
        NO_EVENT(s->mdeq);
    }
}

CASE(get_no_send, ALL_KINDS, SELF | PAIR,
     "3.15: a get posts one REPLY and nothing else, behind which its data are there")
{
    if (s->target) {
        suite_fill(to, SIZE, 7);
    }
    open_target(s, SIZE, 0);
    if (s->initiator) {
        static unsigned char back[SIZE];
        ptl_handle_md_t md = suite_md(s, back, SIZE, 0);
        static const ptl_size_t length[4] = {0, 8, 1000, SIZE};
        for (int i = 0; i < 4; i++) {
            memset(back, 0, SIZE);
            OK(PtlGet(md, 0, length[i], s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(length[i]));
            CHECK_FILL(back, length[i], 7);
            NO_EVENT(s->mdeq);
        }
    }
}

CASE(nobody_there, ALL_KINDS, SELF,
     "3.13: operations on a process that does not exist end with PTL_NI_UNDELIVERABLE, each once, "
     "and their MD can be released")
{
    ptl_handle_md_t md = suite_md(
        s, from, SIZE, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY);
    ptl_process_t nobody = suite_bystander(s);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, nobody, SUITE_PT, 0, 0, (void *)1, 0));
    OK(PtlPut(md, 0, SIZE, PTL_CT_ACK_REQ, nobody, SUITE_PT, 0, 0, (void *)2, 0));
    OK(PtlGet(md, 0, 8, nobody, SUITE_PT, 0, 0, (void *)3));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_UNDELIVERABLE, .user_ptr = IS(1));
    EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_UNDELIVERABLE, .user_ptr = IS(3));
    EXPECT_CT(s->mdct, 0, 3);
    NO_EVENT(s->mdeq);
    OK(PtlMDRelease(md));
}
