/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of SLMP on bad networks: every message arrives exactly once, whole, in the
 * order of its channel, whatever is lost, repeated, late or spoiled.
 */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL

enum { MESSAGES = 600 };

static struct slmp_config config(void)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.window = 64;
    return c;
}

/* Two nodes, two channels, both ways; small and large messages in turn: some 20 MB. */
static void exchange(uint64_t seed, const struct net_faults *faults, const struct slmp_config *c,
                     unsigned later)
{
    struct net *n = net_open(seed, faults);
    struct net_node *a = net_add(n, c), *b = net_add(n, c);
    a->later_begin = b->later_data = later;
    a->later_data = b->later_begin = later;
    net_talk(a, b, MESSAGES);
    assert_int_equal(a->received, MESSAGES);
    assert_int_equal(b->received, MESSAGES);
    assert_int_equal(a->sent, MESSAGES);
    assert_int_equal(b->sent, MESSAGES);
    assert_int_equal(a->torn + b->torn + a->undeliverable + b->undeliverable, 0);
    assert_int_equal(slmp_counters(a->engine)->bytes_out, slmp_counters(b->engine)->bytes_in);
    if (faults->spoil == 0) {
        assert_int_equal(slmp_counters(a->engine)->malformed, 0);
        assert_int_equal(slmp_counters(b->engine)->malformed, 0);
    }
    assert_int_equal(slmp_deadline(a->engine), SLMP_NEVER); /* nothing is left to do */
    assert_int_equal(slmp_deadline(b->engine), SLMP_NEVER);
    net_close(n);
}

static void with_loss(unsigned loss)
{
    struct slmp_config c = config();
    struct net_faults f = {.loss = loss, .delay = 100000};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        exchange(seed, &f, &c, 0);
    }
}

static void nothing_is_lost(void **state)
{
    with_loss(0);
}

static void one_in_a_hundred_is_lost(void **state)
{
    with_loss(100);
}

static void one_in_ten_is_lost(void **state)
{
    with_loss(1000);
}

static void three_in_ten_are_lost(void **state)
{
    with_loss(3000);
}

static void packets_come_twice(void **state)
{
    struct slmp_config c = config();
    struct net_faults f = {.twice = 3000, .late = 1000, .later = 50 * MS, .delay = 50000};
    exchange(11, &f, &c, 0);
}

static void packets_overtake(void **state)
{
    struct slmp_config c = config();
    struct net_faults f = {.late = 5000, .later = 2 * MS, .delay = 20000};
    exchange(12, &f, &c, 0);
    c.ordered = true;
    exchange(13, &f, &c, 0);
}

static void packets_are_spoiled(void **state)
{
    struct slmp_config c = config();
    struct net_faults f = {.spoil = 500, .delay = 100000};
    exchange(14, &f, &c, 0);
}

static void everything_at_once(void **state)
{
    struct slmp_config c = config();
    struct net_faults f = {
        .loss = 500, .twice = 500, .late = 1000, .later = 3 * MS, .spoil = 300, .delay = 200000};
    for (uint64_t seed = 21; seed <= 23; seed++) {
        c.ordered = seed % 2 == 0;
        c.packet_size = seed == 21 ? SLMP_PACKET_MIN : 4000;
        c.window = 16u << (seed - 21);
        c.plain_window = 16;
        exchange(seed, &f, &c, 0);
    }
}

static void applications_say_later(void **state)
{
    struct slmp_config c = config();
    struct net_faults f = {.loss = 200, .late = 500, .later = MS, .delay = 50000};
    exchange(31, &f, &c, 30);
    c.ordered = true;
    exchange(32, &f, &c, 30);
    /* Less than a window of packets, of which a source has half: others must come again, and the
     * first one that is missing before all others. */
    for (c.held_max = 40000; c.held_max >= 10000; c.held_max /= 2) {
        exchange(33, &f, &c, 10);
    }
}

static void many_small_messages(void **state)
{
    enum { MANY = 60000 };
    struct slmp_config c = slmp_defaults();
    struct net_faults f = {.loss = 500, .twice = 300, .late = 500, .later = MS, .delay = 30000};
    struct net *n = net_open(41, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(net_send(a, b, 0, 16 + i % 50, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, MANY, 600 * SECOND));
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(b->received, MANY);
    assert_int_equal(a->sent, MANY);
    net_close(n);
}

/* Each of eight sends to each other. */
static void all_to_all(void **state)
{
    enum { EACH = 20 };
    struct slmp_config c = config();
    struct net_faults f = {.loss = 200, .late = 300, .later = MS, .delay = 50000};
    struct net *n = net_open(51, &f);
    struct net_node *node[NET_NODES];
    for (unsigned i = 0; i < NET_NODES; i++) {
        node[i] = net_add(n, &c);
    }
    for (unsigned i = 0; i < EACH * NET_NODES * NET_NODES; i++) {
        unsigned from = i / NET_NODES % NET_NODES, to = i % NET_NODES;
        if (from != to) {
            assert_int_equal(
                net_send(node[from], node[to], 0, 16 + net_random(n) % 9000, SLMP_RELIABLE, 0), 0);
        }
    }
    for (unsigned i = 0; i < NET_NODES; i++) {
        assert_true(net_settle(n, node[i], EACH * (NET_NODES - 1), 100 * SECOND));
        assert_int_equal(node[i]->opened, NET_NODES - 1);
    }
    net_run(n, net_now(n) + SECOND);
    for (unsigned i = 0; i < NET_NODES; i++) {
        assert_int_equal(node[i]->sent, EACH * (NET_NODES - 1));
        assert_int_equal(node[i]->received, EACH * (NET_NODES - 1));
    }
    net_close(n);
}

/* A channel that is not served keeps no more than its window, and does not stop the other. */
static void a_slow_channel_slows_only_itself(void **state)
{
    enum { EACH = 500 };
    struct slmp_config c = config();
    struct net_faults f = {.loss = 100, .delay = 50000};
    struct net *n = net_open(61, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    b->stuck[0] = true;
    for (unsigned i = 0; i < EACH; i++) {
        assert_int_equal(net_send(a, b, 0, 1000, SLMP_RELIABLE, 0), 0);
        assert_int_equal(net_send(a, b, 1, 1000, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, EACH, 60 * SECOND));
    net_run(n, net_now(n) + 60 * SECOND); /* longer than the silence that means death */
    assert_int_equal(b->received, EACH);
    assert_int_equal(a->undeliverable, 0);
    assert_true(a->sent <= EACH + c.window); /* what is held was acknowledged */
    b->stuck[0] = false;
    struct slmp_address address = net_address(a->index);
    slmp_resume(b->engine, net_now(n), slmp_known(b->engine, &address), 0);
    assert_true(net_settle(n, b, 2 * EACH, 60 * SECOND));
    net_close(n);
}

static uint64_t trace_of(uint64_t seed)
{
    struct slmp_config c = config();
    struct net_faults f = {.loss = 500, .twice = 100, .late = 500, .later = MS, .delay = 50000};
    struct net *n = net_open(seed, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(net_send(a, b, 0, 16 + 300 * i, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, 50, 60 * SECOND));
    uint64_t trace = net_trace(n);
    net_close(n);
    return trace;
}

static void equal_seeds_give_equal_packets(void **state)
{
    assert_int_equal(trace_of(71), trace_of(71));
    assert_int_not_equal(trace_of(71), trace_of(72));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(one_in_a_hundred_is_lost),
        cmocka_unit_test(one_in_ten_is_lost),
        cmocka_unit_test(three_in_ten_are_lost),
        cmocka_unit_test(packets_come_twice),
        cmocka_unit_test(packets_overtake),
        cmocka_unit_test(packets_are_spoiled),
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(applications_say_later),
        cmocka_unit_test(many_small_messages),
        cmocka_unit_test(all_to_all),
        cmocka_unit_test(a_slow_channel_slows_only_itself),
        cmocka_unit_test(equal_seeds_give_equal_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
