/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.1 and 3.6.1: messages between two processes are matched in order, data are ordered. */
#include "rule_kit.h"

#include <string.h>

enum { LONGEST = 300000 };
static const ptl_size_t sizes[] = {0,    8,       1,     64,    4096, 100000, 1024, 7,
                                   4097, LONGEST, 65536, 65537, 8,    200000, 0,    8192};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
static unsigned char from[LONGEST], to[LONGEST], back[LONGEST];

CASE(order_of_puts, ALL_KINDS, SELF | PAIR,
     "3.1: puts of all lengths, of several MDs, are matched in the order of the calls")
{
    enum { COUNT = 160 };
    if (s->target) {
        for (long i = 0; i < COUNT; i++) {
            suite_target(s, PTL_PRIORITY_LIST, to, LONGEST,
                         PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, (void *)i);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md[2];
        for (int i = 0; i < 2; i++) {
            md[i] = suite_md_with(s, from, LONGEST, PTL_MD_EVENT_CT_ACK | (i ? PTL_MD_VOLATILE : 0),
                                  PTL_EQ_NONE, s->mdct);
        }
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md[i % 2], 0, sizes[i % SIZES], PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                      (ptl_hdr_data_t)i));
        }
    }
    if (s->target) {
        for (long i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i), .hdr_data = IS(i),
                   .rlength = IS(sizes[i % SIZES]));
        }
    }
    if (s->initiator) {
        EXPECT_CT(s->mdct, COUNT, 0);
    }
}

CASE(order_of_kinds, ALL_KINDS, SELF | PAIR,
     "3.1: puts, gets and atomics are matched in the order of the calls, whatever their kind")
{
    enum { COUNT = 60 };
    if (s->target) {
        for (long i = 0; i < COUNT; i++) {
            suite_target(s, PTL_PRIORITY_LIST, to, LONGEST,
                         PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                             PTL_ME_EVENT_UNLINK_DISABLE,
                         (void *)i);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md_with(s, from, LONGEST, 0, PTL_EQ_NONE, PTL_CT_NONE);
        ptl_handle_md_t in =
            suite_md_with(s, back, LONGEST, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, s->mdct);
        for (int i = 0; i < COUNT; i++) {
            ptl_size_t length = sizes[i % SIZES];
            switch (i % 4) {
            case 0:
                OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
                break;
            case 1:
                OK(PtlGet(in, 0, length, s->to, SUITE_PT, 0, 0, NULL));
                break;
            case 2:
                OK(PtlAtomic(md, 0, 16, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                             PTL_INT64_T));
                break;
            default:
                OK(PtlFetchAtomic(in, 0, md, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                                  PTL_INT64_T));
            }
        }
    }
    if (s->target) {
        static const int type[4] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC,
                                    PTL_EVENT_FETCH_ATOMIC};
        /* a get's event may wait until its data have left; which entry it took may not */
        bool seen[COUNT] = {false};
        for (int i = 0; i < COUNT; i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->eq, &e));
            long at = (long)e.user_ptr;
            CHECK(at >= 0 && at < COUNT && !seen[at]);
            seen[at] = true;
            EVENT_IS(e, type[at % 4]);
            CHECK(at % 4 > 1 || e.rlength == sizes[at % SIZES]);
        }
    }
    if (s->initiator) {
        EXPECT_CT(s->mdct, COUNT / 2, 0);
    }
}

/* What is ordered: the size of the messages. */
#define EACH_SIZE(length_, limit_)                                                                 \
    for (int size_ = 0; size_ < SIZES; size_++)                                                    \
        for (ptl_size_t length_ = sizes[size_]; length_ != 0 && length_ <= (limit_); length_ = 0)

static void open_window(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, LONGEST,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
}

CASE(order_write_write, ALL_KINDS, SELF | PAIR,
     "3.6.1: of two puts to one address the later one stays, up to max_waw_ordered_size")
{
    open_window(s);
    ptl_handle_md_t md = rule_md(s, from, LONGEST);
    EACH_SIZE(length, s->limits.max_waw_ordered_size)
    {
        unsigned seed = (unsigned)length;
        if (s->initiator) {
            memset(from, 1, LONGEST);
            suite_fill(back, length, seed);
            ptl_handle_md_t second = rule_md(s, back, LONGEST);
            OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlPut(second, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        STEP();
        if (s->target) {
            CHECK_FILL(to, length, seed);
        }
        STEP();
    }
}

CASE(order_write_read, ALL_KINDS, SELF | PAIR,
     "3.6.1: a get sees what the put before it wrote, up to max_waw_ordered_size")
{
    open_window(s);
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, LONGEST), in = rule_md(s, back, LONGEST);
        EACH_SIZE(length, s->limits.max_waw_ordered_size)
        {
            suite_fill(from, length, (unsigned)length + 1);
            memset(back, 0, length);
            OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlGet(in, 0, length, s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(length));
            CHECK_FILL(back, length, (unsigned)length + 1);
        }
    }
}

CASE(order_read_write, ALL_KINDS, SELF | PAIR,
     "3.6.1: a get does not see what the put behind it writes, up to max_war_ordered_size")
{
    open_window(s);
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, LONGEST), in = rule_md(s, back, LONGEST);
        EACH_SIZE(length, s->limits.max_war_ordered_size)
        {
            suite_fill(from, length, (unsigned)length);
            rule_put(s, md, length, 0, PTL_NI_OK);
            memset(back, 0, length);
            static unsigned char other[LONGEST];
            memset(other, 0x55, length);
            ptl_handle_md_t second = rule_md(s, other, LONGEST);
            OK(PtlGet(in, 0, length, s->to, SUITE_PT, 0, 0, NULL));
            OK(PtlPut(second, 0, length, PTL_OC_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(length));
            CHECK_FILL(back, length, (unsigned)length);
        }
    }
}

CASE(order_put_atomic, ALL_KINDS, SELF | PAIR,
     "3.6.1: a put, an atomic and a fetch to one address act in the order of the calls")
{
    open_window(s);
    if (s->initiator) {
        uint64_t put = 1000, add = 7, got = 0;
        ptl_handle_md_t md = rule_md(s, &put, 8), plus = rule_md(s, &add, 8),
                        in = rule_md(s, &got, 8);
        for (uint64_t i = 0; i < 50; i++) {
            put = 1000 * i;
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlAtomic(plus, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                         PTL_UINT64_T));
            OK(PtlAtomic(plus, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_PROD,
                         PTL_UINT64_T));
            OK(PtlFetchAtomic(in, 0, plus, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                              PTL_UINT64_T));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
            CHECK_EQ(got, (1000 * i + 7) * 7);
        }
    }
}

CASE(order_waived, ALL_KINDS, SELF | PAIR,
     "3.10: puts of an MD with PTL_MD_UNORDERED all arrive, each once")
{
    enum { COUNT = 50 };
    static uint64_t slot[COUNT], value[COUNT];
    memset(slot, 0, sizeof(slot));
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, slot, sizeof(slot), PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md =
            suite_md(s, value, sizeof(value), PTL_MD_UNORDERED | PTL_MD_EVENT_SEND_DISABLE);
        for (uint64_t i = 0; i < COUNT; i++) {
            value[i] = i + 1;
            OK(PtlPut(md, i * 8, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, i * 8, NULL, 0));
        }
        for (int i = 0; i < COUNT; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
    }
    STEP();
    if (s->target) {
        for (uint64_t i = 0; i < COUNT; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(8));
            CHECK_EQ(slot[i], i + 1);
        }
        NO_EVENT(s->eq);
    }
}

/* Member 0 hears of every other one in the order in which that one sent. */
static void talk(struct scene *s)
{
    enum { EACH = 80 };
    static unsigned char data[20000];
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, data, sizeof(data), PTL_ME_OP_PUT, NULL);
    }
    crowd_step(s);
    if (s->target) {
        uint64_t next[CROWD] = {0};
        for (int i = 0; i < EACH * (crowd.size - 1); i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->eq, &e));
            int r = (int)(e.hdr_data >> 32);
            CHECK(r > 0 && r < crowd.size);
            EVENT_IS(e, PTL_EVENT_PUT, .hdr_data = IS((uint64_t)r << 32 | next[r]),
                     .initiator = &crowd.id[r]);
            next[r]++;
        }
    } else {
        ptl_handle_md_t md = rule_md(s, data, sizeof(data));
        for (uint64_t i = 0; i < EACH; i++) {
            OK(PtlPut(md, 0, i % 5 == 0 ? sizeof(data) : i % 9, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0,
                      0, NULL, (uint64_t)crowd.rank << 32 | i));
        }
    }
}

CASE(order_of_each_peer, ALL_KINDS, BARE,
     "3.1: the order holds for each pair of processes while several send to one")
{
    crowd_run(s, 4, 0, 0, NULL, talk);
}
