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

/* ---- Both ways of a put ---- */

/* What a process has heard of some puts. */
struct heard {
    int count;
    ptl_event_t event[64];
    ptl_ct_event_t counted;
};

static void hear(struct scene *s, struct heard *h)
{
    ptl_handle_eq_t eq = s->target ? s->eq : s->mdeq;
    ptl_handle_ct_t ct = s->target ? s->ct : s->mdct;
    while (h->count < 64 && PtlEQGet(eq, &h->event[h->count]) == PTL_OK) {
        if (s->logical) {
            h->event[h->count].initiator.phys.pid = 0; /* a rank is all it tells */
        }
        h->count++;
    }
    OK(PtlCTGet(ct, &h->counted));
    OK(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
}

static const struct {
    ptl_size_t length, offset;
    ptl_ack_req_t ack;
} ways_puts[] = {
    {8, 0, PTL_ACK_REQ},      {8, 92, PTL_ACK_REQ},     {0, 0, PTL_ACK_REQ},
    {1, 99, PTL_CT_ACK_REQ},  {64, 36, PTL_OC_ACK_REQ}, {8, 40, PTL_NO_ACK_REQ},
    {100, 0, PTL_CT_ACK_REQ}, {8, 93, PTL_ACK_REQ},     {200, 0, PTL_ACK_REQ},
    {8, 120, PTL_ACK_REQ},    {7, 3, PTL_ACK_REQ},
};
enum { WAYS_PUTS = sizeof(ways_puts) / sizeof(ways_puts[0]), WAYS_PT = 23 };

/* Has these puts sent to entries with some options; behind an entry that they do not match they
 * are searched for, else they find theirs at the head of the list. */
static void ways_round(struct scene *s, unsigned options, bool searched, struct heard *h)
{
    static unsigned char to[100], from[200];
    ptl_handle_me_t entry[WAYS_PUTS], other = PTL_INVALID_HANDLE;
    int entries = (options & PTL_ME_USE_ONCE) != 0 ? WAYS_PUTS : 1;
    if (s->target) {
        ptl_me_t me = suite_entry(s, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        me.match_bits = 5;
        me.ignore_bits = 0;
        if (searched) {
            other = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        }
        me = suite_entry(s, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options);
        me.match_bits = 6;
        me.ignore_bits = 0;
        for (int i = 0; i < entries; i++) {
            entry[i] = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)(long)i);
        }
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, sizeof(from), PTL_MD_EVENT_CT_ACK);
        for (long i = 0; i < WAYS_PUTS; i++) {
            OK(PtlPut(md, 0, ways_puts[i].length, ways_puts[i].ack, s->to, SUITE_PT, 6,
                      ways_puts[i].offset, (void *)i, (ptl_hdr_data_t)(i * 77)));
        }
        ptl_handle_eq_t eq = suite_eq(s, 4);
        ptl_handle_md_t last =
            suite_md_with(s, from, 8, PTL_MD_EVENT_SEND_DISABLE, eq, PTL_CT_NONE);
        OK(PtlPut(last, 0, 8, PTL_ACK_REQ, s->to, WAYS_PT, 0, 0, NULL, 0));
        EXPECT(eq, PTL_EVENT_ACK); /* and all before it are over */
        suite_release(s, last);
        suite_release(s, md);
    }
    STEP();
    hear(s, h);
    if (s->target) {
        for (int i = 0; i < entries && (options & PTL_ME_USE_ONCE) == 0; i++) {
            suite_unlink(s, entry[i]);
        }
        if (searched) {
            suite_unlink(s, other);
        }
    }
    STEP();
}

/* Puts SENDs first: between those of later puts and ACKs of earlier ones is no order. */
static void sort_sends(struct heard *h)
{
    struct heard sorted = {.count = 0};
    for (int sends = 1; sends >= 0; sends--) {
        for (int i = 0; i < h->count; i++) {
            if ((h->event[i].type == PTL_EVENT_SEND) == (sends == 1)) {
                sorted.event[sorted.count++] = h->event[i];
            }
        }
    }
    memcpy(h->event, sorted.event, (size_t)h->count * sizeof(h->event[0]));
}

static void both_ways(struct scene *s)
{
    static const unsigned options[] = {
        0,
        PTL_ME_USE_ONCE,
        PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
        PTL_ME_ACK_DISABLE,
        PTL_ME_NO_TRUNCATE,
        PTL_ME_EVENT_SUCCESS_DISABLE,
        PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE,
        PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES | PTL_ME_USE_ONCE,
    };
    static uint64_t word;
    if (s->target) {
        ptl_pt_index_t index = suite_pt(s, 0, PTL_EQ_NONE, WAYS_PT);
        ptl_me_t me = suite_entry(s, &word, 8, PTL_ME_OP_PUT);
        ptl_handle_me_t entry;
        OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
        suite_own(s, MADE_ENTRY, entry);
    }
    for (unsigned k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
        static struct heard heard[2];
        if (s->c->pt_options != 0 && (options[k] & PTL_ME_NO_TRUNCATE) != 0) {
            continue; /* what matches nothing would close the portal table entry */
        }
        memset(heard, 0, sizeof(heard));
        ways_round(s, options[k], false, &heard[0]);
        ways_round(s, options[k], true, &heard[1]);
        CHECK_EQ(heard[0].count, heard[1].count);
        CHECK_EQ(heard[0].counted.success, heard[1].counted.success);
        CHECK_EQ(heard[0].counted.failure, heard[1].counted.failure);
        CHECK(heard[0].count > 0 || s->target);
        sort_sends(&heard[0]);
        sort_sends(&heard[1]);
        for (int i = 0; i < heard[0].count; i++) {
            CHECK(memcmp(&heard[0].event[i], &heard[1].event[i], sizeof(ptl_event_t)) == 0);
        }
    }
}

GENERATE(ways_cases)
{
    static const char *const rule = "3.12, 3.15: what a put tells at both ends does not depend on "
                                    "how its entry is found";
    suite_add_each((struct suite_case){.body = both_ways, .rule = rule}, MATCHING_KINDS, PAIR,
                   "put_both_ways");
    suite_add_each(
        (struct suite_case){.body = both_ways, .rule = rule, .pt_options = PTL_PT_FLOWCTRL},
        MATCHING_KINDS, PAIR, "put_both_ways_flow");
}
