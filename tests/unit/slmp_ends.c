/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that ends while a session with it is being made, at each step of the first exchange: the
 * initiator hears of it as it does in a session, by what its host says (slmp_lost) or by what the
 * peer has said before, and not by silence.
 */
#include "slmp_net.h"

#include "fabric/slmp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL

static const struct net_faults clean = {.delay = MS};

/* Packets of one kind are kept, and do not arrive by themselves. */
static struct {
    unsigned kind;
    size_t length;
    uint8_t bytes[SLMP_HEADER_ROOM];
} kept;

static bool keep(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    unsigned kind = length > SLMP_HEADER ? bytes[10] : SLMP_KIND_PLAIN;
    if (kind != kept.kind) {
        return false;
    }
    kept.length = length;
    memcpy(kept.bytes, bytes, length);
    return true;
}

static struct net *begin(unsigned kind, struct net_node **a, struct net_node **b)
{
    struct slmp_config c = slmp_defaults();
    struct net *n = net_open(1, &clean);
    *a = net_add(n, &c);
    *b = net_add(n, &c);
    memset(&kept, 0, sizeof(kept));
    kept.kind = kind;
    net_watch(n, keep, NULL);
    assert_int_equal(net_send(*a, *b, 0, 100, SLMP_RELIABLE, 0), 0);
    net_run(n, net_now(n) + 20 * MS);
    assert_true(kept.length > 0);
    return n;
}

static struct slmp_peer *peer_of(struct net_node *node, unsigned index)
{
    struct slmp_address a = net_address(index);
    return slmp_known(node->engine, &a);
}

/* It has said WELCOME, and its host says that it is no more. */
static void lost_after_welcome(void **state)
{
    struct net_node *a, *b;
    struct net *n = begin(SLMP_KIND_OPEN, &a, &b);
    slmp_lost(a->engine, net_now(n), peer_of(a, 1));
    assert_int_equal(a->undeliverable, 1);
    assert_int_equal(a->opened + a->closed, 0);
    kept.kind = 0xff;
    assert_int_equal(net_send(a, b, 0, 100, SLMP_RELIABLE, 0), 0); /* another is there, perhaps */
    assert_true(net_settle(n, b, 1, SECOND));
    net_close(n);
}

/* Nobody has answered: that nobody is there is nothing new, and somebody may come. */
static void nobody_was_there(void **state)
{
    struct net_node *a, *b;
    struct net *n = begin(SLMP_KIND_PLAIN, &a, &b);
    slmp_lost(a->engine, net_now(n), peer_of(a, 1));
    assert_int_equal(a->undeliverable, 0);
    kept.kind = 0xff;
    assert_true(net_settle(n, b, 1, SECOND));
    net_close(n);
}

/* It has left, and the packet that says so overtakes the one with which the session begins. */
static void left_before_it_was_there(void **state)
{
    struct net_node *a, *b;
    struct net *n = begin(SLMP_KIND_OPENED, &a, &b);
    assert_int_equal(b->opened, 1);
    slmp_leave(b->engine, peer_of(b, 0));
    net_run(n, net_now(n) + 5 * MS);
    assert_int_equal(a->undeliverable, 0);
    kept.kind = 0xff;
    net_inject(n, 1, 0, kept.bytes, kept.length);
    net_run(n, net_now(n) + MS);
    assert_int_equal(a->opened + a->closed, 0);
    assert_int_equal(a->undeliverable, 1);
    net_close(n);
}

/* A RESET with another token, which anybody can send, ends no greeting. */
static void a_forged_end_is_none(void **state)
{
    struct net_node *a, *b;
    struct net *n = begin(SLMP_KIND_OPENED, &a, &b);
    for (uint32_t token = 0; token < 100; token++) {
        uint8_t bytes[SLMP_HEADER_ROOM];
        struct slmp_wire reset = {.flags = SLMP_VER | SLMP_ACK,
                                  .kind = SLMP_KIND_RESET,
                                  .token = token,
                                  .incarnation = b->incarnation};
        size_t length = slmp_wire_write(&reset, bytes);
        net_inject(n, 1, 0, bytes, length);
        net_run(n, net_now(n) + MS);
    }
    kept.kind = 0xff;
    net_inject(n, 1, 0, kept.bytes, kept.length);
    assert_true(net_settle(n, b, 1, SECOND));
    assert_int_equal(a->undeliverable, 0);
    net_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_after_welcome),
        cmocka_unit_test(nobody_was_there),
        cmocka_unit_test(left_before_it_was_there),
        cmocka_unit_test(a_forged_end_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
