/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.15, 3.16: small operations of a process on itself: their results beside those that go another
 * way, from several threads, and of what is armed again and again. What they find is in
 * rule_quiet.c.
 */
#include "rule_kit.h"

#include <pthread.h>
#include <string.h>

static uint64_t word, from;

/* An entry at the word, which counts in s->ct. */
static void open_word(struct scene *s)
{
    word = 0;
    suite_target(s, PTL_PRIORITY_LIST, &word, 8,
                 PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE,
                 NULL);
}

CASE(self_like_others, ALL_KINDS, SELF,
     "3.15: an atomic gives one result, whether it wants an answer or not, is called or triggered, "
     "at whatever address")
{
    enum { PLACE = 24, RUNS = 3 };
    static uint8_t data[8], at[RUNS][PLACE];
    ptl_handle_md_t md = rule_md(s, data, 8);
    suite_target(s, PTL_PRIORITY_LIST, at, sizeof(at),
                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, NULL);
    struct suite_move m = suite_move_to(s, CALL_ATOMIC);
    m.md = md;
    m.trigger = s->ct;
    unsigned seed = 0;
    for (int op = 0; op < PTL_OP_LAST; op++) {
        for (int type = 0; type < PTL_DATATYPE_LAST; type++) {
            m.op = (ptl_op_t)op;
            m.type = (ptl_datatype_t)type;
            m.length = suite_type_size(m.type);
            if (m.length > 8 || !suite_legal(CALL_ATOMIC, m.op, m.type)) {
                continue;
            }
            for (unsigned shift = 0; shift < 8; shift++, seed++) {
                suite_fill(data, 8, seed);
                for (int run = 0; run < RUNS; run++) {
                    suite_fill(at[run], PLACE, seed + 1000000);
                    m.remote_offset = (ptl_size_t)run * PLACE + shift;
                    m.ack = run == 0 ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
                    m.triggered = run == 2;
                    OK(suite_move(&m));
                    if (run == 0) {
                        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(m.length));
                    }
                }
                EXPECT_CT(s->ct, (seed + 1) * RUNS, 0);
                CHECK(memcmp(at[1], at[0], PLACE) == 0);
                CHECK(memcmp(at[2], at[0], PLACE) == 0);
            }
        }
    }
}

enum { THREADS = 4, ADDS = 2000 };
static struct suite_move add;

static void *add_often(void *arg)
{
    int *code = arg;
    for (int i = 0; i < ADDS && *code == PTL_OK; i++) {
        *code = suite_move(&add);
    }
    return NULL;
}

CASE(self_threads, ALL_KINDS, SELF,
     "3.15: several threads may add to one word at once; nothing is lost")
{
    pthread_t thread[THREADS];
    int code[THREADS] = {PTL_OK};
    open_word(s);
    from = 1;
    add = suite_move_to(s, CALL_ATOMIC);
    add.md = suite_md_with(s, &from, 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
    add.length = 8;
    add.op = PTL_SUM;
    add.type = PTL_UINT64_T;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, add_often, &code[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        OK(code[i]);
    }
    EXPECT_CT(s->ct, THREADS * ADDS, 0);
    CHECK_EQ(__atomic_load_n(&word, __ATOMIC_RELAXED), THREADS * ADDS);
}

CASE(self_keeps_md, ALL_KINDS, SELF,
     "3.10, 3.16: an MD is in use until the operation that was armed with it has happened or is "
     "cancelled")
{
    open_word(s);
    ptl_handle_ct_t trigger = suite_ct(s);
    ptl_md_t d = {.start = &from, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    for (int cancel = 0; cancel < 2; cancel++) {
        ptl_handle_md_t md;
        OK(PtlMDBind(s->ni, &d, &md));
        OK(PtlCTSet(trigger, (ptl_ct_event_t){0, 0}));
        for (int i = 0; i < 3; i++) {
            OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, trigger,
                               1));
        }
        CODE(PtlMDRelease(md), PTL_IN_USE);
        OK(cancel ? PtlCTCancelTriggered(trigger) : PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
        OK(PtlMDRelease(md));
    }
}

CASE(self_armed_anew, ALL_KINDS, SELF,
     "3.16: of operations of all kinds, armed one after the other, each does what it was armed for")
{
    enum { ROUNDS = 40, KINDS = 6 };
    static uint64_t fetched;
    open_word(s);
    ptl_handle_md_t md = suite_md_with(s, &from, 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_handle_ct_t trigger = suite_ct(s), counted = suite_ct(s);
    uint64_t expected = 0;
    ptl_size_t counts = 0, landed = 0;
    from = 5;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        ptl_md_t d = {
            .start = &fetched, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        ptl_handle_md_t in;
        OK(PtlMDBind(s->ni, &d, &in));
        bool cancelled = round % 5 == 0;
        for (unsigned i = 0; i < KINDS; i++) {
            uint64_t before = expected;
            unsigned kind = (i * 5 + round) % KINDS;
            OK(PtlCTSet(trigger, (ptl_ct_event_t){0, 0}));
            switch (kind) {
            case 0:
                OK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0,
                                   trigger, 1));
                expected = from;
                break;
            case 1:
                OK(PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0,
                                      PTL_BXOR, PTL_INT64_T, trigger, 1));
                expected ^= from;
                break;
            case 2:
                OK(PtlTriggeredFetchAtomic(in, 0, md, 0, 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                                           PTL_INT64_T, trigger, 1));
                expected += from;
                break;
            case 3:
                OK(PtlTriggeredGet(in, 0, 8, s->to, SUITE_PT, 0, 0, NULL, trigger, 1));
                break;
            case 4:
                OK(PtlTriggeredCTInc(counted, (ptl_ct_event_t){3, 0}, trigger, 1));
                break;
            default:
                OK(PtlTriggeredCTSet(counted, (ptl_ct_event_t){counts + 7, 0}, trigger, 1));
                break;
            }
            if (cancelled) {
                OK(PtlCTCancelTriggered(trigger));
                expected = before;
            } else if (kind >= 4) {
                counts += kind == 4 ? 3 : 7;
            } else {
                landed++;
            }
            OK(PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
            EXPECT_CT(kind >= 4 ? counted : s->ct, kind >= 4 ? counts : landed, 0);
            CHECK_EQ(word, expected);
        }
        suite_release(s, in);
    }
}
