/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.17: bundles. */
#include "rule_kit.h"

static unsigned char from[20000], to[20000];

static void open_target(struct scene *s)
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
}

CASE(bundle_ends, ALL_KINDS, SELF | PAIR,
     "3.17: behind PtlEndBundle every operation of the bundle is started, in order")
{
    enum { COUNT = 40 };
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, sizeof(from));
        OK(PtlStartBundle(s->ni));
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md, 0, i % 3 ? 8 : sizeof(from), PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                      (ptl_hdr_data_t)i));
        }
        OK(PtlEndBundle(s->ni));
        for (int i = 0; i < COUNT; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
    }
    for (int i = 0; i < COUNT && s->target; i++) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i));
    }
}

CASE(bundle_nests, ALL_KINDS, SELF | PAIR,
     "3.17: bundles nest: the one that was started first ends last")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, sizeof(from));
        for (int i = 0; i < 5; i++) {
            OK(PtlStartBundle(s->ni));
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        }
        for (int i = 0; i < 5; i++) {
            OK(PtlEndBundle(s->ni));
        }
        for (int i = 0; i < 5; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        INVALID(PtlEndBundle(s->ni));
    }
}

CASE(bundle_none, ALL_KINDS, SELF, "3.17: PtlEndBundle without PtlStartBundle is an error")
{
    INVALID(PtlEndBundle(s->ni));
    OK(PtlStartBundle(s->ni));
    OK(PtlEndBundle(s->ni));
    INVALID(PtlEndBundle(s->ni));
}

CASE(bundle_empty_closed, ALL_KINDS, BARE, "3.17: an interface may be closed within a bundle")
{
    rule_open(s, NULL);
    OK(PtlStartBundle(s->ni));
    rule_close(s);
    rule_open(s, NULL);
    INVALID(PtlEndBundle(s->ni));
    rule_close(s);
}

CASE(bundle_gets, ALL_KINDS, SELF | PAIR,
     "3.17: what a program waits for within a bundle need not come before its end, and comes then")
{
    open_target(s);
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, sizeof(from));
        OK(PtlStartBundle(s->ni));
        OK(PtlGet(md, 0, sizeof(from), s->to, SUITE_PT, 0, 0, NULL));
        ptl_event_t e;
        unsigned which;
        int code = PtlEQPoll(&s->mdeq, 1, 10, &e, &which);
        OK(PtlEndBundle(s->ni));
        if (code == PTL_EQ_EMPTY) {
            OK(PtlEQWait(s->mdeq, &e));
        }
        EVENT_IS(e, PTL_EVENT_REPLY, .mlength = IS(sizeof(from)));
    }
}
