/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.12: unexpected messages that are claimed or searched for while they arrive.
 *
 * The sender stops itself (SIGSTOP) behind a put or get that is longer than what lies between
 * the two processes: the message is then in the middle until the target sends SIGCONT. A
 * fabric by which the target moves all bytes itself completes it nevertheless; each case
 * asks is_arriving() and holds either way.
 */
#include "rule_kit.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 8 << 20 };
static unsigned char from[LONG], to[LONG], other[LONG];

/* ---- The two sides --------------------------------------------------------- */

/* The last bytes of the message have not come. */
static bool is_arriving(void)
{
    return !rule_ends_as(to, LONG, 1);
}

/* The initiator puts or gets all of `from` and stops; `small` more puts follow. */
static void send_and_stop(struct scene *s, bool get, int small)
{
    ptl_handle_md_t md = rule_md(s, from, LONG);
    if (get) {
        unsigned char before = from[0];
        OK(PtlGet(md, 0, LONG, s->to, SUITE_PT, 1, 0, NULL));
        rule_await_change(s, from, before);
    } else {
        OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 1, 0, NULL, 1));
    }
    for (int i = 0; i < small; i++) {
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 2, 0, NULL, 2));
    }
    raise(SIGSTOP);
    EXPECT(s->mdeq, get ? PTL_EVENT_REPLY : PTL_EVENT_ACK, .mlength = IS(LONG));
    for (int i = 0; i < small; i++) {
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
}

/* Both sides, until a long unexpected message is in the middle at the target: true there. */
static bool begin(struct scene *s, unsigned options, bool get, int small)
{
    suite_show(s, 0, (uint64_t)getpid());
    if (s->initiator) {
        suite_fill(from, LONG, 1);
        rule_meet(s, s->to);
        STEP();
        send_and_stop(s, get, small);
        return false;
    }
    memset(to, 0, LONG);
    suite_target(s, PTL_OVERFLOW_LIST, to, LONG, PTL_ME_OP_PUT | PTL_ME_OP_GET | options,
                 (void *)9);
    STEP();
    rule_await_stop(s, (int)suite_look(s, 0, 0));
    if (!get) {
        rule_await_begin(s, (int)suite_look(s, 0, 0), to, 1);
    }
    return true;
}

static void resume(struct scene *s)
{
    CHECK(kill((int)suite_look(s, 0, 0), SIGCONT) == 0);
}

/* No event as long as the message is in the middle. */
#define QUIET_IF(arriving_)                                                                        \
    do {                                                                                           \
        if (arriving_) {                                                                           \
            NO_EVENT(s->eq);                                                                       \
            CHECK(is_arriving());                                                                  \
        }                                                                                          \
    } while (0)

/* ---- Claimed --------------------------------------------------------------- */

CASE(arriving_once, ALL_KINDS, PAIR,
     "3.12.1: a use-once entry may take the header of a message that still arrives; PUT_OVERFLOW "
     "comes when all of it is there, then AUTO_UNLINK; both entries are in use meanwhile",
     .own_process = "stops itself")
{
    if (begin(s, 0, false, 0)) {
        bool arriving = is_arriving();
        QUIET_IF(arriving);
        ptl_me_t me = suite_entry(s, other, 1, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        ptl_handle_me_t entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        QUIET_IF(arriving);
        if (arriving) {
            CODE(suite_unlink_code(s, entry), PTL_IN_USE);
            CODE(PtlPTFree(s->ni, SUITE_PT), PTL_PT_IN_USE);
        }
        resume(s);
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(9), .mlength = IS(LONG));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1), .start = IS(to),
               .mlength = IS(LONG), .hdr_data = IS(1));
        CHECK_FILL(to, LONG, 1);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
        INVALID(suite_unlink_code(s, entry));
        NO_EVENT(s->eq);
    }
}

CASE(
    arriving_persistent, ALL_KINDS, PAIR,
    "3.12.1: an entry that stays takes the header of a message that still arrives and is linked at "
    "once; the message is told before one that came behind it and landed in the entry",
    .own_process = "stops itself")
{
    if (begin(s, 0, false, 1)) {
        bool arriving = is_arriving();
        if (!arriving) { /* the small ones are there, too: nothing to see */
            resume(s);
            return;
        }
        ptl_me_t me = suite_entry(s, other, 100, PTL_ME_OP_PUT);
        ptl_handle_me_t entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1));
        QUIET_IF(arriving);
        CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        resume(s);
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(9), .hdr_data = IS(1));
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1), .hdr_data = IS(1));
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1), .hdr_data = IS(2), .start = IS(other));
        suite_unlink(s, entry);
    }
}

CASE(
    arriving_two_claims, ALL_KINDS, PAIR,
    "3.12.1: of two use-once entries the first takes the message that arrives, the second the next "
    "one",
    .own_process = "stops itself")
{
    if (begin(s, 0, false, 1)) {
        bool arriving = is_arriving();
        for (long i = 1; i <= 2; i++) {
            suite_target(s, PTL_PRIORITY_LIST, other, 100,
                         PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, (void *)i);
        }
        QUIET_IF(arriving);
        resume(s);
        int puts = 0;
        for (long told = 0; told < 2;) {
            ptl_event_t e;
            OK(PtlEQWait(s->eq, &e));
            if (e.user_ptr == (void *)9) {
                puts++;
                continue;
            }
            told++;
            CHECK_EQ(e.user_ptr, told);
            CHECK_EQ(e.hdr_data, told);
        }
        CHECK(!arriving || puts == 1);
    }
}

CASE(arriving_counted, ALL_KINDS, PAIR,
     "3.12: EVENT_CT_OVERFLOW counts a message that still arrives when it is complete; what waits "
     "for the count sees all of it",
     .own_process = "stops itself")
{
    if (begin(s, PTL_ME_EVENT_COMM_DISABLE, false, 0)) {
        bool arriving = is_arriving();
        suite_target(s, PTL_PRIORITY_LIST, other, 100,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW |
                         PTL_ME_EVENT_CT_BYTES | PTL_ME_EVENT_OVER_DISABLE,
                     (void *)1);
        if (arriving) {
            EXPECT_CT(s->ct, 0, 0);
        }
        resume(s);
        ptl_ct_event_t value;
        OK(PtlCTWait(s->ct, 1, &value));
        CHECK_EQ(value.success, LONG);
        CHECK_FILL(to, LONG, 1);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
    }
}

CASE(arriving_use_once_block, ALL_KINDS, PAIR,
     "3.12: a use-once overflow entry whose message was claimed while it arrived posts AUTO_UNLINK "
     "and AUTO_FREE behind PUT_OVERFLOW or PUT, each once",
     .own_process = "stops itself")
{
    if (begin(s, PTL_ME_USE_ONCE, false, 0)) {
        suite_target(s, PTL_PRIORITY_LIST, other, 100,
                     PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, (void *)1);
        resume(s);
        enum { PUT, OVER, UNLINK, FREE };
        int at[4] = {-1, -1, -1, -1};
        for (int i = 0; i < 4; i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->eq, &e));
            int k = e.type == PTL_EVENT_PUT            ? PUT
                    : e.type == PTL_EVENT_PUT_OVERFLOW ? OVER
                    : e.type == PTL_EVENT_AUTO_UNLINK  ? UNLINK
                                                       : FREE;
            CHECK(k != FREE || e.type == PTL_EVENT_AUTO_FREE);
            CHECK_EQ(at[k], -1);
            CHECK_EQ(e.user_ptr, k == OVER ? 1 : 9);
            at[k] = i;
        }
        CHECK(at[PUT] < at[OVER] && at[PUT] < at[UNLINK]);
        CHECK(at[OVER] < at[FREE] && at[UNLINK] < at[FREE]);
        NO_EVENT(s->eq);
    }
}

CASE(arriving_get, ALL_KINDS, PAIR,
     "3.12.1: the header of a get whose data still leave may be taken; GET_OVERFLOW comes behind "
     "GET",
     .own_process = "stops itself")
{
    if (s->target) {
        suite_fill(from, LONG, 1);
    }
    if (begin(s, 0, true, 0)) {
        suite_target(s, PTL_PRIORITY_LIST, other, 100,
                     PTL_ME_OP_GET | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, (void *)1);
        resume(s);
        EXPECT(s->eq, PTL_EVENT_GET, .user_ptr = IS(9), .mlength = IS(LONG));
        EXPECT(s->eq, PTL_EVENT_GET_OVERFLOW, .user_ptr = IS(1), .mlength = IS(LONG));
    }
}

CASE(arriving_searched, ALL_KINDS, PAIR,
     "3.12.3: a search finds a message when it is complete, not before",
     .own_process = "stops itself")
{
    if (begin(s, PTL_ME_EVENT_COMM_DISABLE, false, 0)) {
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
        if (is_arriving()) {
            OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_ONLY, &me, (void *)1));
            EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(1));
            OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, (void *)1));
            EXPECT(s->eq, PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user_ptr = IS(1));
        }
        resume(s);
        ptl_event_t e;
        do {
            OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, (void *)2));
            OK(PtlEQWait(s->eq, &e));
        } while (e.ni_fail_type == PTL_NI_NO_MATCH);
        EVENT_IS(e, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2), .mlength = IS(LONG));
        CHECK_FILL(to, LONG, 1);
        NO_EVENT(s->eq);
    }
}

CASE(
    arriving_unlink, ALL_KINDS, PAIR,
    "3.12.2: an overflow entry in which a message still arrives is in use; when it is complete and "
    "taken, it is not",
    .own_process = "stops itself")
{
    ptl_handle_me_t entry = 0;
    suite_show(s, 0, (uint64_t)getpid());
    if (s->initiator) {
        suite_fill(from, LONG, 1);
        STEP();
        send_and_stop(s, false, 0);
    } else {
        memset(to, 0, LONG);
        entry = suite_target(s, PTL_OVERFLOW_LIST, to, LONG, PTL_ME_OP_PUT, (void *)9);
        STEP();
        rule_await_stop(s, (int)suite_look(s, 0, 0));
        CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        resume(s);
        EXPECT(s->eq, PTL_EVENT_PUT);
        CODE(suite_unlink_code(s, entry), PTL_IN_USE);
        suite_target(s, PTL_PRIORITY_LIST, other, 100, PTL_ME_OP_PUT, (void *)1);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1));
        OK(suite_unlink_code(s, entry));
    }
}

CASE(arriving_disable, ALL_KINDS, PAIR,
     "3.7.3: PtlPTDisable waits for a message that arrives; one behind it is refused")
{
    suite_show(s, 0, (uint64_t)getpid());
    if (s->initiator) {
        suite_fill(from, LONG, 1);
        ptl_handle_md_t md = rule_md(s, from, LONG);
        STEP();
        OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 1, 0, NULL, 1));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(LONG));
        STEP();
        rule_put(s, md, LONG, 0, PTL_NI_PT_DISABLED);
    } else {
        memset(to, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT, (void *)9);
        STEP();
        unsigned char first[2] = {0, 0};
        for (uint64_t end = suite_deadline();
             first[0] == 0 && first[1] == 0 && suite_now_ms() < end; suite_peek(first, to, 2)) {
            rule_nudge(s, 0);
            ptl_ct_event_t ignored;
            OK(PtlCTGet(s->ct, &ignored));
        }
        OK(PtlPTDisable(s->ni, SUITE_PT));
        ptl_event_t e;
        OK(PtlEQGet(s->eq, &e)); /* there already: it has not returned before */
        EVENT_IS(e, PTL_EVENT_PUT, .mlength = IS(LONG));
        CHECK_FILL(to, LONG, 1);
        STEP();
    }
}

CASE(arriving_freed, ALL_KINDS, PAIR,
     "3.13, 3.14: a counter and a queue may be freed while a message arrives that would be told "
     "there; all else goes on",
     .own_process = "stops itself")
{
    if (begin(s, PTL_ME_EVENT_COMM_DISABLE, false, 1)) {
        ptl_me_t me = suite_entry(s, other, 100,
                                  PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE |
                                      PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_COMM);
        OK(PtlCTAlloc(s->ni, &me.ct_handle));
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        OK(PtlCTFree(me.ct_handle));
        OK(PtlEQFree(s->eq));
        ptl_handle_ct_t next = suite_ct(s);
        resume(s);
        for (uint64_t end = suite_deadline(); is_arriving() && suite_now_ms() < end;) {
            rule_nudge(s, 1);
        }
        CHECK(!is_arriving());
        EXPECT_CT(next, 0, 0);
    }
}
