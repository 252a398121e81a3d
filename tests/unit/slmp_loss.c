/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast SLMP is on lines that lose packets for no reason, and where its own packets are the
 * reason: in virtual time, on a cable of 1472 bytes in 1.2 us.
 */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

enum { MESSAGES = 12, LENGTH = 1 << 20, PACKET_TIME = 1200, QUEUE = 1000 };

/* What a run of MESSAGES was like. */
struct run {
    double rate; /* bytes in a nanosecond */
    double again;
    uint32_t window;
};

static struct run send_all(uint64_t seed, const struct net_faults *f)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.ordered = true;
    struct net *n = net_open(seed, f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    struct slmp_address at = net_address(b->index);
    int64_t begun = net_now(n);
    for (unsigned i = 0; i < MESSAGES; i++) {
        assert_int_equal(net_send(a, b, 0, LENGTH, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, MESSAGES, 600 * SECOND));
    struct run r = {.rate = (double)b->bytes / (double)(net_now(n) - begun),
                    .window = slmp_peer_info(a->engine, &at).window,
                    .again = (double)slmp_counters(a->engine)->retransmitted /
                             (double)slmp_counters(a->engine)->packets_out};
    net_close(n);
    return r;
}

/* The mean of some seeds. */
static double rate_at(unsigned loss, int64_t delay)
{
    enum { SEEDS = 2 };
    struct net_faults f = {.loss = loss, .delay = delay, .per_packet = PACKET_TIME, .queue = QUEUE};
    double all = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        all += send_all(seed, &f).rate;
    }
    return all / SEEDS;
}

static void lossy_lines_stay_fast(void **state)
{
    static const struct {
        unsigned loss;      /* of 10,000 */
        double near, least; /* of the rate without loss, at the first delay and the others */
    } wanted[] = {{100, 0.95, 0.5}, {300, 0.95, 0.4}, {500, 0.95, 0.35}, {1000, 0.92, 0.25}};
    static const int64_t delay[] = {5 * US, 100 * US, 2 * MS};
    for (unsigned d = 0; d < sizeof(delay) / sizeof(*delay); d++) {
        double best = rate_at(0, delay[d]);
        for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
            double rate = rate_at(wanted[i].loss, delay[d]);
            if (rate < best * (d == 0 ? wanted[i].near : wanted[i].least)) {
                fail_msg("%lld us one way, %u of 10,000 lost: %.3f bytes a ns, without loss %.3f",
                         (long long)(delay[d] / US), wanted[i].loss, rate, best);
            }
        }
    }
}

/* A queue that is shorter than what the line holds overflows: that is not the line's loss,
 * and the cable is used all the same. With loss of the line's own it is not mistaken either. */
static void short_queues_are_not_flooded(void **state)
{
    static const struct {
        unsigned loss;
        double least, again;
    } wanted[] = {{0, 0.8, 0.05}, {500, 0.45, 0.13}};
    double full = (1472.0 - SLMP_OVERHEAD) / (10 * US);
    for (unsigned i = 0; i < 2; i++) {
        struct net_faults f = {
            .loss = wanted[i].loss, .delay = 500 * US, .per_packet = 10 * US, .queue = 18};
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct run r = send_all(seed, &f);
            if (r.rate < full * wanted[i].least || r.again > wanted[i].again) {
                fail_msg("%u of 10,000 lost, seed %d: %.2f of the cable, %.3f sent again",
                         wanted[i].loss, (int)seed, r.rate / full, r.again);
            }
        }
    }
}

/* A peer that is given a processor now and then only is not a queue. */
static void slow_peers_keep_a_window(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct net_faults f = {.delay = 20 * US};
    struct net *n = net_open(5, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    struct slmp_address at = net_address(b->index);
    assert_int_equal(net_send(a, b, 0, LENGTH, SLMP_RELIABLE, 0), 0);
    assert_true(net_settle(n, b, 1, SECOND));
    f.delay = 50 * MS;
    net_faults(n, &f);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(net_send(a, b, 0, LENGTH, SLMP_RELIABLE, 0), 0);
    }
    for (unsigned i = 1; i < 40; i++) {
        net_run(n, net_now(n) + 100 * MS);
        assert_true(slmp_peer_info(a->engine, &at).window >= 16);
    }
    assert_true(net_settle(n, b, 11, 100 * SECOND));
    assert_int_equal(a->undeliverable, 0);
    net_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossy_lines_stay_fast),
        cmocka_unit_test(short_queues_are_not_flooded),
        cmocka_unit_test(slow_peers_keep_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
