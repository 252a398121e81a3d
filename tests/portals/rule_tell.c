/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.11, 3.12: what an entry tells by events and counters, and what its options keep back. */
#include "rule_kit.h"

#include <string.h>
#include <sys/mman.h>

enum { SIZE = 9000 };
static unsigned char from[SIZE], to[SIZE];

CASE(link_event, ALL_KINDS, SELF,
     "3.12.1: appending posts LINK with the user_ptr and the index, for either list, unless "
     "EVENT_LINK_DISABLE")
{
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
    suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
    EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1), .pt_index = IS(SUITE_PT));
    suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)2);
    EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(2), .pt_index = IS(SUITE_PT));
    me.options |= PTL_ME_EVENT_LINK_DISABLE;
    suite_append(s, PTL_PRIORITY_LIST, &me, (void *)3);
    suite_append(s, PTL_OVERFLOW_LIST, &me, (void *)4);
    NO_EVENT(s->eq);
}

CASE(link_event_alone, ALL_KINDS, SELF | PAIR,
     "3.12.1: an entry that has all its other events disabled posts LINK all the same, and only it")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE,
                                  PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_COMM_DISABLE |
                                      PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_OVER_DISABLE |
                                      PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE);
        suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1));
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

CASE(mask_each, ALL_KINDS, SELF | PAIR,
     "3.12: COMM_DISABLE, SUCCESS_DISABLE and UNLINK_DISABLE each keep back their own events only")
{
    static const unsigned option[] = {0,
                                      PTL_ME_EVENT_COMM_DISABLE,
                                      PTL_ME_EVENT_SUCCESS_DISABLE,
                                      PTL_ME_EVENT_UNLINK_DISABLE,
                                      PTL_ME_EVENT_OVER_DISABLE,
                                      PTL_ME_EVENT_FLOWCTRL_DISABLE};
    for (long i = 0; i < 6; i++) {
        if (s->target) {
            ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE | option[i]);
            suite_append(s, PTL_PRIORITY_LIST, &me, (void *)i);
            EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(i));
        }
        STEP();
        if (s->initiator) {
            rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
        }
        STEP();
        if (s->target) {
            if (i != 1 && i != 2) {
                EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i));
            }
            if (i != 3) {
                EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(i));
            }
            NO_EVENT(s->eq);
        }
    }
}

CASE(counts_messages, ALL_KINDS, SELF | PAIR,
     "3.12: EVENT_CT_COMM counts each put, get and atomic that the entry takes, with full events "
     "or without")
{
    if (s->target) {
        suite_target(
            s, PTL_PRIORITY_LIST, to, SIZE,
            PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        static uint64_t word;
        ptl_handle_md_t md = rule_md(s, from, SIZE), one = rule_md(s, &word, 8);
        rule_put(s, md, 0, 0, PTL_NI_OK);
        rule_put(s, md, SIZE, 0, PTL_NI_OK);
        OK(PtlGet(md, 0, SIZE, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        OK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        OK(PtlFetchAtomic(one, 0, md, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        OK(PtlSwap(one, 0, md, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
    }
    if (s->target) {
        EXPECT_CT(s->ct, 6, 0);
        NO_EVENT(s->eq);
    }
}

CASE(counts_bytes, ALL_KINDS, SELF | PAIR,
     "3.12: with EVENT_CT_BYTES the bytes that arrived are counted, not those asked for")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 100,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                     NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 30, 0, PTL_NI_OK);
        rule_put(s, md, SIZE, 0, PTL_NI_OK);
        rule_put(s, md, 0, 0, PTL_NI_OK);
        OK(PtlGet(md, 0, SIZE, s->to, SUITE_PT, 0, 60, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(40));
    }
    if (s->target) {
        EXPECT_CT(s->ct, 30 + 100 + 40, 0);
    }
}

CASE(counter_not_asked, ALL_KINDS, SELF | PAIR,
     "3.12: an entry with a counter but no EVENT_CT_ option does not count")
{
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = s->ct;
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, 8), 8, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT_CT(s->ct, 0, 0);
    }
}

CASE(unreachable_memory, ALL_KINDS, SELF | PAIR,
     "3.6.1, 3.13: an entry may cover memory that is not mapped (PTL_TARGET_BIND_INACCESSIBLE); a "
     "message there ends with PTL_NI_SEGV on both sides and counts as a failure")
{
    CHECK(s->limits.features & PTL_TARGET_BIND_INACCESSIBLE);
    void *nowhere = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(nowhere != MAP_FAILED);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, nowhere, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE);
        rule_put(s, md, 8, 0, PTL_NI_SEGV);
        rule_put(s, md, SIZE, 0, PTL_NI_SEGV);
        OK(PtlGet(md, 0, 8, s->to, SUITE_PT, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_SEGV);
        OK(PtlAtomic(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_SEGV);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .fail = PTL_NI_SEGV);
        EXPECT(s->eq, PTL_EVENT_PUT, .fail = PTL_NI_SEGV);
        EXPECT(s->eq, PTL_EVENT_GET, .fail = PTL_NI_SEGV);
        EXPECT(s->eq, PTL_EVENT_ATOMIC, .fail = PTL_NI_SEGV);
        EXPECT_CT(s->ct, 0, 4);
    }
    STEP();
    if (s->target) { /* memory that appears later is good */
        CHECK(mprotect(nowhere, SIZE, PROT_READ | PROT_WRITE) == 0);
    }
    STEP();
    if (s->initiator) {
        rule_put(s, rule_md(s, from, SIZE), 8, 0, PTL_NI_OK);
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
    }
}

CASE(unlink_silent, ALL_KINDS, SELF, "3.12.2: PtlMEUnlink posts no event, for either list")
{
    for (int list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
        ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT);
        ptl_handle_me_t entry = suite_append(s, (ptl_list_t)list, &me, NULL);
        EXPECT(s->eq, PTL_EVENT_LINK);
        OK(suite_unlink_code(s, entry));
        INVALID(suite_unlink_code(s, entry));
        NO_EVENT(s->eq);
    }
}

CASE(unlink_one_of_many, ALL_KINDS, SELF | PAIR,
     "3.12.2: unlinking an entry in the middle leaves the others and their order")
{
    ptl_handle_me_t entry[5];
    for (long i = 0; i < 5 && s->target; i++) {
        entry[i] = suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                                (void *)i);
    }
    if (s->target) {
        OK(suite_unlink_code(s, entry[0]));
        OK(suite_unlink_code(s, entry[2]));
        OK(suite_unlink_code(s, entry[4]));
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_OK);
        rule_put(s, md, 8, 0, PTL_NI_DROPPED);
    }
    for (int i = 1; i < 5 && s->target; i += 2) {
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(i));
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(i));
    }
}

CASE(unlink_under_fire, ALL_KINDS, PAIR,
     "3.12.2: an entry that messages land in can be unlinked: PTL_IN_USE while one does, then "
     "PTL_OK; no message is half told")
{
    enum { COUNT = 60, LONG = 200000 };
    static unsigned char memory[LONG];
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, memory, LONG);
        STEP();
        uint64_t good = 0;
        for (int i = 0; i < COUNT; i++) {
            OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        }
        for (int i = 0; i < COUNT; i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->mdeq, &e));
            CHECK(e.type == PTL_EVENT_ACK);
            CHECK(e.ni_fail_type == PTL_NI_OK || e.ni_fail_type == PTL_NI_DROPPED);
            good += e.ni_fail_type == PTL_NI_OK;
        }
        suite_show(s, 0, good);
        STEP();
    } else {
        ptl_handle_me_t entry =
            suite_target(s, PTL_PRIORITY_LIST, memory, LONG, PTL_ME_OP_PUT, NULL);
        STEP();
        EXPECT(s->eq, PTL_EVENT_PUT);
        suite_unlink(s, entry);
        memset(memory, 0x3c, LONG);
        STEP();
        CHECK_BYTES(memory, LONG, 0x3c);
        for (uint64_t good = suite_look(s, 0, 0); good > 1; good--) {
            EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(LONG));
        }
        NO_EVENT(s->eq);
    }
}
