/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.16: many triggered operations on one counter. They happen by threshold, then by age, in
 * whatever order they were armed, and arming one costs little, however many wait.
 */
#include "rule_kit.h"

#include "../splitmix.h"

#include <stdlib.h>
#include <string.h>

static ptl_ct_event_t value_of(ptl_size_t success)
{
    return (ptl_ct_event_t){success, 0};
}

/* ---- Order against a model --------------------------------------------------- */

enum { ROUNDS = 20, BURST = 300, WAITING = ROUNDS * BURST, HIGHEST = 3000 };

/* What waits, as the model has it: sorted by threshold, then by age. */
static struct waiting {
    uint64_t threshold, age;
} waiting[WAITING];
static size_t waiting_count;

static void model_arm(uint64_t threshold, uint64_t age)
{
    size_t at = waiting_count++;
    for (; at > 0 && waiting[at - 1].threshold > threshold; at--) {
        waiting[at] = waiting[at - 1];
    }
    waiting[at] = (struct waiting){threshold, age};
}

/* Falling, rising, two by turns, any: by round. */
static uint64_t threshold_of(uint64_t round, uint64_t i, uint64_t *random)
{
    switch (round % 4) {
    case 0:
        return HIGHEST - i;
    case 1:
        return 1 + i;
    case 2:
        return i % 2 == 0 ? HIGHEST / 2 : HIGHEST / 3;
    default:
        return 1 + splitmix_below(random, HIGHEST);
    }
}

static void expect_reached(struct scene *s, uint64_t count)
{
    size_t reached = 0;
    for (; reached < waiting_count && waiting[reached].threshold <= count; reached++) {
        EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(waiting[reached].age));
    }
    waiting_count -= reached;
    memmove(waiting, waiting + reached, waiting_count * sizeof(waiting[0]));
}

CASE(trigger_many_in_order, ALL_KINDS, SELF,
     "3.16: many operations of one counter happen by threshold, and those of one threshold in the "
     "order of the calls, whatever order they were armed in",
     .event_count = 2 * WAITING)
{
    uint64_t random = 4, age = 0;
    suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = suite_md(s, NULL, 0, PTL_MD_EVENT_SEND_DISABLE);
    waiting_count = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        OK(PtlCTSet(s->ct, value_of(0)));
        for (uint64_t i = 0; i < BURST; i++, age++) {
            uint64_t threshold = threshold_of(round, i, &random);
            OK(PtlTriggeredPut(md, 0, 0, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, age, s->ct,
                               threshold));
            model_arm(threshold, age);
        }
        uint64_t reach = splitmix_below(&random, HIGHEST + HIGHEST / 4);
        OK(PtlCTSet(s->ct, value_of(reach)));
        expect_reached(s, reach);
        if (round % 10 == 9) {
            OK(PtlCTSet(s->ct, value_of(0)));
            OK(PtlCTCancelTriggered(s->ct));
            waiting_count = 0;
        }
    }
    OK(PtlCTSet(s->ct, value_of(HIGHEST)));
    expect_reached(s, HIGHEST);
    NO_EVENT(s->eq);
}

/* ---- As many as the limit allows ----------------------------------------------- */

static void fill(struct scene *s, uint64_t (*threshold)(uint64_t i, uint64_t count))
{
    uint64_t count = (uint64_t)s->limits.max_triggered_ops;
    ptl_handle_ct_t happened = suite_ct(s);
    OK(PtlCTSet(s->ct, value_of(0)));
    for (uint64_t i = 0; i < count; i++) {
        CODE(PtlTriggeredCTInc(happened, value_of(1), s->ct, threshold(i, count)), PTL_OK);
    }
    CODE(PtlTriggeredCTInc(happened, value_of(1), s->ct, 1), PTL_NO_SPACE);
    OK(PtlCTSet(s->ct, value_of(count)));
    EXPECT_CT(happened, count, 0);
}

static uint64_t falling(uint64_t i, uint64_t count)
{
    return count - i;
}

static uint64_t by_turns(uint64_t i, uint64_t count)
{
    return i % 2 == 0 ? count : count / 2;
}

static uint64_t scattered(uint64_t i, uint64_t count)
{
    return 1 + i * 7919 % count;
}

CASE(trigger_full_falling, MP, SELF,
     "3.16: max_triggered_ops operations can be armed with falling thresholds")
{
    fill(s, falling);
}

CASE(trigger_full_by_turns, MP, SELF,
     "3.16: max_triggered_ops operations can be armed with two thresholds by turns")
{
    fill(s, by_turns);
}

CASE(trigger_full_scattered, MP, SELF,
     "3.16: max_triggered_ops operations can be armed with thresholds in no order")
{
    fill(s, scattered);
}
