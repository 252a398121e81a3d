/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP fabric on a network that loses, doubles, delays and spoils packets (udp_net.h), in
 * virtual time: each message ends once, whole, and in its turn; what cannot be read or written
 * is told to the end that asks; a peer that is gone is told of, and its successor is another.
 */
#include "fabric_fixture.h"
#include "udp_net.h"

static const struct net_faults quiet = {.latency = 20000};
static const struct net_faults rough = {
    .lost = 50, .doubled = 50, .spoilt = 10, .latency = 20000, .jitter = 300000};

static void pass(void)
{
    net_pass(5000);
}

static void begin(uint64_t seed, const struct net_faults *faults)
{
    net_begin(seed, faults);
    between_polls = pass;
    setenv("PINWHEEL_UDP_CHECKSUM", "all", 1);
    idle_most = 4000000; /* 20 s */
    open_both("udp");
}

static void calm(void **state)
{
    begin(1, &quiet);
    stream(500, 100000);
    close_both();
}

static void rough_weather(void **state)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        begin(seed, &rough);
        stream(500, 40000);
        struct net_counts c = net_counts();
        assert_true(c.lost > 50 && c.doubled > 50 && c.spoilt > 5);
        close_both();
    }
}

static void small_packets(void **state)
{
    setenv("PINWHEEL_UDP_PACKET", "200", 1);
    begin(9, &rough);
    stream(200, 20000);
    close_both();
    unsetenv("PINWHEEL_UDP_PACKET");
}

static void one_in_ten_is_lost(void **state)
{
    static const struct net_faults storm = {.lost = 100, .latency = 20000, .jitter = 50000};
    begin(7, &storm);
    stream(300, 40000);
    close_both();
}

/* Runs for so long, or until nothing is left of the plan. */
static void wait_sent(const struct plan *plan, int64_t ns)
{
    for (int64_t end = net_now() + ns; !plan->is_sent && net_now() < end;) {
        poll_both();
    }
}

/* A network that carries nothing any more: the sender is told after the silence that was
 * configured, and not before. */
static void silence_is_death(void **state)
{
    static const struct net_faults nothing = {.lost = 1000};
    struct plan plan;
    setenv("PINWHEEL_UDP_SILENCE_MS", "300", 1);
    begin(3, &quiet);
    make_plan(&plan, 100000, WHOLE, WHOLE);
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    net_set(&nothing);
    wait_sent(&plan, 300000000);
    assert_false(plan.is_sent);
    wait_sent(&plan, 2000000000);
    assert_true(plan.is_sent);
    assert_int_equal(plan.sent, FABRIC_UNDELIVERABLE);
    for (int i = 0; i < 100; i++) {
        poll_both();
    }
    assert_null(ends[OUT].peer);
    free_plan(&plan);
    close_both();
    unsetenv("PINWHEEL_UDP_SILENCE_MS");
}

/* A process that comes back under its old address is another peer: what was under way to the
 * first one is undeliverable, and nothing of it reaches the second. */
static void a_successor_is_another(void **state)
{
    struct reason why = {""};
    struct plan plan;
    begin(5, &quiet);
    make_plan(&plan, 4 << 20, WHOLE, WHOLE);
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    for (int i = 0; i < 20; i++) {
        poll_both();
    }
    assert_false(plan.is_sent);
    struct fabric_setup setup = {.nic = (struct nic *)&ends[IN],
                                 .up = &upcalls,
                                 .options = &options,
                                 .nid = 0x7f000001,
                                 .pid = ends[IN].pid,
                                 .incarnation = 99,
                                 .packet_size = PACKET,
                                 .alone = true};
    fabric->close(ends[IN].fabric);
    assert_true(plan.is_done);
    assert_int_equal(plan.done, FABRIC_UNDELIVERABLE);
    assert_int_equal(fabric->open(&setup, &ends[IN].fabric, &ends[IN].pid, &why), 0);
    wait_sent(&plan, 20000000000);
    assert_int_equal(plan.sent, FABRIC_UNDELIVERABLE);
    memset(arrived, 0, sizeof(arrived));
    free_plan(&plan);
    enum fabric_connect found = FABRIC_LATER;
    for (int i = 0; i < 1000000 && found != FABRIC_UP; i++) {
        poll_both();
        found = fabric->connect(ends[OUT].fabric, 0x7f000001, ends[IN].pid, &why);
    }
    assert_int_equal(found, FABRIC_UP);
    carry_sound_ones();
    close_both();
}

/* What was acknowledged when its sender leaves, is delivered. */
static void what_left_in_time_arrives(void **state)
{
    struct plan many[PIPELINE];
    begin(11, &quiet);
    arrived[FABRIC_REQUEST] = 0;
    for (unsigned i = 0; i < PIPELINE; i++) {
        make_plan(plans[i] = &many[i], 100 + 100 * i, WHOLE, WHOLE);
        many[i].tx.at_once = true;
        assert_true(send_plan(FABRIC_REQUEST, i, i));
    }
    while (fabric->unsent(ends[OUT].peer)) {
        poll_both();
    }
    fabric->close(ends[OUT].fabric);
    for (int i = 0; i < 10000; i++) {
        net_pass(5000);
        fabric->poll(ends[IN].fabric);
    }
    for (unsigned i = 0; i < PIPELINE; i++) {
        assert_true(many[i].is_done);
        check_plan(&many[i]);
        free_plan(&many[i]);
    }
    assert_null(ends[IN].peer);
    fabric->close(ends[IN].fabric);
    fault_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calm),
        cmocka_unit_test(rough_weather),
        cmocka_unit_test(small_packets),
        cmocka_unit_test(one_in_ten_is_lost),
        cmocka_unit_test(silence_is_death),
        cmocka_unit_test(a_successor_is_another),
        cmocka_unit_test(what_left_in_time_arrives),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
