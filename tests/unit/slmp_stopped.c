/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP where clocks jump and processes are stopped: time for which nobody listened is no silence
 * of the peer's, neither in a session nor on the way to one.
 */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000LL

static const struct net_faults clean = {.delay = 100 * US};

static void send_one(struct net_node *a, struct net_node *b, size_t length)
{
    assert_int_equal(net_send(a, b, 0, length, SLMP_RELIABLE, 0), 0);
}

static void a_clock_that_jumps_is_no_silence(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(3, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    send_one(a, b, 100);
    struct slmp_packet p;
    while (slmp_output(a->engine, net_now(n), &p)) { /* lost */
    }
    net_run(n, net_now(n)); /* nothing */
    slmp_advance(a->engine, net_now(n) + 3600 * SECOND);
    slmp_advance(a->engine, net_now(n)); /* and back */
    assert_int_equal(a->undeliverable, 0);
    net_run(n, net_now(n) + 3601 * SECOND);
    assert_int_equal(a->sent, 2);
    assert_int_equal(b->received, 2);
    net_close(n);
}

/* A process runs for a moment now and then: what it sends is lost. */
static void stop_again_and_again(struct net_node *a, int64_t from, int64_t silence)
{
    for (int64_t i = 0; i < 6; i++) {
        struct slmp_packet p;
        int64_t now = from + i * 2 * silence;
        slmp_advance(a->engine, now);
        while (slmp_output(a->engine, now, &p)) {
        }
    }
}

/* A process that is stopped again and again has not waited for its peer meanwhile. */
static void who_was_stopped_has_not_waited(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(3, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    send_one(a, b, 5000);
    stop_again_and_again(a, net_now(n), c.silence);
    assert_int_equal(a->undeliverable, 0);
    net_run(n, net_now(n) + 13 * 2 * c.silence);
    assert_int_equal(a->undeliverable, 0);
    assert_int_equal(b->received, 2);
    net_close(n);
}

/* Nor has one that was stopped before the two had met. */
static void who_was_stopped_has_not_asked_long(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(4, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    send_one(a, b, 5000);
    stop_again_and_again(a, net_now(n), c.silence);
    assert_int_equal(a->undeliverable, 0);
    net_run(n, net_now(n) + 13 * 2 * c.silence);
    assert_int_equal(a->undeliverable, 0);
    assert_int_equal(b->received, 1);
    net_close(n);
}

static bool all_lost(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    return *(bool *)context;
}

static void who_never_answers_is_given_up_all_the_same(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(5, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    bool lost = true;
    net_watch(n, all_lost, &lost);
    send_one(a, b, 5000);
    stop_again_and_again(a, net_now(n), c.silence);
    assert_int_equal(a->undeliverable, 0);
    net_run(n, net_now(n) + 13 * 2 * c.silence);
    assert_int_equal(a->undeliverable, 1);
    lost = false;
    send_one(a, b, 100);
    assert_true(net_settle(n, b, 1, SECOND));
    net_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_jumps_is_no_silence),
        cmocka_unit_test(who_was_stopped_has_not_waited),
        cmocka_unit_test(who_was_stopped_has_not_asked_long),
        cmocka_unit_test(who_never_answers_is_given_up_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
