/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain SLMP, byte by byte as in the paper, and engines that speak it with each other and
 * with one that would rather have a session.
 */
#include "slmp_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define US 1000LL
#define MS 1000000LL

static struct slmp_config plain(void)
{
    struct slmp_config c = slmp_defaults();
    c.mode = SLMP_PLAIN;
    return c;
}

static void exchange(uint64_t seed, const struct net_faults *f, const struct slmp_config *one,
                     const struct slmp_config *other)
{
    enum { MESSAGES = 50 };
    struct net *n = net_open(seed, f);
    struct net_node *a = net_add(n, one), *b = net_add(n, other);
    for (unsigned i = 0; i < MESSAGES; i++) {
        size_t length = 16 + net_random(n) % 40000;
        assert_int_equal(net_send(a, b, i % 2, length, SLMP_RELIABLE, 0), 0);
        assert_int_equal(net_send(b, a, 0, length / 3 + 16, SLMP_RELIABLE, 0), 0);
    }
    assert_true(net_settle(n, b, MESSAGES, 600 * SECOND));
    assert_true(net_settle(n, a, MESSAGES, 600 * SECOND));
    net_run(n, net_now(n) + 30 * SECOND);
    assert_int_equal(a->sent, MESSAGES);
    assert_int_equal(b->sent, MESSAGES);
    assert_int_equal(a->received, MESSAGES);
    assert_int_equal(b->received, MESSAGES);
    assert_int_equal(a->opened + b->opened, 0);
    net_close(n);
}

static void plain_peers_on_a_bad_network(void **state)
{
    struct slmp_config c = plain(), either = slmp_defaults();
    static const struct net_faults faults[] = {
        {.delay = 50 * US},
        {.loss = 100, .delay = 50 * US},
        {.loss = 1000, .twice = 500, .delay = 50 * US},
        {.loss = 500, .twice = 500, .late = 1000, .later = 2 * MS, .delay = 50 * US}};
    for (unsigned i = 0; i < 4; i++) {
        exchange(100 + i, &faults[i], &c, &c);
        exchange(200 + i, &faults[i], &either, &c);
    }
    c.plain_window = 1; /* packet by packet, as the paper has it */
    exchange(300, &faults[1], &c, &c);
}

static const struct slmp_address stranger = {42, 4242};

/* What the engine sends, as bytes; -1 if nothing. */
static int next_packet(struct slmp *e, int64_t now, uint8_t to[2048])
{
    struct slmp_packet p;
    if (!slmp_output(e, now, &p)) {
        return -1;
    }
    size_t length = p.header_length;
    memcpy(to, p.header, length);
    for (unsigned i = 0; i < p.parts; i++) {
        memcpy(to + length, p.part[i].iov_base, p.part[i].iov_len);
        length += p.part[i].iov_len;
    }
    assert_int_equal(length, p.length);
    return (int)length;
}

/* What an application got, and whether it is complete. */
static struct {
    uint8_t bytes[64];
    unsigned count, done, torn, sent;
    uint64_t length;
    bool ignore;
} got;

static void up_opened(void *c, struct slmp_peer *p, const struct slmp_address *a, uint64_t i)
{
}

static void up_closed(void *c, struct slmp_peer *p, const struct slmp_address *a)
{
}

static enum slmp_step up_begin(void *c, struct slmp_incoming *in, const void *first, size_t n)
{
    return SLMP_GO;
}

static enum slmp_step up_data(void *c, struct slmp_incoming *in, uint64_t at, const void *bytes,
                              size_t length)
{
    if (got.ignore) {
        return SLMP_GO;
    }
    assert_true(at + length <= sizeof(got.bytes));
    memcpy(got.bytes + at, bytes, length);
    got.count += (unsigned)length;
    return SLMP_GO;
}

static void up_done(void *c, struct slmp_incoming *in, enum slmp_status status)
{
    got.done += status == SLMP_OK;
    got.torn += status != SLMP_OK;
    got.length = in->length;
}

static void up_sent(void *c, struct slmp_message *m, enum slmp_status status)
{
    got.sent += status == SLMP_OK;
}

static struct slmp *engine(const struct slmp_config *c)
{
    static const struct slmp_upcalls up = {.opened = up_opened,
                                           .closed = up_closed,
                                           .begin = up_begin,
                                           .data = up_data,
                                           .done = up_done,
                                           .sent = up_sent};
    memset(&got, 0, sizeof(got));
    struct slmp *e = slmp_open(c, &up, &(struct reason){""});
    assert_non_null(e);
    return e;
}

/* Gives the engine a packet of 10 + length bytes. */
static void give(struct slmp *e, int64_t now, uint16_t flags, uint32_t id, uint32_t offset,
                 const char *text)
{
    uint8_t p[64] = {(uint8_t)(flags >> 8), (uint8_t)flags};
    for (int i = 0; i < 4; i++) {
        p[2 + i] = (uint8_t)(id >> (24 - 8 * i));
        p[6 + i] = (uint8_t)(offset >> (24 - 8 * i));
    }
    memcpy(p + 10, text, strlen(text));
    slmp_input(e, now, &stranger, p, 10 + strlen(text));
}

static void assert_packet(struct slmp *e, const uint8_t *expected, int length)
{
    uint8_t p[2048];
    assert_int_equal(next_packet(e, 1, p), length);
    assert_memory_equal(p, expected, (size_t)length);
}

static void the_receiver_answers_with_the_header(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct slmp *e = engine(&c);
    uint8_t none[2048];
    give(e, 1, 0x4000, 0x01020304, 0, "abcd");
    assert_packet(e, (const uint8_t[]){0x60, 0, 1, 2, 3, 4, 0, 0, 0, 0}, 10);
    give(e, 1, 0xc000, 0x01020304, 8, "ijk"); /* the end, before the middle */
    assert_packet(e, (const uint8_t[]){0xe0, 0, 1, 2, 3, 4, 0, 0, 0, 8}, 10);
    assert_int_equal(got.done, 0);
    give(e, 1, 0xc000, 0x01020304, 8, "ijk"); /* again: answered, not delivered */
    assert_packet(e, (const uint8_t[]){0xe0, 0, 1, 2, 3, 4, 0, 0, 0, 8}, 10);
    assert_int_equal(got.count, 7);
    give(e, 1, 0, 0x01020304, 4, "efgh"); /* without SYN: no answer */
    assert_int_equal(next_packet(e, 1, none), -1);
    assert_int_equal(got.done, 1);
    assert_int_equal(got.length, 11);
    assert_memory_equal(got.bytes, "abcdefghijk", 11);
    give(e, 1, 0xc000, 0x01020304, 8, "ijk"); /* of a message that is complete */
    assert_packet(e, (const uint8_t[]){0xe0, 0, 1, 2, 3, 4, 0, 0, 0, 8}, 10);
    assert_int_equal(got.count, 11);
    assert_int_equal(slmp_counters(e)->duplicates, 2);
    slmp_close(e);
}

/* A packet of one byte, which the application does not look at. */
static void give_at(struct slmp *e, uint32_t id, uint32_t offset)
{
    got.ignore = true;
    give(e, 1, 0, id, offset, "x");
    got.ignore = false;
}

/* The empty end of a message, however often it comes, keeps none young of which nothing new does.
 */
static void an_end_again_and_again_is_silence(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct slmp *e = engine(&c);
    uint8_t answer[2048];
    give(e, 1, 0, 7, 0, "abcd");
    for (int64_t now = 1; now <= 1 + c.silence; now += c.silence / 4) {
        assert_int_equal(got.torn, 0);
        give(e, now, 0xc000, 7, 8, "");
        slmp_advance(e, now);
        while (next_packet(e, now, answer) >= 0) {
        }
    }
    assert_int_equal(got.torn, 1);
    slmp_close(e);
}

static void packets_that_do_not_fit_each_other(void **state)
{
    struct slmp_config c = slmp_defaults();
    struct slmp *e = engine(&c);
    uint8_t none[2048];
    give(e, 1, 0, 7, 4, "efgh");
    give(e, 1, 0x4000, 7, 6, "ghij");        /* half of it known */
    give(e, 1, 0xc000, 7, 0, "abc");         /* ends before what has come */
    give(e, 1, 0x4000, 7, UINT32_MAX, "xy"); /* beyond 4 GiB */
    assert_int_equal(slmp_counters(e)->malformed, 3);
    assert_int_equal(next_packet(e, 1, none), -1);
    give(e, 1, 0x8000, 7, 8, "ij");
    give(e, 1, 0x4000, 7, 10, "kl"); /* behind the end */
    assert_int_equal(slmp_counters(e)->malformed, 4);
    for (unsigned i = 0; i < 80; i++) { /* with holes between: more than are kept */
        give_at(e, 8, 2 * i + 2);
    }
    assert_int_equal(slmp_counters(e)->no_room, 80 - 64);
    give_at(e, 8, 3); /* one that closes a hole always finds room */
    assert_int_equal(slmp_counters(e)->no_room, 80 - 64);
    for (uint32_t id = 20; id < 40; id++) { /* more messages at once than are kept */
        give(e, 1, 0, id, 1, "b");
    }
    assert_true(slmp_counters(e)->no_room > 80 - 64);
    slmp_advance(e, 1 + c.silence); /* they are forgotten */
    assert_true(got.torn > 0);
    assert_int_equal(slmp_deadline(e), SLMP_NEVER);
    give(e, 2 + c.silence, 0x8000, 50, 0, "whole");
    assert_int_equal(got.done, 1);
    slmp_close(e);
}

static const char text[300] = "plain";

static struct slmp_message message(enum slmp_way way, int64_t gap)
{
    return (struct slmp_message){
        .to = stranger, .way = way, .gap = gap, .body = text, .body_length = sizeof(text)};
}

static void the_sender_sets_syn(void **state)
{
    struct slmp_config c = plain();
    c.packet_size = 128; /* 118 + 118 + 64 */
    c.plain_window = 2;
    struct slmp *e = engine(&c);
    struct slmp_message m = message(SLMP_RELIABLE, 0);
    uint8_t p[2048], q[2048];
    assert_int_equal(slmp_send(e, 1, &m), 0);
    assert_int_equal(next_packet(e, 1, p), 128);
    assert_int_equal(p[0], 0x40);
    assert_int_equal(p[9], 0);
    assert_int_equal(next_packet(e, 1, p), 128);
    assert_int_equal(p[9], 118);
    assert_int_equal(next_packet(e, 1, q), -1); /* the window is full */
    p[0] |= 0x20;
    slmp_input(e, 2, &stranger, p, 10); /* the second is acknowledged first */
    assert_int_equal(next_packet(e, 2, q), 74);
    assert_int_equal(q[0], 0xc0);
    p[9] = 0;
    slmp_input(e, 3, &stranger, p, 10);
    slmp_input(e, 3, &stranger, p, 10); /* twice: nothing */
    p[0] = 0xe0;
    p[9] = 236;
    assert_int_equal(got.sent, 0);
    slmp_input(e, 3, &stranger, p, 10);
    assert_int_equal(got.sent, 1);
    slmp_advance(e, 2000000000); /* what a silent peer has no use for is freed a second later */
    assert_int_equal(next_packet(e, 2000000000, q), -1);
    assert_int_equal(slmp_deadline(e), SLMP_NEVER);
    slmp_close(e);
}

/* Only the first and the last are acknowledged; those between keep the gap. */
static void the_ends_alone_are_acknowledged(void **state)
{
    struct slmp_config c = plain();
    c.packet_size = 128;
    struct slmp *e = engine(&c);
    struct slmp_message m = message(SLMP_ENDS, 1000);
    uint8_t p[2048], q[2048];
    assert_int_equal(slmp_send(e, 1, &m), 0);
    assert_int_equal(next_packet(e, 1, p), 128);
    assert_int_equal(p[0], 0x40);
    assert_int_equal(next_packet(e, 5000, q), -1);
    p[0] |= 0x20;
    slmp_input(e, 6000, &stranger, p, 10);
    assert_int_equal(next_packet(e, 6000, p), 128);
    assert_int_equal(p[0], 0);
    assert_int_equal(next_packet(e, 6999, q), -1);
    assert_int_equal(slmp_deadline(e), 7000);
    assert_int_equal(next_packet(e, 7000, p), 74);
    assert_int_equal(p[0], 0xc0);
    p[0] |= 0x20;
    slmp_input(e, 8000, &stranger, p, 10);
    assert_int_equal(got.sent, 1);
    slmp_close(e);
}

static void without_acknowledgement_a_gap(void **state)
{
    struct slmp_config c = slmp_defaults(); /* no question is asked before */
    c.packet_size = 128;
    struct slmp *e = engine(&c);
    struct slmp_message m = message(SLMP_UNACKED, 5000), again = message(SLMP_UNACKED, 5000);
    uint8_t p[2048];
    assert_int_equal(slmp_send(e, 100, &m), 0);
    assert_int_equal(slmp_send(e, 100, &again), 0);
    static const int lengths[] = {128, 128, 74, 128, 128, 74};
    for (int i = 0; i < 6; i++) {
        int64_t now = 100 + 5000 * i;
        assert_int_equal(slmp_deadline(e) <= now, 1);
        assert_int_equal(next_packet(e, now, p), lengths[i]);
        assert_int_equal(p[0], i % 3 == 2 ? 0x80 : 0);
        assert_int_equal(next_packet(e, now + 4999, p), -1);
        assert_int_equal(got.sent, i > 2 ? 1 : 0);
        slmp_advance(e, now + 4999);
    }
    assert_int_equal(got.sent, 2);
    slmp_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_peers_on_a_bad_network),
        cmocka_unit_test(the_receiver_answers_with_the_header),
        cmocka_unit_test(an_end_again_and_again_is_silence),
        cmocka_unit_test(packets_that_do_not_fit_each_other),
        cmocka_unit_test(the_sender_sets_syn),
        cmocka_unit_test(the_ends_alone_are_acknowledged),
        cmocka_unit_test(without_acknowledgement_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
