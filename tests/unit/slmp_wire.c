/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of SLMP, byte by byte as docs/slmp.md has them. */
#include "fabric/slmp/wire.h"

#include "fabric/slmp/slmp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_checksum_is_crc32c(void **state)
{
    char zeros[32] = {0};
    assert_int_equal(slmp_crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(slmp_crc(0, zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    for (size_t i = 0; i <= 9; i++) {
        const char *all = "123456789";
        assert_int_equal(slmp_crc(slmp_crc(0, all, i), all + i, 9 - i), 0xe3069283);
    }
}

/* Writes `w`, compares it with `expected` but for the checksum, and parses it again. */
static struct slmp_wire round_trip(const struct slmp_wire *w, const uint8_t *expected,
                                   size_t length)
{
    uint8_t bytes[SLMP_HEADER_ROOM];
    static struct slmp_wire again;
    assert_int_equal(slmp_wire_write(w, bytes), length);
    assert_memory_equal(bytes, expected, 14);
    assert_memory_equal(bytes + 18, expected + 18, length - 18);
    uint8_t zeroed[SLMP_HEADER_ROOM];
    memcpy(zeroed, bytes, length);
    memset(zeroed + 14, 0, 4);
    uint32_t crc = slmp_crc(0, zeroed, length);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bytes[14 + i], crc >> (24 - 8 * i) & 255);
    }
    assert_int_equal(slmp_wire_parse(&again, bytes, length), SLMP_PARSED);
    assert_int_equal(again.kind, w->kind);
    for (unsigned bit = 0; bit < 8 * length; bit++) { /* no changed bit passes */
        struct slmp_wire spoiled;
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        enum slmp_parse result = slmp_wire_parse(&spoiled, bytes, length);
        bool plain = result == SLMP_PARSED && spoiled.kind == SLMP_KIND_PLAIN;
        assert_true(result != SLMP_PARSED || (plain && bit == 4)); /* the version bit itself */
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    return again;
}

static void greetings(void **state)
{
    struct slmp_wire w = {.flags = SLMP_ACK | SLMP_VER,
                          .id = 0x01020304,
                          .kind = SLMP_KIND_WELCOME,
                          .version = 3,
                          .version_max = 3,
                          .nonce = 0x1112131415161718,
                          .incarnation = 0x2122232425262728};
    static const uint8_t welcome[34] = {0x30, 0,    1,    2,    3,    4,    0,    0,    0,
                                        0,    1,    3,    3,    0,    0,    0,    0,    0,
                                        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21,
                                        0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
    round_trip(&w, welcome, sizeof(welcome));
    w.flags = SLMP_SYN | SLMP_VER;
    w.kind = SLMP_KIND_OPEN;
    w.token = 0x31323334;
    w.packet_size = 1472;
    w.window = 256;
    static const uint8_t open[42] = {
        0x50, 0,    1,    2,    3,    4,    0,    0,    0,    0,    2,    3,    0,    0,
        0,    0,    0,    0,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22,
        0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x05, 0xc0, 0x01, 0x00};
    struct slmp_wire again = round_trip(&w, open, sizeof(open));
    assert_true(again.token == w.token && again.packet_size == 1472 && again.window == 256);
    struct slmp_wire r = {.flags = SLMP_ACK | SLMP_VER,
                          .kind = SLMP_KIND_RESET,
                          .token = 0x31323334,
                          .incarnation = 0x2122232425262728};
    static const uint8_t reset[30] = {0x30, 0,    0,    0,    0,    0,    0,    0,    0,    0,
                                      6,    0,    0,    0,    0,    0,    0,    0,    0x31, 0x32,
                                      0x33, 0x34, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
    round_trip(&r, reset, sizeof(reset));
}

static void acknowledgements(void **state)
{
    struct slmp_wire w = {.flags = SLMP_ACK | SLMP_VER,
                          .kind = SLMP_KIND_ACK,
                          .channel = 1,
                          .ranges = 2,
                          .token = 0x01020304,
                          .sequence = 0x11121314,
                          .cumulative = 0x21222324,
                          .window = 0x3132,
                          .stamp = 0x41424344,
                          .echo = 0x51525354,
                          .range = {{1, 3}, {5, 0x102}}};
    static const uint8_t ack[52] = {
        0x30, 0,    0,    0,    0,    0,    0,    0,    0,    0,    5,    1,    2,
        0,    0,    0,    0,    0,    1,    2,    3,    4,    0x11, 0x12, 0x13, 0x14,
        0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53,
        0x54, 0,    0,    0,    0,    0,    1,    0,    3,    0,    5,    1,    2};
    struct slmp_wire again = round_trip(&w, ack, sizeof(ack));
    assert_true(again.range[1].first == 5 && again.range[1].end == 0x102 && again.channel == 1);
}

static void data_covers_its_payload_or_not(void **state)
{
    struct slmp_wire w = {.flags = SLMP_SYN | SLMP_ACK | SLMP_EOM | SLMP_VER,
                          .id = 7,
                          .offset = 4,
                          .kind = SLMP_KIND_DATA,
                          .token = 9,
                          .length = 9};
    struct slmp_wire again;
    uint8_t p[64];
    for (int cover = 0; cover <= 1; cover++) {
        w.cover = cover;
        assert_int_equal(slmp_wire_write(&w, p), SLMP_OVERHEAD);
        memcpy(p + SLMP_OVERHEAD, "hello", 5);
        if (cover) {
            struct iovec part[] = {{"hel", 3}, {"lo", 2}};
            slmp_wire_seal(p, SLMP_OVERHEAD, part, 2);
        }
        assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 5), SLMP_PARSED);
        assert_int_equal(again.payload_length, 5);
        assert_memory_equal(again.payload, "hello", 5);
        p[SLMP_OVERHEAD + 2] ^= 1;
        assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 5),
                         cover ? SLMP_CORRUPT : SLMP_PARSED);
    }
    w.cover = false;
    w.length = 8; /* shorter than where its payload ends */
    slmp_wire_write(&w, p);
    assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 5), SLMP_MALFORMED);
    w.length = 3; /* than where it begins */
    slmp_wire_write(&w, p);
    assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 5), SLMP_MALFORMED);
    w.length = 9;
    w.channel = SLMP_CHANNELS;
    slmp_wire_write(&w, p);
    assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 5), SLMP_MALFORMED);
}

/* Number, address and tag stand at the end of a greeting, number and tag at that of other
 * headers; the checksum is 0 then. */
static void tags(void **state)
{
    struct slmp_wire hello = {.flags = SLMP_SYN | SLMP_VER,
                              .id = 5,
                              .kind = SLMP_KIND_HELLO,
                              .version = SLMP_VERSION_KEYED,
                              .tagged = true,
                              .number = 0x1112131415161718,
                              .to_ip = 0x0a630101,
                              .to_port = 0x2472};
    static const uint8_t right[50] = {0x50, 0,    0,    0,    0,    5,    0,    0,
                                      0,    0,    7,    4,    0,    4,    0,    0,
                                      0,    0,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
                                      0x17, 0x18, 0x0a, 0x63, 0x01, 0x01, 0x24, 0x72};
    struct slmp_wire again;
    uint8_t p[SLMP_HEADER_ROOM + 8];
    assert_int_equal(slmp_wire_write(&hello, p), sizeof(right));
    assert_memory_equal(p, right, sizeof(right));
    assert_int_equal(slmp_wire_parse(&again, p, sizeof(right)), SLMP_PARSED);
    assert_true(again.tagged && again.number == hello.number && again.to_ip == hello.to_ip &&
                again.to_port == hello.to_port && again.tag == p + 34);
    assert_int_equal(slmp_wire_parse(&again, p, sizeof(right) - 1), SLMP_MALFORMED);
    p[17] = 1; /* a checksum beside a tag */
    assert_int_equal(slmp_wire_parse(&again, p, sizeof(right)), SLMP_MALFORMED);
    p[17] = p[13] = 0; /* a hello without */
    assert_int_equal(slmp_wire_parse(&again, p, sizeof(right)), SLMP_MALFORMED);
    struct slmp_wire data = {.flags = SLMP_SYN | SLMP_ACK | SLMP_VER,
                             .kind = SLMP_KIND_DATA,
                             .ranges = 1,
                             .token = 9,
                             .length = 100,
                             .tagged = true,
                             .number = 6};
    assert_int_equal(slmp_wire_write(&data, p), SLMP_OVERHEAD + 4 + SLMP_TAGGED_MORE);
    memset(p + SLMP_OVERHEAD + 4 + SLMP_TAGGED_MORE, 'x', 3);
    assert_int_equal(slmp_wire_parse(&again, p, SLMP_OVERHEAD + 4 + SLMP_TAGGED_MORE + 3),
                     SLMP_PARSED);
    assert_true(again.number == 6 && again.tag == p + SLMP_OVERHEAD + 4 + 8);
    assert_true(again.payload == again.tag + SLMP_TAG_LENGTH && again.payload_length == 3);
}

/* What ends a session says more of itself: who sends it, and what it answers. */
static void tags_of_ends(void **state)
{
    struct slmp_wire reset = {.flags = SLMP_ACK | SLMP_VER,
                              .kind = SLMP_KIND_RESET,
                              .incarnation = 0x0102030405060708,
                              .token = 0x090a0b0c,
                              .tagged = true,
                              .number = 0x1112131415161718,
                              .to_ip = 0x0a630101,
                              .to_port = 0x2472,
                              .from_ip = 0x0a630102,
                              .from_port = 0x2473,
                              .answers = 0x2122232425262728};
    static const uint8_t right[78] = {
        0x30, 0,    0,    0,    0,    0,    0,    0,    0,    0,    6,    0,    0,
        4,    0,    0,    0,    0,    0x09, 0x0a, 0x0b, 0x0c, 0x01, 0x02, 0x03, 0x04,
        0x05, 0x06, 0x07, 0x08, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x0a,
        0x63, 0x01, 0x01, 0x24, 0x72, 0,    0,    0x0a, 0x63, 0x01, 0x02, 0x24, 0x73,
        0,    0,    0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};
    struct slmp_wire leave = reset, again;
    uint8_t p[SLMP_HEADER_ROOM];
    assert_int_equal(slmp_wire_write(&reset, p), sizeof(right));
    assert_memory_equal(p, right, sizeof(right));
    assert_int_equal(slmp_wire_parse(&again, p, sizeof(right)), SLMP_PARSED);
    assert_true(again.number == reset.number && again.to_ip == reset.to_ip &&
                again.to_port == reset.to_port && again.from_ip == reset.from_ip &&
                again.from_port == reset.from_port && again.answers == reset.answers &&
                again.token == reset.token && again.incarnation == reset.incarnation &&
                again.tag == p + 62);
    assert_int_equal(slmp_wire_parse(&again, p, 62), SLMP_MALFORMED); /* as long as version 1's */
    leave.kind = SLMP_KIND_LEAVE;
    assert_int_equal(slmp_wire_write(&leave, p), 54);
    assert_int_equal(slmp_wire_parse(&again, p, 54), SLMP_PARSED);
    assert_true(again.number == leave.number && again.token == leave.token && again.tag == p + 38 &&
                slmp_wire_inside(&again));
    leave.tagged = false;
    slmp_wire_write(&leave, p);
    assert_int_equal(slmp_wire_parse(&again, p, 54), SLMP_MALFORMED);
    assert_int_equal(slmp_wire_parse(&again, p, 30), SLMP_MALFORMED);
}

static void pieces(void **state)
{
    static const struct {
        uint16_t at, of;
        size_t length;
        enum slmp_parse right;
    } piece[] = {{0, 100, 32, SLMP_PARSED},     {64, 100, 36, SLMP_PARSED},
                 {64, 100, 32, SLMP_PARSED},    {32, 64, 32, SLMP_PARSED},
                 {16, 100, 32, SLMP_MALFORMED}, /* not where one may begin */
                 {32, 100, 33, SLMP_MALFORMED}, /* nor end */
                 {64, 100, 37, SLMP_MALFORMED}, /* beyond its packet */
                 {96, 64, 32, SLMP_MALFORMED},  {0, 201, 32, SLMP_MALFORMED}};
    for (unsigned i = 0; i < sizeof(piece) / sizeof(piece[0]); i++) {
        struct slmp_wire w = {.flags = SLMP_SYN | SLMP_ACK | SLMP_VER,
                              .kind = SLMP_KIND_DATA,
                              .offset = 50,
                              .length = 250, /* 200 from there on */
                              .token = 9,
                              .piece = true,
                              .piece_at = piece[i].at,
                              .piece_of = piece[i].of};
        struct slmp_wire again;
        uint8_t p[SLMP_HEADER_ROOM] = {0};
        assert_int_equal(slmp_wire_write(&w, p), SLMP_OVERHEAD + SLMP_PIECE_MORE);
        assert_int_equal(
            slmp_wire_parse(&again, p, SLMP_OVERHEAD + SLMP_PIECE_MORE + piece[i].length),
            piece[i].right);
        assert_true(again.piece && again.piece_at == w.piece_at && again.piece_of == w.piece_of);
    }
}

/* Shorter than a header, or longer than a datagram can be: no packet. */
static void lengths_that_cannot_be(void **state)
{
    static const uint8_t zeros[SLMP_PACKET_MAX + 1];
    struct slmp_wire w;
    assert_int_equal(slmp_wire_parse(&w, zeros, SLMP_HEADER - 1), SLMP_MALFORMED);
    assert_int_equal(slmp_wire_parse(&w, zeros, SLMP_HEADER), SLMP_PARSED);
    assert_int_equal(slmp_wire_parse(&w, zeros, SLMP_PACKET_MAX), SLMP_PARSED);
    assert_int_equal(slmp_wire_parse(&w, zeros, SLMP_PACKET_MAX + 1), SLMP_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_crc32c),
        cmocka_unit_test(greetings),
        cmocka_unit_test(acknowledgements),
        cmocka_unit_test(data_covers_its_payload_or_not),
        cmocka_unit_test(tags),
        cmocka_unit_test(tags_of_ends),
        cmocka_unit_test(pieces),
        cmocka_unit_test(lengths_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
