/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of the target that are freed while messages come, or while something else refers
 * to them; and triggered operations whose counters, MDs and entries are freed.
 */
#include "handles_kit.h"

#include <stdlib.h>
#include <string.h>

static unsigned char from[1 << 20], to[1 << 20];

static void put_ends(struct scene *s, ptl_handle_md_t md, ptl_size_t length, int fail)
{
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = fail);
}

static ptl_handle_md_t sender(struct scene *s)
{
    return suite_md(s, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE);
}

/* The initiator puts 8 bytes, which end so, while the target waits. */
static void one_put(struct scene *s, int fail)
{
    STEP();
    if (s->initiator) {
        put_ends(s, sender(s), 8, fail);
    }
    STEP();
}

/* ---- Queues and counters of entries ---------------------------------------- */

CASE(free_eq_of_index, ALL_KINDS, SELF | PAIR,
     "3.13: a message for an index whose queue was freed is delivered without event",
     .desired = &handles_few)
{
    struct handles_taken taken = {0};
    if (s->target) {
        memset(to, 0, 8);
        suite_target(s, PTL_PRIORITY_LIST, to, 8, PTL_ME_OP_PUT, NULL);
        OK(PtlEQFree(s->eq));
        taken = handles_take_all(s);
    }
    suite_fill(from, 8, 5);
    one_put(s, PTL_NI_OK);
    if (s->target) {
        CHECK_FILL(to, 8, 5);
        handles_untouched(&taken);
        INVALID(PtlEQFree(s->eq));
    }
}

CASE(free_eq_with_events, ALL_KINDS, SELF | PAIR,
     "3.13: a queue is freed with the events in it; one made later is empty")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 8, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        for (int i = 0; i < 5; i++) {
            put_ends(s, sender(s), 8, PTL_NI_OK);
        }
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        OK(PtlEQFree(s->eq));
        for (int i = 0; i < 3; i++) {
            NO_EVENT(suite_eq(s, 8));
        }
    }
}

CASE(free_ct_of_entry, ALL_KINDS, SELF | PAIR,
     "3.14: a message for an entry whose counter was freed is delivered and counted nowhere",
     .desired = &handles_few)
{
    struct handles_taken taken = {0};
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, NULL);
        OK(PtlCTFree(s->ct));
        taken = handles_take_all(s);
    }
    one_put(s, PTL_NI_OK);
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        handles_untouched(&taken);
    }
}

/* ---- Entries --------------------------------------------------------------- */

CASE(unlink_with_header, ALL_KINDS, SELF | PAIR,
     "3.12: an overflow entry to which an unexpected header refers gives PTL_IN_USE, until the "
     "header is taken")
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (s->target) {
        entry = suite_target(s, PTL_OVERFLOW_LIST, to, 64, PTL_ME_OP_PUT, NULL);
    }
    one_put(s, PTL_NI_OK);
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        for (int i = 0; i < 5; i++) {
            CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        }
        suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        OK(suite_unlink_code(s, entry));
        INVALID(suite_unlink_code(s, entry));
    }
}

CASE(unlink_of_used_once, ALL_KINDS, SELF | PAIR,
     "3.12: the handle of an entry that was unlinked automatically names nothing")
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    if (s->target) {
        entry = suite_target(s, PTL_PRIORITY_LIST, to, 64, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
    }
    STEP();
    if (s->initiator) {
        put_ends(s, sender(s), 8, PTL_NI_OK);
        put_ends(s, sender(s), 8, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        INVALID(suite_unlink_code(s, entry));
    }
}

/* number: bytes. Whenever the unlink succeeds, before, while or after the message lands: what
 * lies in memory then stays. */
static void unlink_while_landing(struct scene *s)
{
    static unsigned char seen[sizeof(to)];
    ptl_size_t length = (ptl_size_t)s->c->number;
    for (int round = 0; round < 6; round++) {
        ptl_handle_me_t entry = PTL_INVALID_HANDLE;
        if (s->target) {
            memset(to, 0, length);
            entry = suite_target(s, PTL_PRIORITY_LIST, to, length, PTL_ME_OP_PUT, NULL);
        }
        suite_fill(from, length, (unsigned)round + 1);
        STEP();
        if (s->initiator) {
            OK(PtlPut(sender(s), 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        }
        if (s->target) {
            uint64_t end = suite_deadline();
            int code;
            for (int i = 0; i < round * 20; i++) {
                ptl_ct_event_t ignored;
                OK(PtlCTGet(s->ct, &ignored)); /* a little later each round */
            }
            while ((code = suite_unlink_code(s, entry)) == PTL_IN_USE) {
                CHECK(suite_now_ms() < end);
            }
            CODE(code, PTL_OK);
            memcpy(seen, to, length);
        }
        if (s->initiator) {
            unsigned which;
            ptl_event_t event;
            OK(PtlEQPoll(&s->mdeq, 1, 10000, &event, &which));
            CHECK_EQ(event.type, PTL_EVENT_ACK);
            CHECK(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_DROPPED);
            suite_show(s, 1, event.ni_fail_type);
        }
        STEP();
        if (s->target) {
            CHECK_EQ(memcmp(seen, to, length), 0);
            if (suite_look(s, 0, 1) == PTL_NI_OK) {
                CHECK_FILL(to, length, (unsigned)round + 1);
                EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(length));
            } else {
                CHECK_BYTES(to, length, 0);
            }
            NO_EVENT(s->eq);
        }
    }
}

GENERATE(unlink_cases)
{
    static const long lengths[] = {1, 1000, 10000, 100000, 1 << 20};
    for (int i = 0; i < 5; i++) {
        suite_add_each((struct suite_case){.rule = "3.12: a message lands wholly or not at all in "
                                                   "an entry that is unlinked, and not afterwards",
                                           .body = unlink_while_landing,
                                           .number = lengths[i]},
                       ALL_KINDS, SELF | PAIR, "unlink_while_landing.%ld", lengths[i]);
    }
}

/* ---- The portal table ------------------------------------------------------ */

CASE(free_index_with_entries, ALL_KINDS, SELF,
     "3.7: an index with entries in either list is in use; without, it is freed once")
{
    ptl_handle_me_t a = suite_target(s, PTL_PRIORITY_LIST, to, 8, 0, NULL);
    ptl_handle_me_t b = suite_target(s, PTL_OVERFLOW_LIST, to, 8, 0, NULL);
    CODE(PtlPTFree(s->ni, SUITE_PT), PTL_PT_IN_USE);
    suite_unlink(s, a);
    CODE(PtlPTFree(s->ni, SUITE_PT), PTL_PT_IN_USE);
    suite_unlink(s, b);
    OK(PtlPTFree(s->ni, SUITE_PT));
    INVALID(PtlPTFree(s->ni, SUITE_PT));
}

CASE(free_index_with_headers, ALL_KINDS, SELF | PAIR,
     "3.7: the unexpected headers of a freed index are forgotten")
{
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, to, 64, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
    }
    one_put(s, PTL_NI_OK);
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK);
        OK(PtlPTFree(s->ni, SUITE_PT));
        suite_pt(s, 0, s->eq, SUITE_PT);
        ptl_me_t me = suite_entry(s, to, 64, PTL_ME_OP_PUT);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        ptl_event_t event;
        do { /* AUTO_FREE of what was forgotten may come, an overflow event may not */
            unsigned which;
            OK(PtlEQPoll(&s->eq, 1, 10000, &event, &which));
        } while (event.type == PTL_EVENT_AUTO_FREE);
        EVENT_IS(event, PTL_EVENT_LINK);
    }
}

CASE(message_for_freed_index, ALL_KINDS, SELF | PAIR,
     "3.15: a message for an index that is not allocated is dropped, and counted")
{
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    if (s->target) {
        OK(PtlPTFree(s->ni, SUITE_PT));
    }
    STEP();
    if (s->initiator) {
        put_ends(s, sender(s), 8, PTL_NI_DROPPED);
        put_ends(s, sender(s), 100000, PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        EXPECT_STATUS(PTL_SR_DROP_COUNT, drops + 2);
        NO_EVENT(s->eq);
    }
}

/* number: 0 one behind this interface's table */
static void message_for_index(struct scene *s)
{
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    STEP();
    if (s->initiator) {
        ptl_pt_index_t index = s->c->number == 0 ? (ptl_pt_index_t)s->limits.max_pt_index + 1
                                                 : (ptl_pt_index_t)s->c->number;
        OK(PtlPut(sender(s), 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
        OK(PtlGet(sender(s), 0, 8, s->to, index, 0, 0, NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .fail = PTL_NI_DROPPED);
    }
    STEP();
    if (s->target) {
        EXPECT_STATUS(PTL_SR_DROP_COUNT, drops + 2);
    }
}

/* An index that no interface can have may be refused by the call, too. */
static void message_for_no_index(struct scene *s)
{
    if (s->initiator) {
        int code = PtlPut(sender(s), 0, 8, PTL_ACK_REQ, s->to, (ptl_pt_index_t)s->c->number, 0, 0,
                          NULL, 0);
        if (code == PTL_OK) {
            EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
        } else {
            CODE(code, PTL_ARG_INVALID);
        }
        NO_EVENT(s->mdeq);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

GENERATE(far_indices)
{
    static const struct {
        const char *name;
        long index;
    } far[] = {{"limit_and_1", 0},       {"32768", 32768},        {"65535", 65535},
               {"65536", 65536},         {"int_max", 0x7fffffff}, {"int_min", 0x80000000},
               {"any", (long)PTL_PT_ANY}};
    for (int i = 0; i < 7; i++) {
        bool possible = far[i].index <= 65535;
        suite_add_each(
            (struct suite_case){.rule = "3.15: a message for an index that the target "
                                        "does not have is dropped",
                                .body = possible ? message_for_index : message_for_no_index,
                                .number = far[i].index},
            ALL_KINDS, SELF | PAIR, "message_for_index.%s", far[i].name);
    }
}

/* ---- Triggered operations -------------------------------------------------- */

static const ptl_ct_event_t one = {1, 0};

static int arm_put(struct scene *s, ptl_handle_md_t md, ptl_handle_ct_t trigger)
{
    return PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, trigger, 1);
}

CASE(release_md_of_triggered, ALL_KINDS, SELF | PAIR,
     "3.10: an MD that waits for a trigger is in use, until the operation is forgotten")
{
    if (s->initiator) {
        ptl_handle_md_t md = sender(s);
        ptl_handle_ct_t trigger = suite_ct(s);
        OK(arm_put(s, md, s->ct));
        OK(arm_put(s, md, trigger));
        CODE(PtlMDRelease(md), PTL_IN_USE);
        OK(PtlCTCancelTriggered(s->ct));
        CODE(PtlMDRelease(md), PTL_IN_USE);
        OK(PtlCTFree(trigger));
        OK(PtlMDRelease(md));
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

/* number: the call that waits; its MDs are in use, its trigger is then freed. */
static void free_trigger(struct scene *s)
{
    static const unsigned long long operand;
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, 64, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_ct_t trigger = suite_ct(s);
        struct suite_move m = suite_move_to(s, (enum suite_call)s->c->number);
        m.triggered = true;
        m.md = sender(s);
        m.get_md = m.call == CALL_FETCH || m.call == CALL_SWAP ? sender(s) : m.md;
        m.get_offset = 64;
        m.length = 8;
        m.op = m.call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
        m.type = PTL_UINT64_T;
        m.operand = &operand;
        m.trigger = trigger;
        m.threshold = 1;
        OK(suite_move(&m));
        CODE(PtlMDRelease(m.md), PTL_IN_USE);
        CODE(PtlMDRelease(m.get_md), PTL_IN_USE);
        OK(PtlCTFree(trigger));
        struct handles_taken taken = handles_take_all(s);
        for (int i = 0; i < taken.cts; i++) {
            OK(PtlCTInc(taken.ct[i], one));
        }
        suite_release(s, m.md);
        if (m.md != m.get_md) {
            suite_release(s, m.get_md);
        }
        NO_EVENT(s->mdeq);
    }
    STEP();
    if (s->target) {
        NO_EVENT(s->eq);
    }
}

GENERATE(trigger_cases)
{
    for (int call = 0; call < CALL_COUNT; call++) {
        suite_add_each((struct suite_case){.rule = "3.14: PtlCTFree forgets what waits for the "
                                                   "counter; its MDs are free then",
                                           .body = free_trigger,
                                           .number = call,
                                           .desired = &handles_few},
                       ALL_KINDS, SELF | PAIR, "free_trigger.%s", suite_call_name[call]);
    }
}

CASE(free_ct_of_triggered_inc, ALL_KINDS, SELF,
     "3.16: an increment whose counter was freed meanwhile changes nothing, nor one in its place",
     .desired = &handles_few)
{
    ptl_handle_ct_t trigger = suite_ct(s), goal = suite_ct(s);
    OK(PtlTriggeredCTInc(goal, one, trigger, 1));
    OK(PtlTriggeredCTSet(goal, one, trigger, 1));
    OK(PtlCTFree(goal));
    struct handles_taken taken = handles_take_all(s);
    OK(PtlCTInc(trigger, one));
    handles_untouched(&taken);
    EXPECT_CT(trigger, 1, 0);
}

CASE(free_trigger_of_itself, ALL_KINDS, SELF,
     "3.16: a counter that waits for itself, and in a ring, can be freed")
{
    ptl_handle_ct_t a = suite_ct(s), b = suite_ct(s);
    OK(PtlTriggeredCTInc(a, one, a, 1));
    OK(PtlTriggeredCTInc(b, one, a, 2));
    OK(PtlTriggeredCTInc(a, one, b, 1));
    OK(PtlCTFree(a));
    EXPECT_CT(b, 0, 0);
    OK(PtlCTFree(b));
}

CASE(triggered_append_of_freed_index, MATCHING_KINDS, SELF,
     "3.16: an append whose index was freed meanwhile posts a LINK event with PTL_NI_DROPPED or "
     "nothing, and links nothing")
{
    ptl_pt_index_t index = suite_pt(s, 0, s->eq, PTL_PT_ANY);
    ptl_me_t me = suite_entry(s, to, 8, PTL_ME_OP_PUT);
    ptl_handle_me_t handle;
    ptl_event_t event;
    OK(PtlTriggeredMEAppend(s->ni, index, &me, PTL_PRIORITY_LIST, to, &handle, s->ct, 1));
    int code = PtlPTFree(s->ni, index);
    CHECK(code == PTL_OK || code == PTL_PT_IN_USE);
    OK(PtlCTInc(s->ct, one));
    EXPECT_CT(s->ct, 1, 0);
    if (code == PTL_OK && PtlEQGet(s->eq, &event) == PTL_OK) {
        EVENT_IS(event, PTL_EVENT_LINK, .fail = PTL_NI_DROPPED, .user_ptr = IS(to));
    }
    if (code == PTL_PT_IN_USE) { /* the entry counts as linked from the call on */
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(to));
        suite_unlink(s, handle);
    }
}

CASE(triggered_unlink_of_freed, MATCHING_KINDS, SELF,
     "3.16: an unlink of an entry that is gone changes nothing, nor one in its place",
     .desired = &handles_few)
{
    enum { REST = HANDLES_FEW - SUITE_OWN_ENTRIES };
    ptl_handle_me_t entry = suite_target(s, PTL_PRIORITY_LIST, to, 8, PTL_ME_OP_PUT, NULL);
    ptl_handle_me_t others[REST];
    OK(PtlTriggeredMEUnlink(entry, s->ct, 1));
    suite_unlink(s, entry);
    for (int i = 0; i < REST; i++) {
        others[i] = suite_target(s, PTL_PRIORITY_LIST, to, 8, PTL_ME_OP_PUT, NULL);
    }
    OK(PtlCTInc(s->ct, one));
    EXPECT_CT(s->ct, 1, 0);
    NO_EVENT(s->eq);
    for (int i = 0; i < REST; i++) {
        suite_unlink(s, others[i]);
    }
}

CASE(triggered_append_cancelled, MATCHING_KINDS, SELF,
     "3.16: the handle of an append that was forgotten names nothing")
{
    ptl_me_t me = suite_entry(s, to, 8, PTL_ME_OP_PUT);
    ptl_handle_me_t handle;
    OK(PtlTriggeredMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, NULL, &handle, s->ct, 1));
    OK(PtlCTCancelTriggered(s->ct));
    OK(PtlCTInc(s->ct, one));
    NO_EVENT(s->eq);
    INVALID(PtlMEUnlink(handle));
}
