/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A million messages between each of two pairs, on a network that loses 5 % of all packets,
 * repeats some and lets some be late: each arrives once, in the order of its pair, with a
 * job key and without.
 */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000LL

static void a_million(const struct slmp_key *key, uint64_t seed)
{
    enum { ALL = 1000000, STEP = 5000 };
    struct slmp_config c = slmp_defaults();
    struct net_faults f = {.loss = 500, .twice = 300, .late = 1000, .later = MS, .delay = 30000};
    c.mode = SLMP_OWN;
    c.key = key;
    struct net *n = net_open(seed, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c), *d = net_add(n, &c);
    for (unsigned i = 0; i < ALL; i += STEP) {
        for (unsigned k = 0; k < STEP; k++) {
            assert_int_equal(net_send(a, b, 0, 16 + k % 40, SLMP_RELIABLE, 0), 0);
            assert_int_equal(net_send(d, b, 0, 16 + k % 30, SLMP_RELIABLE, 0), 0);
        }
        assert_true(net_settle(n, b, 2 * (i + STEP), 600 * SECOND));
    }
    net_run(n, net_now(n) + 5 * SECOND);
    assert_int_equal(b->received, 2 * ALL);
    assert_int_equal(a->sent, ALL);
    assert_int_equal(d->sent, ALL);
    assert_true(slmp_counters(a->engine)->retransmitted > 0);
    assert_true(slmp_counters(b->engine)->duplicates + slmp_counters(b->engine)->replayed > 0);
    assert_int_equal(slmp_counters(b->engine)->malformed, 0);
    net_close(n);
}

static void without_a_key(void **state)
{
    a_million(NULL, 1);
}

static void with_a_key(void **state)
{
    static const struct slmp_key key = {.length = SLMP_KEY_MIN};
    a_million(&key, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_key),
        cmocka_unit_test(with_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
