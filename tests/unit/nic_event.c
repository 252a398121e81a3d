/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues against a model: posted, taken, overwritten, extended, in random order; what is
 * taken is what was posted, in that order, but for what the queue says that it lost.
 */
#include "nic/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct nic_stats stats;
static struct nic nic = {.stats = &stats};
static struct ni ni = {.nic = &nic};
static uint64_t seed = 20261122;

static uint64_t next_random(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static struct eq new_queue(uint64_t count)
{
    struct eq eq = {.ni = &ni, .wakeup = &nic.wakeup, .count = count};
    ptl_event_t *ring = calloc(count, sizeof(*ring));
    assert_non_null(ring);
    eq_use_ring(&eq, ring, count, 0);
    return eq;
}

static void put(struct eq *eq, uint64_t number)
{
    ptl_event_t *e = eq_place(eq);
    *e = (ptl_event_t){.user_ptr = (void *)number, .hdr_data = ~number};
    eq_kinds(e, PTL_EVENT_PUT, PTL_PRIORITY_LIST, PTL_NI_OK, PTL_SUM, PTL_UINT8_T);
    eq_placed(eq);
}

static void is_event(const ptl_event_t *e, uint64_t number)
{
    assert_int_equal((uint64_t)e->user_ptr, number);
    assert_int_equal(e->hdr_data, ~number);
    assert_int_equal(e->type, PTL_EVENT_PUT);
    assert_int_equal(e->atomic_operation, PTL_SUM);
    assert_int_equal(e->atomic_type, PTL_UINT8_T);
}

static void queue_keeps_the_order_and_tells_what_it_lost(void **state)
{
    for (uint64_t count = 1; count < 20; count++) {
        struct eq eq = new_queue(count);
        uint64_t posted = 0, first = 0; /* the model: events first .. posted - 1 are in it */
        bool lost = false;
        for (int i = 0; i < 4000; i++) {
            if (next_random(2) == 0) {
                put(&eq, posted++);
                if (posted - first > count) {
                    first++;
                    lost = true;
                }
            } else {
                ptl_event_t e;
                assert_int_equal(eq_empty(&eq), first == posted);
                int expected = first == posted ? PTL_EQ_EMPTY : lost ? PTL_EQ_DROPPED : PTL_OK;
                assert_int_equal(eq_take(&eq, &e), expected);
                if (expected != PTL_EQ_EMPTY) {
                    is_event(&e, first++);
                    lost = false;
                }
            }
        }
        free(eq.ring);
    }
}

/* One that has room beyond what it was made for grows instead. */
static void extended_queue_loses_nothing(void **state)
{
    for (uint64_t count = 1; count < 12; count++) {
        struct eq eq = new_queue(count);
        uint64_t posted = 0, taken = 0, lost_before = stats.events_lost;
        for (int i = 0; i < 2000; i++) {
            if (i == 100) {
                assert_int_equal(eq_extend(&eq, 1 + count / 2), 0);
                assert_int_equal(eq_extend(&eq, 1), 0);
            }
            bool full = posted - taken == count;
            if (i < 100 ? !full && next_random(3) != 0 : next_random(100) < 55) {
                put(&eq, posted++);
            } else {
                ptl_event_t e;
                if (eq_take(&eq, &e) == PTL_OK) {
                    is_event(&e, taken++);
                } else {
                    assert_int_equal(taken, posted);
                }
            }
        }
        for (ptl_event_t e; taken < posted;) {
            assert_int_equal(eq_take(&eq, &e), PTL_OK);
            is_event(&e, taken++);
        }
        assert_true(eq_empty(&eq));
        assert_int_equal(stats.events_lost, lost_before);
        free(eq.ring);
    }
}

static void only_sleepers_for_any_change_are_told(void **state)
{
    struct eq eq = new_queue(4);
    nic.wakeup = (struct wakeup){.due = false};
    put(&eq, 0);
    assert_false(nic.wakeup.due);
    nic.wakeup.any_change = 1;
    put(&eq, 1);
    assert_true(nic.wakeup.due);
    nic.wakeup.any_change = 0;
    free(eq.ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_keeps_the_order_and_tells_what_it_lost),
        cmocka_unit_test(extended_queue_loses_nothing),
        cmocka_unit_test(only_sleepers_for_any_change_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
