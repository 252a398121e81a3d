/* SPDX-License-Identifier: BSD-3-Clause */
/* What keeps events in order: the queue, the wheel, the agenda, claims that wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/models/agenda.h"
#include "sim/models/claims.h"
#include "sim/models/wheel.h"
#include "sim/util/queue.h"

static uint64_t random_state = 7;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Random times that often coincide and sometimes lie far apart. */
static uint64_t later_than(uint64_t time)
{
    uint64_t step = draw() % 8 < 5 ? draw() % 3 : draw() >> (20 + draw() % 40);
    return time + step < (uint64_t)INT64_MAX ? time + step : time;
}

static struct event random_event(uint64_t time)
{
    return (struct event){.time = time,
                          .kind = (uint32_t)(EVENT_ARRIVE + draw() % 8),
                          .source = (uint32_t)(draw() % 4),
                          .op = (uint32_t)(draw() % 5),
                          .number = (uint32_t)draw() % EVENT_NUMBERS};
}

static void queue_gives_the_least(void **state)
{
    (void)state;
    enum { EVENTS = 20000 };
    struct sim_queue q = {0};
    struct sim_event e = {0}, before = {0};
    for (uint64_t i = 0; i < EVENTS; i++) {
        assert_int_equal(sim_queue_push(&q, draw() % 500 << (draw() % 2 * 54), i, ~i), 0);
    }
    for (uint64_t i = 0; i < EVENTS; i++) {
        assert_true(sim_queue_pop(&q, &e));
        assert_true(i == 0 || before.time < e.time ||
                    (before.time == e.time && before.key < e.key));
        assert_int_equal(e.ref, ~e.key);
        before = e;
    }
    assert_false(sim_queue_pop(&q, &e));
    sim_queue_free(&q);
}

/* Keys: time, kind, source, operation; of arrivals the number instead, which wraps. */
static void keys_compare(void **state)
{
    (void)state;
    struct event a = {.time = 5, .kind = EVENT_SEND, .source = 3, .op = 7};
    struct event b = a;
    assert_false(event_before(&a, &b));
    b.op = 8;
    assert_true(event_before(&a, &b));
    b.source = 2;
    assert_true(event_before(&b, &a));
    b.kind = EVENT_CALC;
    assert_true(event_before(&a, &b));
    b.time = 4;
    assert_true(event_before(&b, &a));
    struct event x = {.kind = EVENT_ARRIVE, .op = 9, .number = EVENT_NUMBERS - 1};
    struct event y = {.kind = EVENT_ARRIVE, .op = 1, .number = 0};
    assert_true(event_before(&x, &y));
    assert_false(event_before(&y, &x));
    y.number = EVENT_NUMBERS - 2;
    assert_true(event_before(&y, &x));
}

/* Takes the events of a slot out; gives how many there were. */
static uint32_t take_slot(struct wheel *w, uint64_t slot)
{
    uint32_t first, last, count = 0;
    assert_int_equal(wheel_advance(w, slot, &first, &last), 0);
    for (uint32_t b = first; b != WHEEL_NONE; b = w->blocks[b].next) {
        for (uint32_t i = 0; i < w->blocks[b].fill; i++, count++) {
            const struct event *e = &w->events[(size_t)b * WHEEL_BLOCK + i];
            assert_int_equal(wheel_slot(w, e->time), slot);
        }
    }
    wheel_release(w, first, last);
    return count;
}

static void place(struct wheel *w, uint64_t time)
{
    struct event *e = wheel_place(w, wheel_slot(w, time));
    assert_non_null(e);
    *e = (struct event){.time = time};
}

static void turn_wheel(uint64_t width)
{
    enum { EVENTS = 30000 };
    static struct wheel w;
    uint32_t placed = 0, taken = 0;
    uint64_t slot = 0, last = 0, time = 0;
    assert_int_equal(wheel_init(&w, EVENTS, width), 0);
    while (placed < 500) {
        place(&w, time = later_than(time));
        placed++;
    }
    while (wheel_next(&w, &slot)) {
        assert_true(taken == 0 || slot > last);
        last = slot;
        taken += take_slot(&w, slot);
        /* The least time that is surely a slot later. */
        uint64_t now = (uint64_t)(((unsigned __int128)(slot + 1) << 63) / w.scale) + width;
        for (int i = 0; i < 2 && placed < EVENTS && now < (uint64_t)INT64_MAX; i++, placed++) {
            place(&w, later_than(now));
        }
    }
    assert_int_equal(taken, placed);
    wheel_free(&w);
}

static void wheel_gives_slots_in_order(void **state)
{
    (void)state;
    turn_wheel(1);
    turn_wheel(2);
    turn_wheel(1000);
    turn_wheel(4000001);
    turn_wheel(UINT64_C(1) << 40);
}

static void slots_are_no_wider_than_said(void **state)
{
    (void)state;
    static struct wheel w;
    for (uint64_t width = 1; width < UINT64_C(1) << 62; width = 3 * width + draw() % 2) {
        assert_int_equal(wheel_init(&w, 1, width), 0);
        for (int i = 0; i < 100; i++) {
            uint64_t time = draw() >> (2 + draw() % 60);
            assert_true(wheel_slot(&w, time + width) > wheel_slot(&w, time));
        }
        wheel_free(&w);
    }
    assert_int_equal(wheel_init(&w, 1, 0), 0);
    assert_int_equal(wheel_slot(&w, INT64_MAX), 0);
    wheel_free(&w);
}

/* Collects some events, pushes others while it pops. Numbers are close, as event.h wants. */
static void use_agenda(struct agenda *a, uint32_t collected, uint32_t to_push)
{
    struct event before = {0}, e;
    uint32_t pushed = 0, popped = 0;
    uint64_t time = 1 << 20;
    for (uint32_t i = 0; i < collected; i++) {
        e = random_event(draw() % 3 ? time-- : draw() % (1 << 20));
        e.number = draw() % 1024;
        assert_int_equal(agenda_collect(a, &e), 0);
    }
    assert_int_equal(agenda_sort(a), 0);
    while (agenda_pop(a, &e)) {
        assert_true(popped == 0 || !event_before(&e, &before));
        before = e;
        popped++;
        for (; pushed < 2 * popped && pushed < to_push; pushed++) {
            struct event new = random_event(later_than(e.time));
            new.number = draw() % 1024;
            if (event_before(&new, &e)) {
                new = e;
            }
            assert_int_equal(agenda_push(a, &new), 0);
        }
    }
    assert_int_equal(popped, collected + pushed);
}

/* Small ones, those that become large, and larger than was likely. */
static void agenda_gives_the_least(void **state)
{
    (void)state;
    for (size_t room = 0; room <= 40000; room += 10000) {
        struct agenda a = {.room = room};
        for (uint32_t collected = 0; collected < 300; collected = collected * 5 / 4 + 1) {
            use_agenda(&a, collected, 1000);
        }
        use_agenda(&a, 3 * AGENDA_SMALL, 30000);
        use_agenda(&a, 10 * AGENDA_SMALL, 5);
        use_agenda(&a, 20, 1000);
        agenda_free(&a);
    }
}

static void claims_give_the_least(void **state)
{
    (void)state;
    enum { CLAIMS = 5000 };
    static struct event events[CLAIMS];
    struct claims q = {.nic = CLAIMS_NO_NIC};
    uint64_t time = 1;
    for (uint32_t i = 0; i < CLAIMS; i++) {
        time = draw() % 4 ? time + draw() % 2 : time;
        events[i] = random_event(draw() % 50 ? time : 1);
        events[i].kind = EVENT_SEND;
        assert_int_equal(claims_add(&q, events, i + 1), 0);
    }
    uint32_t before = 0;
    for (uint32_t i = 0; i < CLAIMS; i++) {
        uint32_t first = claims_first(&q, events);
        assert_true(first != 0);
        assert_true(before == 0 || !event_before(&events[first - 1], &events[before - 1]));
        before = first;
        claims_drop(&q, events);
    }
    assert_int_equal(claims_first(&q, events), 0);
    free(q.early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_gives_the_least),
        cmocka_unit_test(keys_compare),
        cmocka_unit_test(wheel_gives_slots_in_order),
        cmocka_unit_test(slots_are_no_wider_than_said),
        cmocka_unit_test(agenda_gives_the_least),
        cmocka_unit_test(claims_give_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
