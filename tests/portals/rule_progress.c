/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.1, 3.13: operations end although one side, or both, make no call. */
#include "rule_kit.h"

#include <string.h>

enum { LONG = 1 << 20 };
static unsigned char from[LONG], to[LONG];

/* Waits for a word of the other process without any call of the library. */
static void sleep_until(struct scene *s, int slot)
{
    while (suite_look(s, 1 - s->rank, slot) != 1) {
        suite_sleep_ms(1);
    }
}

static void clear_words(struct scene *s)
{
    suite_show(s, 1, 0);
    suite_show(s, 2, 0);
    STEP();
}

/* Waits for the end of a message without a call, and checks all of it. */
static void await_end(const unsigned char *memory, unsigned seed)
{
    static unsigned char whole[LONG], seen[LONG];
    suite_fill(whole, LONG, seed);
    for (uint64_t end = suite_deadline(); suite_now_ms() < end;) {
        suite_peek(seen + LONG - 64, memory + LONG - 64, 64);
        if (memcmp(seen + LONG - 64, whole + LONG - 64, 64) == 0) {
            break;
        }
        suite_sleep_ms(1);
    }
    suite_peek(seen, memory, LONG);
    CHECK_FILL(seen, LONG, seed);
}

CASE(target_away, ALL_KINDS, PAIR,
     "3.1: every operation ends while the target's program makes no call")
{
    clear_words(s);
    if (s->target) {
        suite_fill(to, LONG, 2);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->target) {
        sleep_until(s, 1);
    } else {
        static uint64_t word;
        ptl_handle_md_t md = rule_md(s, from, LONG), one = rule_md(s, &word, 8);
        static const ptl_size_t length[] = {8, LONG, 2000, 100000};
        for (int i = 0; i < 8; i++) {
            ptl_size_t n = length[i % 4];
            suite_sleep_ms(3);
            OK(PtlPut(md, 0, n, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(n));
            OK(PtlGet(md, 0, n, s->to, SUITE_PT, 0, 0, NULL));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(n));
            OK(PtlFetchAtomic(one, 0, md, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                              PTL_UINT64_T));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
        }
        suite_show(s, 1, 1);
    }
}

CASE(initiator_away, ALL_KINDS, PAIR,
     "3.1: a put leaves and a get comes back while the initiator's program makes no further call")
{
    clear_words(s);
    static unsigned char back[LONG];
    if (s->target) {
        memset(to, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, LONG, 3);
        memset(back, 0, LONG);
        OK(PtlPut(rule_md(s, from, LONG), 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        OK(PtlGet(rule_md(s, back, LONG), 0, LONG, s->to, SUITE_PT, 0, 0, NULL));
        sleep_until(s, 2);
        /* the memory has changed without a call of this process */
        await_end(back, 3);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
    } else {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(LONG));
        CHECK_FILL(to, LONG, 3);
        EXPECT(s->eq, PTL_EVENT_GET, .mlength = IS(LONG));
        suite_show(s, 2, 1);
    }
}

CASE(both_away, ALL_KINDS, PAIR, "3.1: a long message arrives while neither program makes a call")
{
    clear_words(s);
    if (s->target) {
        memset(to, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        suite_fill(from, LONG, 4);
        OK(PtlPut(rule_md(s, from, LONG), 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        sleep_until(s, 2);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    } else {
        await_end(to, 4);
        suite_show(s, 2, 1);
        EXPECT(s->eq, PTL_EVENT_PUT);
    }
}

CASE(both_send_first, ALL_KINDS, PAIR,
     "3.1: two processes that send each other much before either looks at an event do not block")
{
    enum { COUNT = 12 };
    static unsigned char in[LONG];
    suite_target(s, PTL_PRIORITY_LIST, in, LONG, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, NULL);
    STEP();
    ptl_process_t other = s->rank == 0 ? s->to : s->from;
    ptl_handle_md_t md = rule_md(s, from, LONG);
    for (int i = 0; i < COUNT; i++) {
        OK(PtlPut(md, 0, i % 3 == 2 ? 100 : LONG, PTL_ACK_REQ, other, SUITE_PT, 0, 0, NULL,
                  (ptl_hdr_data_t)i));
    }
    for (int i = 0; i < COUNT; i++) {
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
    }
    EXPECT_CT(s->ct, COUNT, 0);
}

CASE(both_get_first, ALL_KINDS, PAIR,
     "3.1: two processes that ask each other for much before either looks at an event do not block")
{
    enum { COUNT = 12 };
    static unsigned char in[LONG];
    suite_fill(from, LONG, 7);
    suite_target(s, PTL_PRIORITY_LIST, from, LONG, PTL_ME_OP_GET | PTL_ME_OP_PUT, NULL);
    STEP();
    ptl_process_t other = s->rank == 0 ? s->to : s->from;
    ptl_handle_md_t md = rule_md(s, in, LONG), out = rule_md(s, from, LONG);
    for (int i = 0; i < COUNT; i++) {
        OK(PtlGet(md, 0, i % 3 == 2 ? 100 : LONG, other, SUITE_PT, 0, 0, NULL));
        OK(PtlPut(out, 0, LONG, PTL_ACK_REQ, other, SUITE_PT, 0, 0, NULL, 0));
    }
    int replies = 0, acks = 0;
    for (int i = 0; i < 2 * COUNT; i++) {
        ptl_event_t e;
        OK(PtlEQWait(s->mdeq, &e));
        CHECK_EQ(e.ni_fail_type, PTL_NI_OK);
        replies += e.type == PTL_EVENT_REPLY;
        acks += e.type == PTL_EVENT_ACK;
    }
    CHECK(replies == COUNT && acks == COUNT);
    CHECK_FILL(in, LONG, 7);
    for (int i = 0; i < 2 * COUNT; i++) {
        ptl_event_t e;
        OK(PtlEQWait(s->eq, &e));
        CHECK(e.type == PTL_EVENT_PUT || e.type == PTL_EVENT_GET);
    }
}

CASE(many_under_way, ALL_KINDS, SELF | PAIR,
     "3.15: any number of operations may be started before the first has ended")
{
    enum { COUNT = 5000 };
    if (s->target) {
        suite_target(
            s, PTL_PRIORITY_LIST, to, LONG,
            PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md_with(
            s, from, LONG, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, s->mdct);
        for (int i = 0; i < COUNT; i++) {
            if (i % 5 == 0) {
                OK(PtlGet(md, 0, 8, s->to, SUITE_PT, 0, 0, NULL));
            } else {
                OK(PtlPut(md, 0, i % 7 == 0 ? 6000 : 8, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                          0));
            }
        }
        EXPECT_CT(s->mdct, COUNT, 0);
    }
    if (s->target) {
        EXPECT_CT(s->ct, COUNT, 0);
    }
}

CASE(poll_another_queue, ALL_KINDS, PAIR,
     "3.13: who only reads a counter, or polls a queue that stays empty, lets everything else "
     "arrive")
{
    clear_words(s);
    if (s->target) {
        memset(to, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, LONG);
        for (int i = 0; i < 30; i++) {
            OK(PtlPut(md, 0, i % 3 ? 64 : LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        suite_show(s, 1, 1);
    } else {
        ptl_event_t e;
        ptl_ct_event_t v;
        unsigned which;
        for (int i = 0; suite_look(s, 0, 1) != 1; i++) {
            switch (i % 3) {
            case 0:
                CODE(PtlEQGet(s->mdeq, &e), PTL_EQ_EMPTY);
                break;
            case 1:
                OK(PtlCTGet(s->ct, &v));
                break;
            default:
                CODE(PtlEQPoll(&s->mdeq, 1, 1, &e, &which), PTL_EQ_EMPTY);
            }
        }
    }
}

CASE(fini_with_messages, ALL_KINDS, BARE,
     "3.6.3: PtlNIFini lets messages that were started leave, then closes")
{
    rule_open(s, NULL);
    suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = rule_md(s, from, LONG);
    memset(to, 0, LONG);
    suite_fill(from, LONG, 6);
    OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    rule_close(s);
    CHECK_FILL(to, LONG, 6);
}
