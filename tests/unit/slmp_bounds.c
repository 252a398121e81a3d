/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What SLMP holds to: versions that are spoken on both sides, so many peers, so many bytes kept.
 */
#include "slmp_net.h"

#include "fabric/slmp/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL

static const struct net_faults clean = {.delay = 100 * US};
static const struct net_faults cut_off = {.loss = 10000, .delay = 100 * US};

static void send_one(struct net_node *a, struct net_node *b, size_t length)
{
    assert_int_equal(net_send(a, b, 0, length, SLMP_RELIABLE, 0), 0);
}

/* ---- Versions ---- */

/* Node 1 is of another time: it speaks versions from one to another. */
struct other {
    struct net *net;
    uint8_t from, to;
};

/* Its WELCOME says so; the checksum is right. */
static bool of_other_versions(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    struct other *o = context;
    uint8_t own[SLMP_HEADER_ROOM];
    if (from != 1 || length <= SLMP_HEADER || bytes[10] != SLMP_KIND_WELCOME) {
        return false;
    }
    assert_int_equal(bytes[11], SLMP_VERSION);
    assert_int_equal(bytes[12], SLMP_VERSION);
    memcpy(own, bytes, length);
    own[11] = o->from;
    own[12] = o->to;
    slmp_wire_seal(own, length, NULL, 0);
    net_inject(o->net, 1, 0, own, length);
    return true;
}

/* Sends a message to a node that speaks the versions from one to another. */
static void meet(uint8_t from, uint8_t to, enum slmp_mode mode)
{
    struct slmp_config c = slmp_defaults();
    c.mode = mode;
    struct net *n = net_open(1, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    struct other other = {n, from, to};
    bool common = from <= SLMP_VERSION && to >= SLMP_VERSION;
    struct slmp_address there = net_address(1);
    net_watch(n, of_other_versions, &other);
    send_one(a, b, 3000);
    net_run(n, net_now(n) + SECOND);
    struct slmp_peer_info info = slmp_peer_info(a->engine, &there);
    assert_true(info.session == common);
    assert_true(info.plain == (!common && mode == SLMP_AUTO));
    assert_true((slmp_counters(a->engine)->version > 0) == !common);
    assert_int_equal(b->received, common || mode == SLMP_AUTO);
    net_run(n, net_now(n) + 3 * c.silence);
    assert_int_equal(a->sent, b->received);
    assert_int_equal(a->undeliverable, 1 - b->received);
    net_close(n);
}

/* Without a version that both speak they are plain to each other, if they may be. */
static void versions_in_common(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        enum slmp_mode mode = i == 0 ? SLMP_AUTO : SLMP_OWN;
        meet(SLMP_VERSION, SLMP_VERSION, mode);
        meet(SLMP_VERSION, 255, mode);
        meet(0, SLMP_VERSION, mode);
        meet(0, 255, mode);
        meet(SLMP_VERSION + 1, 255, mode);
        meet(0, SLMP_VERSION - 1, mode);
        meet(255, 0, mode);
    }
}

/* ---- Peers ---- */

/* Who is not there, and has nothing to come, gives way to others; who has does not. */
static void idle_peers_give_way(void **state)
{
    struct slmp_config c = slmp_defaults(), few = c;
    few.peers_max = 2;
    struct net *n = net_open(2, &cut_off);
    struct net_node *a = net_add(n, &few), *other[4];
    for (unsigned i = 0; i < 4; i++) {
        other[i] = net_add(n, &c);
    }
    for (unsigned round = 0; round < 3; round++) {
        const struct net_node *third = other[2 + round % 2];
        send_one(a, other[0], 100);
        send_one(a, other[1], 100);
        struct slmp_address to = net_address(third->index);
        assert_int_equal(net_send(a, third, 0, 100, SLMP_RELIABLE, 0), -ENOBUFS);
        assert_int_equal(slmp_contact(a->engine, net_now(n), &to), -ENOBUFS);
        net_run(n, net_now(n) + 3 * c.silence);
        assert_int_equal(a->undeliverable, 2 * (round + 1));
        assert_int_equal(slmp_contact(a->engine, net_now(n), &to), 0);
        net_run(n, net_now(n) + 3 * c.silence);
    }
    net_faults(n, &clean);
    send_one(a, other[3], 100);
    assert_true(net_settle(n, other[3], 1, SECOND));
    net_close(n);
}

/* An application that sends when it is told of the end of a message. */
struct sender {
    struct slmp *engine;
    struct slmp_message message[2];
    int64_t now;
    unsigned ended;
    int answer;
};

static void send_next(void *context, struct slmp_message *m, enum slmp_status status)
{
    struct sender *s = context;
    if (s->ended++ == 0) {
        s->answer = slmp_send(s->engine, s->now, &s->message[1]);
    }
}

static void no_peer_event(void *context, struct slmp_peer *p, const struct slmp_address *a)
{
}

/* Nobody gives way while the application is told of something: it may be of that very peer. */
static void nobody_gives_way_meanwhile(void **state)
{
    static uint8_t body[100];
    struct slmp_config c = slmp_defaults();
    c.peers_max = 1;
    struct sender s = {.now = SECOND};
    struct slmp_upcalls up = {.context = &s, .sent = send_next, .closed = no_peer_event};
    assert_non_null(s.engine = slmp_open(&c, &up, &(struct reason){""}));
    for (unsigned i = 0; i < 2; i++) {
        s.message[i] =
            (struct slmp_message){.to = net_address(i), .body = body, .body_length = sizeof(body)};
    }
    assert_int_equal(slmp_send(s.engine, s.now, &s.message[0]), 0);
    for (int64_t end = s.now + 3 * c.silence; s.now < end; s.now += SECOND / 10) {
        struct slmp_packet p;
        slmp_advance(s.engine, s.now);
        while (slmp_output(s.engine, s.now, &p)) {
        }
    }
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.answer, -ENOBUFS);
    assert_int_equal(slmp_send(s.engine, s.now, &s.message[1]), 0);
    slmp_close(s.engine);
    assert_int_equal(s.ended, 2);
}

/* ---- Bytes ---- */

/* What is kept for an application that does not want it yet stays below the bound, and what found
 * no room comes when it does. */
static void what_is_held_is_bounded(void **state)
{
    enum { EACH = 100, LENGTH = 1000 };
    struct slmp_config c = slmp_defaults();
    c.held_max = 20 * LENGTH;
    struct net *n = net_open(3, &clean);
    struct net_node *a = net_add(n, &c), *b = net_add(n, &c);
    b->stuck[0] = true;
    for (unsigned i = 0; i < EACH; i++) {
        send_one(a, b, LENGTH);
    }
    size_t most = 0;
    for (unsigned i = 0; i < 3000; i++) {
        net_run(n, net_now(n) + SECOND / 1000);
        most = slmp_held(b->engine) > most ? slmp_held(b->engine) : most;
    }
    assert_in_range(most, c.held_max / 2, c.held_max);
    assert_true(slmp_counters(b->engine)->no_room > 0);
    assert_int_equal(b->received, 0);
    b->stuck[0] = false;
    struct slmp_address address = net_address(a->index);
    slmp_resume(b->engine, net_now(n), slmp_known(b->engine, &address), 0);
    assert_true(net_settle(n, b, EACH, 60 * SECOND));
    net_run(n, net_now(n) + SECOND);
    assert_int_equal(a->sent, EACH);
    assert_int_equal(slmp_held(b->engine), 0);
    net_close(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_in_common),
        cmocka_unit_test(idle_peers_give_way),
        cmocka_unit_test(nobody_gives_way_meanwhile),
        cmocka_unit_test(what_is_held_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
