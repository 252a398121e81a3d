/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP on paths that take shorter packets than the peers have agreed on: from the beginning
 * or from one moment on, with a word of the system or without.
 */
#include "slmp_net.h"

#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static struct slmp_key key = {.length = SLMP_KEY_MIN};

/* A place on the path that drops what is longer. */
struct narrow {
    size_t longest, seen;
    unsigned dropped, pieces;
};

static bool pass(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    struct narrow *n = context;
    n->seen = length > n->seen ? length : n->seen;
    n->dropped += length > n->longest;
    n->pieces += length > 13 && bytes[10] == SLMP_KIND_DATA && (bytes[13] & SLMP_PIECE) != 0;
    return length > n->longest;
}

static struct slmp_config config(bool with_key)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_OWN;
    c.packet_size = 8972;
    c.key = with_key ? &key : NULL;
    return c;
}

static void send_some(struct net_node *a, struct net_node *b, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(net_send(a, b, i % 2, 16 + 17 * i + i % 5 * 20000, SLMP_RELIABLE, 0), 0);
    }
}

/* From some moment on only `longest` bytes pass. */
static void becomes_narrow(uint64_t seed, const struct net_faults *f, const struct slmp_config *c,
                           size_t longest, bool told)
{
    enum { BEFORE = 20, AFTER = 150 };
    struct net *n = net_open(seed, f);
    struct net_node *a = net_add(n, c), *b = net_add(n, c);
    struct narrow narrow = {.longest = SIZE_MAX};
    struct slmp_address to = net_address(1);
    net_watch(n, pass, &narrow);
    send_some(a, b, BEFORE);
    send_some(b, a, BEFORE);
    net_run(n, net_now(n) + 5 * MS); /* some are under way */
    send_some(a, b, AFTER);
    net_run(n, net_now(n) + 300 * US);
    assert_true(narrow.seen > 8000);
    narrow.longest = longest;
    if (told) {
        slmp_path(a->engine, net_now(n), &to, (uint32_t)longest);
    }
    assert_true(net_settle(n, b, BEFORE + AFTER, 100 * SECOND));
    assert_true(net_settle(n, a, BEFORE, 100 * SECOND));
    net_run(n, net_now(n) + 5 * SECOND);
    assert_int_equal(b->received, BEFORE + AFTER);
    assert_int_equal(a->sent, BEFORE + AFTER);
    assert_int_equal(a->undeliverable + b->torn + b->undeliverable, 0);
    assert_int_equal(slmp_held(a->engine) + slmp_held(b->engine), 0);
    assert_true(narrow.pieces > 0 || (told && f->loss == 0));
    assert_true(told || slmp_counters(a->engine)->shortened > 0);
    struct slmp_peer_info info = slmp_peer_info(a->engine, &to);
    assert_true(info.segment + SLMP_OVERHEAD <= longest && info.segment > longest / 4);
    net_close(n);
}

static void paths_become_narrow(void **state)
{
    struct net_faults clean = {.delay = 100 * US};
    struct net_faults bad = {
        .loss = 300, .twice = 200, .late = 300, .later = MS, .spoil = 100, .delay = 100 * US};
    static const size_t lengths[] = {3000, 1472, 1000, 600};
    for (unsigned i = 0; i < 16; i++) {
        struct slmp_config c = config(i % 2 == 1);
        becomes_narrow(i + 1, i < 8 ? &clean : &bad, &c, lengths[i % 4], i % 8 >= 4);
    }
}

/* It was narrow all the time: what the interface says is not what the path takes. */
static void a_path_is_narrow(void **state)
{
    struct net_faults f = {.delay = 100 * US};
    struct slmp_config c = config(false);
    struct net *n = net_open(1, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    struct narrow narrow = {.longest = 1472};
    struct slmp_address to = net_address(1);
    net_watch(n, pass, &narrow);
    send_some(a, b, 50);
    assert_true(net_settle(n, b, 50, 10 * SECOND));
    assert_int_equal(slmp_counters(a->engine)->shortened, 1);
    /* A minute later longer ones are tried, and now they pass. */
    narrow.longest = SIZE_MAX;
    narrow.seen = 0;
    net_run(n, net_now(n) + 61 * SECOND);
    send_some(a, b, 50);
    assert_true(net_settle(n, b, 100, 10 * SECOND));
    send_some(a, b, 50);
    assert_true(net_settle(n, b, 150, 10 * SECOND));
    assert_true(narrow.seen > 8000);
    assert_true(slmp_peer_info(a->engine, &to).segment > 8000);
    net_close(n);
}

/* So narrow that nothing of use passes: that is no path. */
static void nothing_passes(void **state)
{
    struct net_faults f = {.delay = 100 * US};
    struct slmp_config c = config(false);
    struct net *n = net_open(1, &f);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    struct narrow narrow = {.longest = 100};
    net_watch(n, pass, &narrow);
    send_some(a, b, 3);
    net_run(n, net_now(n) + 100 * SECOND);
    assert_int_equal(a->sent + a->undeliverable, 3);
    assert_true(a->undeliverable >= 1);
    net_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_become_narrow),
        cmocka_unit_test(a_path_is_narrow),
        cmocka_unit_test(nothing_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
