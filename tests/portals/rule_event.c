/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.13: event queues, and the calls that wait for them; 3.5: PtlAbort. */
#include "rule_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SIZE = 4096 };
static unsigned char from[SIZE], to[SIZE];

/* Posts `count` events to a queue of this process: SENDs, user_ptr 0, 1, ... */
static void post(struct scene *s, ptl_handle_eq_t eq, int count)
{
    ptl_handle_md_t md = suite_md_with(s, from, 8, 0, eq, PTL_CT_NONE);
    for (long i = 0; i < count; i++) {
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->from, SUITE_PT, 0, 0, (void *)i, 0));
    }
    suite_release(s, md); /* all have left */
}

CASE(queue_order, ALL_KINDS, SELF,
     "3.13: events are taken in the order in which they were posted; then PTL_EQ_EMPTY")
{
    ptl_event_t e;
    CODE(PtlEQGet(s->mdeq, &e), PTL_EQ_EMPTY);
    post(s, s->mdeq, 100);
    for (int i = 0; i < 100; i++) {
        OK(PtlEQGet(s->mdeq, &e));
        EVENT_IS(e, PTL_EVENT_SEND, .user_ptr = IS(i));
    }
    CODE(PtlEQGet(s->mdeq, &e), PTL_EQ_EMPTY);
}

CASE(queue_exact, ALL_KINDS, SELF, "3.13: a queue holds as many events as it was made for")
{
    static const int sizes[] = {1, 2, 3, 7, 64, 1000};
    for (int k = 0; k < 6; k++) {
        ptl_handle_eq_t eq = suite_eq(s, (ptl_size_t)sizes[k]);
        ptl_event_t e;
        for (int round = 0; round < 3; round++) {
            post(s, eq, sizes[k]);
            for (int i = 0; i < sizes[k]; i++) {
                OK(PtlEQGet(eq, &e));
                EVENT_IS(e, PTL_EVENT_SEND, .user_ptr = IS(i));
            }
            CODE(PtlEQGet(eq, &e), PTL_EQ_EMPTY);
        }
    }
}

CASE(
    queue_dropped, ALL_KINDS, SELF,
    "3.13: a queue that runs full loses its oldest events; the next get says PTL_EQ_DROPPED, once, "
    "and gives an event all the same, by every call")
{
    ptl_handle_eq_t eq = suite_eq(s, 4);
    for (int way = 0; way < 4; way++) {
        post(s, eq, 11);
        ptl_event_t e;
        unsigned which = 9;
        int code = way == 0   ? PtlEQGet(eq, &e)
                   : way == 1 ? PtlEQWait(eq, &e)
                              : PtlEQPoll(&eq, 1, way == 2 ? 0 : 1000, &e, &which);
        CODE(code, PTL_EQ_DROPPED);
        CHECK(way < 2 || which == 0);
        CHECK_EQ(e.type, PTL_EVENT_SEND);
        long first = (long)e.user_ptr;
        CHECK(first > 0 && first <= 7);
        for (long i = first + 1; i < 11; i++) {
            OK(PtlEQGet(eq, &e));
            CHECK_EQ(e.user_ptr, i);
        }
        CODE(PtlEQGet(eq, &e), PTL_EQ_EMPTY);
    }
}

CASE(queue_dropped_messages, ALL_KINDS, SELF | PAIR,
     "3.13: without flow control messages are delivered and acknowledged although their events are "
     "lost")
{
    enum { COUNT = 50 };
    ptl_handle_eq_t eq = suite_eq(s, 2);
    ptl_pt_index_t index = suite_pt(s, 0, eq, 22);
    static uint64_t cell[COUNT], word;
    memset(cell, 0, sizeof(cell));
    ptl_me_t me = suite_entry(s, cell, sizeof(cell), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, &word, 8);
        for (word = 1; word <= COUNT; word++) {
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, index, 0, (word - 1) * 8, NULL, word));
            EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
        }
    }
    STEP();
    if (s->target) {
        ptl_event_t e;
        CODE(PtlEQGet(eq, &e), PTL_EQ_DROPPED);
        for (uint64_t i = 0; i < COUNT; i++) {
            CHECK_EQ(cell[i], i + 1);
        }
        while (e.hdr_data != COUNT) {
            OK(PtlEQGet(eq, &e));
        }
        CODE(PtlEQGet(eq, &e), PTL_EQ_EMPTY);
    }
}

CASE(queue_freed_full, ALL_KINDS, SELF, "3.13: a queue may be freed with events in it")
{
    ptl_handle_eq_t eq;
    ptl_event_t e;
    OK(PtlEQAlloc(s->ni, 16, &eq));
    post(s, eq, 10);
    OK(PtlEQFree(eq));
    INVALID(PtlEQGet(eq, &e));
    INVALID(PtlEQFree(eq));
}

CASE(queue_freed_of_index, ALL_KINDS, SELF | PAIR,
     "3.13: the events of an index whose queue was freed are lost; messages arrive")
{
    ptl_handle_eq_t eq;
    OK(PtlEQAlloc(s->ni, 16, &eq));
    ptl_pt_index_t index = suite_pt(s, 0, eq, 23);
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    OK(PtlEQFree(eq));
    STEP();
    if (s->initiator) {
        suite_fill(from, 100, 1);
        OK(PtlPut(rule_md(s, from, 100), 0, 100, PTL_ACK_REQ, s->to, index, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
    }
    STEP();
    if (s->target) {
        CHECK_FILL(to, 100, 1);
    }
}

CASE(poll_timeout, ALL_KINDS, SELF,
     "3.13: PtlEQPoll waits for its time and then gives PTL_EQ_EMPTY; with 0 it does not wait")
{
    ptl_handle_eq_t eq[2] = {s->mdeq, s->eq};
    ptl_event_t e;
    unsigned which;
    CODE(PtlEQPoll(eq, 2, 0, &e, &which), PTL_EQ_EMPTY);
    uint64_t begin = suite_now_ms();
    CODE(PtlEQPoll(eq, 2, 60, &e, &which), PTL_EQ_EMPTY);
    uint64_t took = suite_now_ms() - begin;
    CHECK(took >= 59);
    CHECK(took < 5000);
}

CASE(poll_which, ALL_KINDS, SELF,
     "3.13: PtlEQPoll takes an event of any of its queues and tells of which; the others keep "
     "theirs")
{
    enum { QUEUES = 20 };
    ptl_handle_eq_t eq[QUEUES];
    for (int i = 0; i < QUEUES; i++) {
        eq[i] = suite_eq(s, 8);
    }
    for (unsigned i = 0; i < QUEUES; i += 3) {
        ptl_event_t e;
        unsigned which = 99;
        post(s, eq[i], 1);
        OK(PtlEQPoll(eq, QUEUES, i % 2 ? PTL_TIME_FOREVER : 0, &e, &which));
        CHECK_EQ(which, i);
        EVENT_IS(e, PTL_EVENT_SEND);
    }
    for (int i = 0; i < QUEUES; i++) {
        post(s, eq[i], 2);
    }
    int seen[QUEUES] = {0};
    for (int n = 0; n < 2 * QUEUES; n++) {
        ptl_event_t e;
        unsigned which = 99;
        OK(PtlEQPoll(eq, QUEUES, 0, &e, &which));
        CHECK(which < QUEUES);
        CHECK_EQ(e.user_ptr, seen[which]);
        seen[which]++;
    }
    for (int i = 0; i < QUEUES; i++) {
        CHECK_EQ(seen[i], 2);
        NO_EVENT(eq[i]);
    }
}

CASE(poll_fair, ALL_KINDS, SELF,
     "3.13: PtlEQPoll looks at its queues in turn: one that never runs empty does not keep the "
     "events of another from the program")
{
    ptl_handle_eq_t eq[2] = {s->mdeq, s->eq};
    for (int full = 0; full < 2; full++) {
        bool seen = false;
        post(s, eq[1 - full], 1);
        post(s, eq[full], 3);
        for (int i = 0; i < 50; i++) {
            ptl_event_t e;
            unsigned which = 9;
            OK(PtlEQPoll(eq, 2, 0, &e, &which));
            if (which == (unsigned)(1 - full)) {
                seen = true;
                break;
            }
            post(s, eq[full], 1);
        }
        CHECK(seen);
        ptl_event_t e;
        while (PtlEQGet(eq[full], &e) == PTL_OK) {
        }
    }
}

CASE(poll_same_queue_twice, ALL_KINDS, SELF,
     "3.13: a queue may stand in PtlEQPoll's array more than once; each event is taken once")
{
    ptl_handle_eq_t eq[3] = {s->mdeq, s->mdeq, s->mdeq};
    post(s, s->mdeq, 3);
    for (int i = 0; i < 3; i++) {
        ptl_event_t e;
        unsigned which = 99;
        OK(PtlEQPoll(eq, 3, 100, &e, &which));
        CHECK(which < 3);
        CHECK_EQ(e.user_ptr, i);
    }
    NO_EVENT(s->mdeq);
}

CASE(poll_order, ALL_KINDS, SELF,
     "3.13: PtlEQPoll's `which` counts in the array of this call, whatever the one before had")
{
    ptl_handle_eq_t a = suite_eq(s, 8), b = suite_eq(s, 8);
    ptl_handle_eq_t arrays[4][2] = {{a, b}, {b, a}, {a, s->mdeq}, {s->mdeq, b}};
    for (int i = 0; i < 64; i++) {
        ptl_handle_eq_t *eq = arrays[i % 4];
        unsigned with = (unsigned)i / 4 % 2, which = 9;
        post(s, eq[with], 2);
        for (int k = 0; k < 2; k++) {
            ptl_event_t e;
            OK(PtlEQPoll(eq, 2, 0, &e, &which));
            CHECK_EQ(which, with);
            CHECK_EQ(e.user_ptr, k);
        }
        NO_EVENT(eq[with]);
    }
}

CASE(looked_at_and_freed, ALL_KINDS, SELF,
     "3.13, 3.14: what was looked at just now and then freed is invalid, whatever has its place")
{
    ptl_event_t e;
    ptl_ct_event_t c;
    unsigned which;
    for (unsigned i = 0; i < 70; i++) {
        ptl_handle_eq_t eq[2], other;
        ptl_handle_ct_t ct, another;
        OK(PtlEQAlloc(s->ni, 8, &eq[0]));
        OK(PtlEQAlloc(s->ni, 8, &eq[1]));
        OK(PtlCTAlloc(s->ni, &ct));
        for (int k = 0; k < 3; k++) {
            CODE(PtlEQGet(eq[i % 2], &e), PTL_EQ_EMPTY);
            CODE(PtlEQPoll(eq, 2, 0, &e, &which), PTL_EQ_EMPTY);
            OK(PtlCTGet(ct, &c));
            OK(PtlCTWait(ct, 0, &c));
        }
        post(s, eq[i % 2], 3);
        if (i % 3 == 0) {
            OK(PtlEQPoll(eq, 2, 0, &e, &which));
        }
        OK(PtlEQFree(eq[i % 2]));
        OK(PtlCTFree(ct));
        for (int k = 0; k < 2; k++) {
            INVALID(PtlEQGet(eq[i % 2], &e));
            INVALID(PtlEQPoll(eq, 2, 0, &e, &which));
            INVALID(PtlCTGet(ct, &c));
            INVALID(PtlCTWait(ct, 0, &c));
            if (k == 0) {
                OK(PtlEQAlloc(s->ni, 8, &other));
                OK(PtlCTAlloc(s->ni, &another));
                post(s, other, 1);
                OK(PtlEQGet(other, &e));
                post(s, other, 1);
                OK(PtlCTInc(another, (ptl_ct_event_t){.success = i}));
                OK(PtlCTGet(another, &c));
                CHECK_EQ(c.success, i);
            }
        }
        OK(PtlEQGet(other, &e));
        OK(PtlEQFree(other));
        OK(PtlCTFree(another));
        OK(PtlEQFree(eq[1 - i % 2]));
    }
}

CASE(wait_for_peer, ALL_KINDS, PAIR,
     "3.13: PtlEQWait and PtlEQPoll that wait, long enough to fall asleep, return with the event "
     "that a peer causes")
{
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    for (int i = 0; i < 6; i++) {
        if (s->initiator) {
            suite_sleep_ms(i < 4 ? 40 : 0);
            OK(PtlPut(rule_md(s, from, 8), 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL,
                      (ptl_hdr_data_t)i));
        } else {
            ptl_event_t e;
            unsigned which = 9;
            ptl_handle_eq_t eq[2] = {s->mdeq, s->eq};
            if (i % 2 == 0) {
                OK(PtlEQWait(s->eq, &e));
            } else {
                OK(PtlEQPoll(eq, 2, i == 1 ? PTL_TIME_FOREVER : 20000, &e, &which));
                CHECK_EQ(which, 1);
            }
            EVENT_IS(e, PTL_EVENT_PUT, .hdr_data = IS(i));
        }
    }
}

CASE(queue_shared, ALL_KINDS, SELF, "3.13: one queue may serve MDs and indexes together")
{
    suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = suite_md_with(s, from, 8, 0, s->eq, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    int seen[16] = {0};
    for (int i = 0; i < 3; i++) {
        ptl_event_t e;
        OK(PtlEQWait(s->eq, &e));
        seen[e.type & 15]++;
    }
    CHECK(seen[PTL_EVENT_PUT] == 1 && seen[PTL_EVENT_SEND] == 1 && seen[PTL_EVENT_ACK] == 1);
}

/* ---- Threads --------------------------------------------------------------- */

enum { THREADS = 4, MESSAGES = 600 };
static atomic_int taken[MESSAGES];
static atomic_int total, codes;
static ptl_handle_eq_t shared;

static void *take(void *argument)
{
    long way = (long)argument;
    while (atomic_load(&total) < MESSAGES) {
        ptl_event_t e;
        unsigned which;
        int code = way % 2 ? PtlEQGet(shared, &e) : PtlEQPoll(&shared, 1, 20, &e, &which);
        if (code == PTL_OK) {
            atomic_fetch_add(&taken[(long)e.hdr_data % MESSAGES], 1);
            atomic_fetch_add(&total, 1);
        } else if (code != PTL_EQ_EMPTY) {
            atomic_fetch_add(&codes, 1);
        }
    }
    return NULL;
}

CASE(threads_share_events, ALL_KINDS, SELF | PAIR,
     "3.13: of several threads that take from one queue each event goes to exactly one")
{
    ptl_handle_eq_t eq = suite_eq(s, MESSAGES); /* room for all, however slow the threads */
    ptl_pt_index_t index = suite_pt(s, 0, eq, 24);
    ptl_me_t me = suite_entry(s, to, SIZE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t entry;
    OK(suite_append_code(s, index, PTL_PRIORITY_LIST, &me, NULL, &entry));
    if (s->target) {
        shared = eq;
        memset(taken, 0, sizeof(taken));
        atomic_store(&total, 0);
        atomic_store(&codes, 0);
    }
    STEP();
    pthread_t thread[THREADS];
    for (long i = 0; i < THREADS && s->target; i++) {
        CHECK(pthread_create(&thread[i], NULL, take, (void *)i) == 0);
    }
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, 8);
        for (int i = 0; i < MESSAGES; i++) {
            OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, index, 0, 0, NULL, (ptl_hdr_data_t)i));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
    }
    for (int i = 0; i < THREADS && s->target; i++) {
        pthread_join(thread[i], NULL);
    }
    if (s->target) {
        CHECK_EQ(atomic_load(&codes), 0);
        CHECK_EQ(atomic_load(&total), MESSAGES);
        for (int i = 0; i < MESSAGES; i++) {
            CHECK_EQ(atomic_load(&taken[i]), 1);
        }
    }
}

static void *wait_one(void *argument)
{
    ptl_event_t e;
    int code = PtlEQWait(shared, &e);
    atomic_fetch_add((atomic_int *)argument, code == PTL_OK ? 1 : 1000);
    return NULL;
}

CASE(threads_wake_one, ALL_KINDS, SELF,
     "3.13: an event wakes exactly one of the threads in PtlEQWait; the others wait on")
{
    static atomic_int woken;
    atomic_store(&woken, 0);
    shared = s->mdeq;
    pthread_t thread[3];
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread[i], NULL, wait_one, &woken) == 0);
    }
    for (int i = 1; i <= 3; i++) {
        suite_sleep_ms(20);
        CHECK_EQ(atomic_load(&woken), i - 1);
        post(s, s->mdeq, 1);
        for (uint64_t end = suite_deadline(); atomic_load(&woken) < i && suite_now_ms() < end;) {
            suite_sleep_ms(1);
        }
        CHECK_EQ(atomic_load(&woken), i);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* ---- PtlAbort -------------------------------------------------------------- */

enum { WAYS = 4 };
static struct scene *scene_of_threads;
static atomic_int result[WAYS], waiting;

static void *wait_in_vain(void *argument)
{
    struct scene *s = scene_of_threads;
    long way = (long)argument;
    ptl_event_t e;
    ptl_ct_event_t value;
    ptl_size_t test = 1000;
    unsigned which;
    atomic_fetch_add(&waiting, 1);
    int code = way == 0   ? PtlEQWait(s->mdeq, &e)
               : way == 1 ? PtlEQPoll(&s->mdeq, 1, PTL_TIME_FOREVER, &e, &which)
               : way == 2 ? PtlCTWait(s->ct, test, &value)
                          : PtlCTPoll(&s->ct, &test, 1, 60000, &value, &which);
    atomic_store(&result[way], code);
    return NULL;
}

CASE(abort_waiting, ALL_KINDS, SELF,
     "3.5: PtlAbort ends PtlEQWait, PtlEQPoll, PtlCTWait and PtlCTPoll of other threads with "
     "PTL_ABORTED, whether they spin or sleep; afterwards all is as ever, and it works again")
{
    scene_of_threads = s;
    for (int round = 0; round < 3; round++) {
        pthread_t thread[WAYS];
        atomic_store(&waiting, 0);
        for (long i = 0; i < WAYS; i++) {
            atomic_store(&result[i], -1);
            CHECK(pthread_create(&thread[i], NULL, wait_in_vain, (void *)i) == 0);
        }
        while (atomic_load(&waiting) < WAYS) {
            suite_sleep_ms(1);
        }
        suite_sleep_ms(round == 0 ? 10 : 60);
        PtlAbort();
        for (int i = 0; i < WAYS; i++) {
            pthread_join(thread[i], NULL);
            CHECK_EQ(atomic_load(&result[i]), PTL_ABORTED);
        }
        post(s, s->mdeq, 1);
        EXPECT(s->mdeq, PTL_EVENT_SEND);
    }
}

CASE(abort_nobody, ALL_KINDS, SELF, "3.5: PtlAbort with nobody waiting ends no later wait")
{
    ptl_event_t e;
    ptl_ct_event_t value, one = {1, 0};
    unsigned which;
    ptl_size_t test = 1;
    PtlAbort();
    post(s, s->mdeq, 2);
    OK(PtlEQWait(s->mdeq, &e));
    OK(PtlEQPoll(&s->mdeq, 1, PTL_TIME_FOREVER, &e, &which));
    PtlAbort();
    CODE(PtlEQPoll(&s->mdeq, 1, 20, &e, &which), PTL_EQ_EMPTY);
    CODE(PtlCTPoll(&s->ct, &test, 1, 20, &value, &which), PTL_CT_NONE_REACHED);
    OK(PtlCTInc(s->ct, one));
    PtlAbort();
    OK(PtlCTWait(s->ct, 1, &value));
}
