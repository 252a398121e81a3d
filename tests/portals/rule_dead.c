/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.12, 3.13: long messages one of whose ends stops, dies or closes its interface in the middle,
 * while a third process goes on. How they are held there: see rule_arriving.c.
 */
#include "rule_kit.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 8 << 20 };
static unsigned char from[LONG], to[LONG], other[LONG];

/* The last bytes of the message have not come. */
static bool is_arriving(void)
{
    return !rule_ends_as(to, LONG, 1);
}

/* No event as long as the message is in the middle. */
#define QUIET_IF(arriving_)                                                                        \
    do {                                                                                           \
        if (arriving_) {                                                                           \
            NO_EVENT(s->eq);                                                                       \
            CHECK(is_arriving());                                                                  \
        }                                                                                          \
    } while (0)

/* Peer 1 stops in the middle of a long message, then peer 2 sends short ones: true at the
 * target, with the overflow entry `handle`. */
static bool begin_crowd(struct scene *s, ptl_list_t list, unsigned options, ptl_handle_me_t *handle)
{
    if (s->target) {
        memset(to, 0, LONG);
        *handle = suite_target(s, list, to, LONG, PTL_ME_OP_PUT | options, (void *)9);
    } else {
        rule_meet(s, s->to);
    }
    crowd_step(s);
    if (crowd.rank == 1) {
        suite_fill(from, LONG, 1);
        OK(PtlPut(rule_md(s, from, LONG), 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 1, 0, NULL, 1));
        raise(SIGSTOP);
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    } else if (crowd.rank == 2) {
        crowd_await(s, 0, 0, 1);
        rule_put(s, rule_md(s, from, 8), 8, 2, crowd_look(0, 1) ? PTL_NI_DROPPED : PTL_NI_OK);
        crowd_show(0, 1);
    } else {
        rule_await_stop(s, crowd.pid[1]);
        rule_await_begin(s, crowd.pid[1], to, 1);
    }
    return s->target;
}

static void let_peer_2_send(struct scene *s, bool refused)
{
    crowd_show(1, refused);
    crowd_show(0, 1);
    crowd_await(s, 2, 0, 1);
}

static void oldest_of_two(struct scene *s)
{
    ptl_handle_me_t block;
    if (begin_crowd(s, PTL_OVERFLOW_LIST, PTL_ME_EVENT_COMM_DISABLE, &block)) {
        bool arriving = is_arriving();
        let_peer_2_send(s, false);
        for (long i = 1; i <= 2; i++) {
            suite_target(s, PTL_PRIORITY_LIST, other, 8,
                         PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, (void *)i);
        }
        if (arriving) { /* the second entry's message is there, the first one's is not */
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2), .hdr_data = IS(2));
            QUIET_IF(true);
        }
        CHECK(kill(crowd.pid[1], SIGCONT) == 0);
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1), .hdr_data = IS(1));
        CHECK(!is_arriving());
        if (!arriving) {
            EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(2), .hdr_data = IS(2));
        }
        NO_EVENT(s->eq);
    }
}

CASE(oldest_of_peers, ALL_KINDS, BARE,
     "3.12.1: the oldest header is taken even if its message still arrives and a younger one's is "
     "complete; each entry hears of its own")
{
    crowd_run(s, 3, 0, 0, NULL, oldest_of_two);
}

/* What the death of peer 1 leaves: `claim` is 0 (nobody), 1 (a use-once entry), 2 (one that
 * stays). */
static void die(struct scene *s, int claim)
{
    ptl_handle_me_t block = 0, entry = 0;
    if (!begin_crowd(s, PTL_OVERFLOW_LIST, 0, &block)) {
        return;
    }
    bool arriving = is_arriving();
    int fail = arriving ? PTL_NI_UNDELIVERABLE : PTL_NI_OK;
    ptl_me_t me = suite_entry(s, other, LONG,
                              PTL_ME_OP_PUT | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_LINK_DISABLE |
                                  (claim == 1 ? PTL_ME_USE_ONCE : 0));
    if (claim != 0) {
        entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
    }
    QUIET_IF(arriving);
    crowd_kill(1);
    EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(9), .fail = fail);
    if (claim == 0 && !arriving) {
        entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
    }
    if (claim != 0 || !arriving) {
        EXPECT(s->eq, PTL_EVENT_PUT_OVERFLOW, .user_ptr = IS(1), .fail = fail);
        EXPECT_CT(s->ct, !arriving, arriving);
    }
    if (claim == 1) {
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(1));
    }
    NO_EVENT(s->eq);
    suite_unlink(s, block);
    if (claim == 1 || (claim == 0 && arriving)) {
        me.options = PTL_ME_OP_PUT;
        entry = suite_append(s, PTL_PRIORITY_LIST, &me, (void *)1);
        EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(1)); /* no header is left */
    }
    let_peer_2_send(s, false);
    EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(1), .hdr_data = IS(2));
    suite_unlink(s, entry);
    OK(PtlPTFree(s->ni, SUITE_PT));
}

static void die_unclaimed(struct scene *s)
{
    die(s, 0);
}

static void die_claimed_once(struct scene *s)
{
    die(s, 1);
}

static void die_claimed(struct scene *s)
{
    die(s, 2);
}

CASE(dead_unclaimed, ALL_KINDS, BARE,
     "3.13: when the sender of an unexpected message dies in the middle of it, PUT tells the "
     "failure and no header stays; others go on")
{
    crowd_run(s, 3, 0, 0, NULL, die_unclaimed);
}

CASE(dead_claimed_once, ALL_KINDS, BARE,
     "3.13: a use-once entry that had taken such a message hears of the failure, counts it, and is "
     "unlinked")
{
    crowd_run(s, 3, 0, 0, NULL, die_claimed_once);
}

CASE(dead_claimed, ALL_KINDS, BARE,
     "3.13: an entry that stays hears of the failure and takes further messages")
{
    crowd_run(s, 3, 0, 0, NULL, die_claimed);
}

static void die_expected(struct scene *s)
{
    ptl_handle_me_t entry;
    if (begin_crowd(s, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE, &entry)) {
        int fail = is_arriving() ? PTL_NI_UNDELIVERABLE : PTL_NI_OK;
        crowd_kill(1);
        OK(PtlPTDisable(s->ni, SUITE_PT)); /* waits for the message that will never be whole */
        EXPECT(s->eq, PTL_EVENT_PUT, .user_ptr = IS(9), .fail = fail);
        EXPECT(s->eq, PTL_EVENT_AUTO_UNLINK, .user_ptr = IS(9));
        OK(PtlPTEnable(s->ni, SUITE_PT));
        let_peer_2_send(s, true);
        NO_EVENT(s->eq);
        OK(PtlPTFree(s->ni, SUITE_PT));
    }
}

CASE(
    dead_expected, ALL_KINDS, BARE,
    "3.7.3, 3.13: an entry whose message's sender died is told and unlinked; PtlPTDisable does not "
    "wait for ever")
{
    crowd_run(s, 3, 0, 0, NULL, die_expected);
}

/* The target closes its interface in the middle of the message, then opens it again. */
static void close_under_message(struct scene *s)
{
    if (s->target) {
        memset(to, 0, LONG);
        suite_target(s, PTL_OVERFLOW_LIST, to, LONG, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
    } else {
        rule_meet(s, s->to);
    }
    crowd_step(s);
    if (s->target) {
        rule_await_stop(s, crowd.pid[1]);
        suite_target(s, PTL_PRIORITY_LIST, other, 100, PTL_ME_OP_PUT | PTL_ME_USE_ONCE, NULL);
        OK(PtlNIFini(s->ni));
        memset(to, 0x5a, LONG);
        CHECK(kill(crowd.pid[1], SIGCONT) == 0);
        suite_sleep_ms(100);
        CHECK_BYTES(to, LONG, 0x5a);
        OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &s->ni));
        OK(PtlCTAlloc(s->ni, &s->ct));
    } else {
        OK(PtlPut(rule_md(s, from, LONG), 0, LONG, PTL_ACK_REQ, s->to, SUITE_PT, 1, 0, NULL, 1));
        raise(SIGSTOP);
        ptl_event_t e; /* however it ends, it does */
        OK(PtlEQWait(s->mdeq, &e));
        CHECK_EQ(e.type, PTL_EVENT_ACK);
    }
}

CASE(closed_in_the_middle, MP | NL, BARE,
     "3.6.3: an interface may be closed while a claimed message arrives: within bounded time, and "
     "the memory of its entries is the program's again; the sender's operation ends")
{
    crowd_run(s, 2, 0, 0, NULL, close_under_message);
}

/* Peer 1 asks for more than fits between the two and is killed; member 0 sends. */
static void die_getting(struct scene *s)
{
    ptl_handle_me_t entry = 0;
    if (s->target) {
        memset(to, 0xa5, LONG);
        entry = suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_GET, (void *)9);
    } else {
        memset(from, 0, 1);
        rule_meet(s, s->to);
    }
    crowd_step(s);
    if (crowd.rank == 1) {
        OK(PtlGet(rule_md(s, from, LONG), 0, LONG, s->to, SUITE_PT, 0, 0, NULL));
        rule_await_change(s, from, 0);
        raise(SIGSTOP);
    } else {
        rule_await_stop(s, crowd.pid[1]);
        crowd_kill(1);
        ptl_event_t e;
        OK(PtlEQWait(s->eq, &e));
        CHECK(e.ni_fail_type == PTL_NI_OK || e.ni_fail_type == PTL_NI_UNDELIVERABLE);
        EVENT_IS(e, PTL_EVENT_GET, .fail = e.ni_fail_type, .user_ptr = IS(9));
        suite_unlink(s, entry);
        OK(PtlPTFree(s->ni, SUITE_PT));
    }
}

CASE(dead_getting, ALL_KINDS, BARE,
     "3.13: a get whose initiator dies ends at the target, and frees the entry")
{
    crowd_run(s, 2, 0, 0, NULL, die_getting);
}

/* Member 1, the target of this one, stops with a put and a get under way, and is killed. */
static void die_as_target(struct scene *s)
{
    if (crowd.rank == 1) {
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_GET | PTL_ME_OP_PUT, (void *)9);
    } else {
        rule_meet(s, crowd.id[1]);
    }
    crowd_step(s);
    if (crowd.rank == 1) {
        raise(SIGSTOP);
    } else {
        rule_await_stop(s, crowd.pid[1]);
        ptl_handle_md_t md = suite_md(
            s, from, LONG, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY);
        OK(PtlPut(md, 0, LONG, PTL_ACK_REQ, crowd.id[1], SUITE_PT, 0, 0, (void *)1, 0));
        OK(PtlGet(md, 0, LONG, crowd.id[1], SUITE_PT, 0, 0, (void *)2));
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, crowd.id[1], SUITE_PT, 0, 0, (void *)3, 0));
        NO_EVENT(s->mdeq);
        crowd_kill(1);
        bool seen[4] = {false};
        for (int i = 0; i < 3; i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->mdeq, &e));
            CHECK_EQ(e.ni_fail_type, PTL_NI_UNDELIVERABLE);
            long n = (long)e.user_ptr;
            CHECK(n >= 1 && n <= 3 && !seen[n]);
            CHECK_EQ(e.type, n == 2 ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
            seen[n] = true;
        }
        EXPECT_CT(s->mdct, 0, 3);
        OK(PtlMDRelease(md));
    }
}

CASE(dead_target, ALL_KINDS, BARE,
     "3.13: operations whose target dies end with PTL_NI_UNDELIVERABLE, each once, and their MD "
     "can be released")
{
    crowd_run(s, 2, 0, 0, NULL, die_as_target);
}

/* Becomes a program that waits to be killed: the pid lives, the interface does not. */
static void become_another(void)
{
    execlp("sleep", "sleep", "3600", NULL);
    FAIL("no program sleep");
}

static void turn_as_target(struct scene *s)
{
    if (crowd.rank == 1) {
        ptl_ct_event_t some;
        /* Counted: who is late here would find its queue full. */
        suite_target(s, PTL_PRIORITY_LIST, to, LONG,
                     PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM, NULL);
        crowd_step(s);
        OK(PtlCTWait(s->ct, 1, &some));
        become_another();
    }
    crowd_step(s);
    ptl_handle_md_t md = suite_md(s, from, LONG, PTL_MD_EVENT_SEND_DISABLE);
    ptl_event_t e;
    do {
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, crowd.id[1], SUITE_PT, 0, 0, NULL, 0));
        OK(PtlEQWait(s->mdeq, &e));
        CHECK_EQ(e.type, PTL_EVENT_ACK);
    } while (e.ni_fail_type == PTL_NI_OK);
    CHECK_EQ(e.ni_fail_type, PTL_NI_UNDELIVERABLE);
    OK(PtlMDRelease(md));
    crowd_kill(1);
}

CASE(exec_target, ALL_KINDS, BARE,
     "3.13: operations to a process that runs another program now (exec), under the same pid, end "
     "with PTL_NI_UNDELIVERABLE")
{
    crowd_run(s, 2, 0, 0, NULL, turn_as_target);
}

static void turn_as_initiator(struct scene *s)
{
    if (s->target) {
        memset(to, 0, LONG);
        suite_target(s, PTL_PRIORITY_LIST, to, LONG, PTL_ME_OP_PUT, (void *)9);
    } else {
        rule_meet(s, s->to);
    }
    crowd_step(s);
    if (!s->target) {
        suite_fill(from, LONG, 1);
        OK(PtlPut(rule_md(s, from, LONG), 0, LONG, PTL_NO_ACK_REQ, s->to, SUITE_PT, 1, 0, NULL, 1));
        raise(SIGSTOP);
        become_another();
    }
    rule_await_stop(s, crowd.pid[1]);
    rule_await_begin(s, crowd.pid[1], to, 1);
    CHECK(kill(crowd.pid[1], SIGCONT) == 0);
    ptl_event_t e;
    OK(PtlEQWait(s->eq, &e));
    CHECK_EQ(e.type, PTL_EVENT_PUT);
    if (e.ni_fail_type == PTL_NI_OK) {
        CHECK_FILL(to, LONG, 1);
    } else {
        CHECK_EQ(e.ni_fail_type, PTL_NI_UNDELIVERABLE);
    }
    crowd_kill(1);
}

CASE(exec_initiator, ALL_KINDS, BARE,
     "3.13: a message whose sender runs another program now ends: whole, or with "
     "PTL_NI_UNDELIVERABLE, never with bytes of the other program")
{
    crowd_run(s, 2, 0, 0, NULL, turn_as_initiator);
}
