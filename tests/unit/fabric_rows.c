/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows, short messages that share one of the engine's (fabric/udp/udp.h): however their bytes
 * are cut into packets, the NIC's side finds each message once; a row that contradicts itself
 * ends where it does, and one that ends too soon brings nothing.
 */
#include "fabric/slmp/engine.h"
#include "fabric/udp/stage.h"
#include "fabric/udp/stream.h"
#include "fabric/udp/udp.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct udp_fabric fabric;
    struct udp_peer peer;
    struct slmp_peer session;
    struct slmp_incoming in;
    uint8_t row[1024];
    size_t length;
    uint32_t last;
};

static struct udp_channel *channel(struct fixture *x)
{
    return &x->peer.channel[FABRIC_REQUEST];
}

static struct udp_stream *stream(struct fixture *x)
{
    return udp_stream_first(channel(x));
}

static int begin(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    list_init(&x->fabric.ready);
    list_init(&x->fabric.free_buffers);
    list_init(&x->fabric.free_pieces);
    x->peer.fabric = &x->fabric;
    list_init(&x->peer.ready);
    udp_channel_init(channel(x), NULL, FABRIC_REQUEST);
    x->session.user = &x->peer;
    *state = x;
    return 0;
}

static int end(void **state)
{
    struct fixture *x = *state;
    udp_channel_free(&x->fabric, channel(x));
    udp_memories_free(&x->fabric);
    free(x);
    return 0;
}

/* Puts a message with so many bytes of value `with` behind the others. */
static void add(struct fixture *x, uint32_t length, uint8_t with)
{
    if (x->length != 0) {
        uint32_t before = htonl((uint32_t)(x->length - x->last - UDP_HEAD));
        x->row[x->last + UDP_AT_MORE] = 1;
        memcpy(x->row + x->last + UDP_AT_LENGTH, &before, sizeof(before));
        x->length = (x->length + UDP_ALIGN - 1) / UDP_ALIGN * UDP_ALIGN;
    }
    x->last = (uint32_t)x->length;
    x->row[x->last] = UDP_FORMAT;
    memset(x->row + x->last + UDP_HEAD, with, length);
    x->length += UDP_HEAD + length;
}

static void three(struct fixture *x)
{
    add(x, 8, 1);
    add(x, 0, 0);
    add(x, 100, 2);
}

/* Hands over `most` bytes of the row, in packets of `each`. */
static void hand_over(struct fixture *x, size_t each, size_t most)
{
    x->in = (struct slmp_incoming){
        .peer = &x->session, .length = x->length, .channel = FABRIC_REQUEST, .active = true};
    size_t first = each < x->length ? each : x->length;
    assert_int_equal(udp_begin(&x->fabric, &x->in, x->row, first), SLMP_GO);
    for (size_t at = 0; at < most; at += each) {
        size_t n = x->length - at < each ? x->length - at : each;
        uint8_t *packet = malloc(n); /* its own, so that nobody reads beyond it */
        assert_non_null(packet);
        memcpy(packet, x->row + at, n);
        assert_int_equal(udp_data(&x->fabric, &x->in, at, packet, n), SLMP_GO);
        free(packet);
    }
}

/* The next message that the NIC would get has so many bytes of `with`. */
static void expect(struct fixture *x, uint32_t length, uint8_t with)
{
    struct udp_stream *l = stream(x);
    assert_false(list_empty(&l->pieces));
    struct udp_piece *piece = container_of(l->pieces.next, struct udp_piece, link);
    assert_true(piece->first);
    assert_int_equal(piece->total, UDP_HEAD + length);
    assert_int_equal(piece->length, piece->total);
    for (uint32_t i = 0; i < length; i++) {
        assert_int_equal(piece->bytes[UDP_HEAD + i], with);
    }
    udp_piece_drop(&x->fabric, l);
}

static void nothing_is_left(struct fixture *x)
{
    assert_true(list_empty(&stream(x)->pieces));
    assert_int_equal(stream(x)->count, 0);
    assert_null(stream(x)->in.row);
}

static void each_message_comes_once(void **state)
{
    static const size_t packets[] = {1024, 300, 100, UDP_HEAD, 56 + 1};
    struct fixture *x = *state;
    three(x);
    for (unsigned i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
        hand_over(x, packets[i], x->length);
        udp_done(&x->fabric, &x->in, SLMP_OK);
        expect(x, 8, 1);
        expect(x, 0, 0);
        expect(x, 100, 2);
        nothing_is_left(x);
    }
    assert_int_equal(x->fabric.misshapen, 0);
}

static void one_that_ends_too_soon_brings_nothing(void **state)
{
    struct fixture *x = *state;
    three(x);
    hand_over(x, UDP_HEAD, 2 * UDP_HEAD);
    udp_done(&x->fabric, &x->in, SLMP_UNDELIVERABLE);
    nothing_is_left(x);
}

static void lengths_that_lie_end_it(void **state)
{
    static const uint32_t lies[] = {200, 1000, UINT32_MAX, UINT32_MAX - UDP_HEAD};
    struct fixture *x = *state;
    three(x);
    for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        uint32_t lie = htonl(lies[i]); /* of the second message, whose end is then not there */
        memcpy(x->row + UDP_ALIGN + UDP_AT_LENGTH, &lie, sizeof(lie));
        hand_over(x, x->length, x->length);
        udp_done(&x->fabric, &x->in, SLMP_OK);
        expect(x, 8, 1);
        nothing_is_left(x);
        assert_int_equal(x->fabric.misshapen, i + 1);
    }
}

static void a_strange_message_ends_it(void **state)
{
    struct fixture *x = *state;
    three(x);
    x->row[2 * UDP_ALIGN] = UDP_FORMAT + 1;
    hand_over(x, x->length, x->length);
    udp_done(&x->fabric, &x->in, SLMP_OK);
    expect(x, 8, 1);
    expect(x, 0, 0);
    nothing_is_left(x);
    assert_int_equal(x->fabric.misshapen, 1);
}

static void one_that_is_too_long_is_dropped(void **state)
{
    struct fixture *x = *state;
    three(x);
    x->in = (struct slmp_incoming){
        .peer = &x->session, .length = UDP_ROW_MOST + 1, .channel = FABRIC_REQUEST, .active = true};
    assert_int_equal(udp_begin(&x->fabric, &x->in, x->row, x->length), SLMP_GO);
    assert_int_equal(udp_data(&x->fabric, &x->in, 0, x->row, x->length), SLMP_GO);
    assert_null(stream(x)->in.open); /* the next one need not wait for the rest */
    assert_int_equal(udp_data(&x->fabric, &x->in, x->length, x->row, x->length), SLMP_GO);
    udp_done(&x->fabric, &x->in, SLMP_OK);
    nothing_is_left(x);
    assert_int_equal(x->fabric.misshapen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_message_comes_once, begin, end),
        cmocka_unit_test_setup_teardown(one_that_ends_too_soon_brings_nothing, begin, end),
        cmocka_unit_test_setup_teardown(lengths_that_lie_end_it, begin, end),
        cmocka_unit_test_setup_teardown(a_strange_message_ends_it, begin, end),
        cmocka_unit_test_setup_teardown(one_that_is_too_long_is_dropped, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
