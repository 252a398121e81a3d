/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs and run times do with the interface, rule by rule where unit tests of a
 * library usually do not look: structures left zero, one interface opened by several users,
 * eager and rendezvous buffers, counting fences, flow control by counters.
 */
#include "rule_kit.h"

#include <string.h>

enum { SIZE = 20000 };
static unsigned char from[SIZE], to[SIZE];

CASE(zeroed_structures, ALL_KINDS, SELF | PAIR,
     "3.10, 3.12: a ct_handle that is 0, or anything, is not looked at where no EVENT_CT_ option "
     "refers to it")
{
    static const ptl_handle_ct_t junk[] = {0, 1, 0x12345678, PTL_INVALID_HANDLE, PTL_CT_NONE};
    for (int i = 0; i < 5; i++) {
        ptl_handle_me_t entry = 0;
        if (s->target) {
            ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
            me.ct_handle = junk[i];
            entry = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        }
        STEP();
        if (s->initiator) {
            ptl_md_t bind = {
                .start = from, .length = SIZE, .eq_handle = s->mdeq, .ct_handle = junk[i]};
            ptl_handle_md_t md;
            OK(PtlMDBind(s->ni, &bind, &md));
            suite_own(s, MADE_MD, md);
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_SEND);
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        STEP();
        if (s->target) {
            EXPECT(s->eq, PTL_EVENT_PUT);
            suite_unlink(s, entry);
        }
        STEP();
    }
}

CASE(counter_needed, ALL_KINDS, SELF,
     "3.10, 3.12: where an EVENT_CT_ option refers to it, ct_handle must be a counter")
{
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM);
    me.ct_handle = 0;
    ptl_handle_me_t entry;
    INVALID(suite_append_code(s, SUITE_PT, PTL_PRIORITY_LIST, &me, NULL, &entry));
    ptl_md_t bind = {from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, 0};
    ptl_handle_md_t md;
    INVALID(PtlMDBind(s->ni, &bind, &md));
}

CASE(three_users, ALL_KINDS, BARE,
     "3.6.2: three users of one interface have objects of their own; the first to leave takes "
     "nothing from the others")
{
    struct scene user[3];
    for (int i = 0; i < 3; i++) {
        user[i] = *s;
        OK(PtlInit());
        OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, &user[i].limits,
                     &user[i].ni));
        CHECK_EQ(user[i].ni, user[0].ni);
        ptl_process_t id;
        OK(PtlGetPhysId(user[i].ni, &id));
        if (s->logical) {
            CODE(PtlSetMap(user[i].ni, 1, &id), i == 0 ? PTL_OK : PTL_IGNORED);
            memset(&id, 0, sizeof(id));
        }
        user[i].to = user[i].from = id;
        ptl_pt_index_t index;
        OK(PtlEQAlloc(user[i].ni, 64, &user[i].eq));
        OK(PtlPTAlloc(user[i].ni, 0, user[i].eq, (ptl_pt_index_t)(12 + i), &index));
        ptl_me_t me = suite_entry(&user[i], to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t entry;
        OK(suite_append_code(&user[i], index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    }
    for (int left = 0; left < 3; left++) {
        for (int i = left; i < 3; i++) {
            struct scene *s = &user[i]; /* the checks speak of it */
            ptl_md_t bind = {from, SIZE, PTL_MD_EVENT_SEND_DISABLE, s->eq, PTL_CT_NONE};
            ptl_handle_md_t md;
            OK(PtlMDBind(s->ni, &bind, &md));
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, (ptl_pt_index_t)(12 + i), 0, 0, NULL,
                      (ptl_hdr_data_t)i));
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
            OK(PtlMDRelease(md));
        }
        OK(PtlNIFini(user[left].ni));
        PtlFini();
    }
    ptl_process_t id;
    CODE(PtlGetPhysId(user[0].ni, &id), PTL_NO_INIT);
}

CASE(self_counted, ALL_KINDS, SELF,
     "3.14: acks of puts to oneself are counted exactly, with a wait for a count that is passed")
{
    suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    ptl_handle_md_t md = suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
    ptl_ct_event_t v;
    for (ptl_size_t i = 1; i <= 200; i++) {
        OK(PtlPut(md, 0, i % 4 == 0 ? SIZE : 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlCTWait(s->mdct, i, &v));
        OK(PtlCTWait(s->mdct, i / 2, &v));
        CHECK(v.success == i && v.failure == 0);
    }
}

CASE(eager_buffers, MATCHING_KINDS, SELF | PAIR,
     "3.12: sixteen use-once buffers for one peer: as many puts land, in order; the next one is "
     "dropped with a failing ACK and arrives when a buffer is posted again")
{
    enum { BUFFERS = 16, EAGER = 1024 };
    ptl_me_t me = suite_entry(s, to, EAGER,
                              PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_UNLINK_DISABLE);
    me.match_id = s->from;
    for (long i = 0; i < BUFFERS && s->target; i++) {
        me.start = to + i * EAGER;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)i);
    }
    STEP();
    ptl_handle_md_t md =
        suite_md(s, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_VOLATILE);
    if (s->initiator) {
        for (long i = 0; i <= BUFFERS; i++) {
            OK(PtlPut(md, (ptl_size_t)from, EAGER, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, (void *)i,
                      (ptl_hdr_data_t)i));
        }
        for (long i = 0; i <= BUFFERS; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK, .user_ptr = IS(i),
                   .fail = i < BUFFERS ? PTL_NI_OK : PTL_NI_DROPPED);
        }
    }
    STEP();
    if (s->target) {
        for (int i = 0; i < BUFFERS; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i), .hdr_data = IS(i),
                   .start = IS(to + i * EAGER));
        }
        me.start = to;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)50);
    }
    STEP();
    if (s->initiator) {
        OK(PtlPut(md, (ptl_size_t)from, EAGER, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, BUFFERS));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(50), .hdr_data = IS(BUFFERS));
    }
}

CASE(rendezvous_fragments, MATCHING_KINDS, SELF | PAIR,
     "3.12: a receiver that waits for LINK before it answers gets all fragments, one behind the "
     "other, in an entry without message events")
{
    enum { FRAGMENT = 7000, COUNT = 40 };
    static unsigned char whole[FRAGMENT * COUNT], sink[FRAGMENT * COUNT];
    if (s->target) {
        memset(sink, 0, sizeof(sink));
        ptl_me_t me = suite_entry(s, sink, sizeof(sink),
                                  PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL |
                                      PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
        me.match_bits = 77;
        me.ignore_bits = 0;
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1));
    }
    STEP();
    if (s->initiator) {
        suite_fill(whole, sizeof(whole), 1);
        ptl_handle_md_t md =
            suite_md(s, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_VOLATILE);
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md, (ptl_size_t)whole + (ptl_size_t)i * FRAGMENT, FRAGMENT, PTL_ACK_REQ,
                      s->to, SUITE_PT, 77, 0, NULL, 0));
        }
        for (ptl_size_t i = 0; i < COUNT; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(FRAGMENT),
                   .remote_offset = IS(i * FRAGMENT));
        }
    }
    STEP();
    if (s->target) {
        CHECK_FILL(sink, sizeof(sink), 1);
        NO_EVENT(s->eq);
    }
}

CASE(counting_fence, ALL_KINDS, SELF | PAIR,
     "3.14: a fence that waits until as many acks and replies are counted as operations were "
     "issued: behind it everything has happened")
{
    enum { ROUNDS = 20, EACH = 25 };
    static uint64_t cell[EACH], source[EACH], copy[EACH];
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, cell, sizeof(cell),
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_SUCCESS_DISABLE |
                         PTL_ME_EVENT_CT_COMM,
                     NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t put =
            suite_md_with(s, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE,
                          s->mdeq, s->mdct);
        ptl_handle_ct_t replies = suite_ct(s);
        ptl_handle_md_t get =
            suite_md_with(s, NULL, PTL_SIZE_MAX,
                          PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SUCCESS_DISABLE, s->mdeq, replies);
        ptl_size_t puts = 0, gets = 0;
        ptl_ct_event_t v;
        for (uint64_t r = 1; r <= ROUNDS; r++) {
            for (ptl_size_t i = 0; i < EACH; i++) {
                source[i] = 1000 * r + i;
                OK(PtlPut(put, (ptl_size_t)&source[i], 8, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 8 * i,
                          NULL, 0));
                puts++;
            }
            OK(PtlCTWait(s->mdct, puts, &v));
            CHECK(v.success == puts && v.failure == 0);
            memset(copy, 0, sizeof(copy));
            for (ptl_size_t i = 0; i < EACH; i++) {
                OK(PtlGet(get, (ptl_size_t)&copy[i], 8, s->to, SUITE_PT, 0, 8 * i, NULL));
                gets++;
            }
            OK(PtlCTWait(replies, gets, &v));
            CHECK(v.success == gets && v.failure == 0);
            CHECK(memcmp(copy, source, sizeof(copy)) == 0);
        }
        NO_EVENT(s->mdeq);
    }
    if (s->target) {
        EXPECT_CT(s->ct, 2 * ROUNDS * EACH, 0);
        NO_EVENT(s->eq);
    }
}

CASE(whole_memory, ALL_KINDS, SELF | PAIR,
     "3.12: an entry from null of PTL_SIZE_MAX bytes spans the address space: remote offsets are "
     "addresses there, and NO_TRUNCATE matches them")
{
    static uint64_t word, value, back;
    word = 0;
    suite_show(s, 1, (uint64_t)(uintptr_t)&word);
    if (s->target) {
        unsigned options = s->matching ? PTL_ME_NO_TRUNCATE : 0;
        suite_target(s, PTL_PRIORITY_LIST, NULL, PTL_SIZE_MAX,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | options, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_size_t at = suite_look(s, s->size - 1, 1);
        value = 0x1122334455667788u;
        OK(PtlPut(rule_md(s, &value, 8), 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, at, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8), .remote_offset = IS(at));
        OK(PtlGet(rule_md(s, &back, 8), 0, 8, s->to, SUITE_PT, 0, at, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
        CHECK_EQ(back, value);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(&word));
        CHECK_EQ(word, 0x1122334455667788u);
    }
}

CASE(truncating_last_resort, MATCHING_KINDS, SELF | PAIR,
     "3.12: behind blocks that do not truncate, an overflow entry of no bytes takes what is too "
     "long; its header tells how long it was, and a get fetches it")
{
    static unsigned char block[4096];
    if (s->target) {
        ptl_me_t me = suite_entry(s, block, sizeof(block),
                                  PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE |
                                      PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
        me.min_free = 1;
        suite_append(s, PTL_OVERFLOW_LIST, &me, NULL);
        suite_target(s, PTL_OVERFLOW_LIST, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE,
                     NULL);
    }
    ptl_pt_index_t read = suite_pt(s, 0, PTL_EQ_NONE, 13);
    ptl_me_t me = suite_entry(s, from, SIZE, PTL_ME_OP_GET);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, read, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        suite_fill(from, SIZE, 5);
        rule_put(s, rule_md(s, from, SIZE), SIZE, 1, PTL_NI_OK);
        rule_put(s, rule_md(s, from, SIZE), 100, 2, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        unsigned once = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, once, NULL);
        ptl_event_t e =
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .rlength = IS(SIZE), .mlength = IS(0));
        static unsigned char fetched[SIZE];
        OK(PtlGet(rule_md(s, fetched, SIZE), 0, e.rlength, e.initiator, read, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(SIZE));
        CHECK_FILL(fetched, SIZE, 5);
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, once, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .rlength = IS(100), .mlength = IS(100),
               .start = IS(block));
    }
}

CASE(barrier_tree, ALL_KINDS, SELF | PAIR,
     "3.16: a tree of counters: an entry of no bytes, without acks or events, counts; the count "
     "triggers a put onwards, an atomic of no bytes, and the reset of the counter")
{
    enum { ROUNDS = 10 };
    ptl_pt_index_t up = suite_pt(s, 0, PTL_EQ_NONE, 15), down = suite_pt(s, 0, s->mdeq, 16);
    ptl_me_t me = suite_entry(s, NULL, 0,
                              PTL_ME_OP_PUT | PTL_ME_ACK_DISABLE | PTL_ME_EVENT_LINK_DISABLE |
                                  PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                                  PTL_ME_EVENT_CT_COMM);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, up, PTL_PRIORITY_LIST, &me, NULL, &entry));
    me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    OK(suite_append_code(s, down, PTL_PRIORITY_LIST, &me, NULL, &entry));
    ptl_handle_md_t md = suite_md_with(s, NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
    for (int r = 0; r < ROUNDS; r++) {
        if (s->target) {
            OK(PtlTriggeredPut(md, 0, 0, PTL_NO_ACK_REQ, s->from, down, 0, 0, NULL, 0, s->ct, 2));
            OK(PtlTriggeredAtomic(md, 0, 0, PTL_NO_ACK_REQ, s->from, down, 0, 0, NULL, 0, PTL_SUM,
                                  PTL_INT32_T, s->ct, 2));
            OK(PtlTriggeredCTSet(s->ct, (ptl_ct_event_t){0, 0}, s->ct, 2));
        }
        STEP();
        if (s->initiator) {
            OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, s->to, up, 0, 0, NULL, 0));
            OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, s->to, up, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_PUT, .pt_index = IS(down));
            EXPECT(s->mdeq, PTL_EVENT_ATOMIC, .pt_index = IS(down), .rlength = IS(0));
        }
        STEP();
        if (s->target) {
            EXPECT_CT(s->ct, 0, 0);
        }
    }
}

CASE(retried_frees, ALL_KINDS, PAIR,
     "3.7.2, 3.12.2: a program that tries PtlMEUnlink and PtlPTFree again while they say in use "
     "comes to an end, while peers still send")
{
    if (s->target) {
        ptl_handle_eq_t eq = suite_eq(s, 4096);
        ptl_pt_index_t index;
        OK(PtlPTAlloc(s->ni, 0, eq, 14, &index));
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t entry;
        OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
        STEP();
        EXPECT(eq, PTL_EVENT_PUT);
        suite_unlink(s, entry);
        int code;
        uint64_t end = suite_deadline();
        while ((code = PtlPTFree(s->ni, index)) == PTL_PT_IN_USE && suite_now_ms() < end) {
            rule_nudge(s, 0);
        }
        CODE(code, PTL_OK);
    } else {
        STEP();
        ptl_handle_md_t md =
            suite_md_with(s, from, SIZE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
        for (int i = 0; i < 300; i++) {
            OK(PtlPut(md, 0, i % 3 ? 64 : SIZE, PTL_CT_ACK_REQ, s->to, 14, 0, 0, NULL, 0));
        }
        ptl_ct_event_t v = {0, 0};
        for (uint64_t end = suite_deadline();
             v.success + v.failure < 300 && suite_now_ms() < end;) {
            OK(PtlCTGet(s->mdct, &v));
        }
        CHECK_EQ(v.success + v.failure, 300);
    }
}

CASE(fields_of_puts, ALL_KINDS, SELF | PAIR,
     "3.13: a PUT event has every field of the message and the entry")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, (void *)0x123456789a);
    }
    STEP();
    if (s->initiator) {
        OK(PtlPut(rule_md(s, from, SIZE), 100, 700, PTL_ACK_REQ, s->to, SUITE_PT,
                  0xfedcba9876543210u, 300, (void *)7, 0x0123456789abcdefu));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .user_ptr = IS(7), .mlength = IS(700),
               .remote_offset = IS(300));
    }
    if (s->target) {
        ptl_event_t e =
            EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(to + 300), .user_ptr = IS(0x123456789a),
                   .hdr_data = IS(0x0123456789abcdefu), .rlength = IS(700), .mlength = IS(700),
                   .remote_offset = IS(300), .initiator = &s->from, .pt_index = IS(SUITE_PT),
                   .list = IS(PTL_PRIORITY_LIST));
        CHECK(!s->matching || e.match_bits == 0xfedcba9876543210u);
    }
}
