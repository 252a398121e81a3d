/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of SLMP; see wire.h and docs/slmp.md. */
#include "wire.h"

#include "slmp.h"

#include "base/cpu.h"

#include <string.h>

/* Where the fields behind the header of the paper are. */
enum { AT_KIND = 10, AT_A = 11, AT_B = 12, AT_BITS = 13, AT_SUM = 14, AT_REST = 18 };
enum { WELCOME_LENGTH = 34, OPEN_LENGTH = 42, RESET_LENGTH = 30, HELLO_LENGTH = 18 };

_Static_assert(SLMP_OVERHEAD + 4 * SLMP_RANGES_ACK + SLMP_TAGGED_MORE <= SLMP_HEADER_ROOM,
               "an ACK fits");

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)(v >> 32));
    put32(p + 4, (uint32_t)v);
}

/* ---- CRC-32C ---- */

/* Remainders of the sixteen nibbles, polynomial 0x82f63b78 (reflected). */
static uint32_t crc_portable(uint32_t crc, const uint8_t *p, size_t length)
{
    static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                        0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (; length > 0; length--, p++) {
        crc = nibble[(crc ^ *p) & 15] ^ crc >> 4;
        crc = nibble[(crc ^ *p >> 4) & 15] ^ crc >> 4;
    }
    return crc;
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
                                                            size_t length)
{
    uint64_t c = crc, word;
    for (; length >= 8; length -= 8, p += 8) {
        memcpy(&word, p, 8);
        c = __builtin_ia32_crc32di(c, word);
    }
    crc = (uint32_t)c;
    if ((length & 4) != 0) { /* headers have such rests */
        uint32_t half;
        memcpy(&half, p, 4);
        crc = __builtin_ia32_crc32si(crc, half);
        p += 4;
    }
    if ((length & 2) != 0) {
        uint16_t quarter;
        memcpy(&quarter, p, 2);
        crc = __builtin_ia32_crc32hi(crc, quarter);
        p += 2;
    }
    return (length & 1) != 0 ? __builtin_ia32_crc32qi(crc, *p) : crc;
}

static bool has_sse42;

__attribute__((constructor)) static void choose_crc(void)
{
    has_sse42 = cpu_has_sse42();
}

uint32_t slmp_crc(uint32_t crc, const void *bytes, size_t length)
{
    return has_sse42 ? ~crc_sse42(~crc, bytes, length) : ~crc_portable(~crc, bytes, length);
}

static uint32_t header_sum(const uint8_t *header, size_t length)
{
    static const uint8_t zero[4];
    uint32_t crc = slmp_crc(0, header, AT_SUM);
    crc = slmp_crc(crc, zero, sizeof(zero));
    return slmp_crc(crc, header + AT_REST, length - AT_REST);
}

void slmp_wire_seal(uint8_t *header, size_t header_length, const void *a, size_t a_length,
                    const void *b, size_t b_length)
{
    uint32_t crc = header_sum(header, header_length);
    if ((header[AT_BITS] & SLMP_COVER) != 0) {
        crc = slmp_crc(crc, a, a_length);
        crc = slmp_crc(crc, b, b_length);
    }
    put32(header + AT_SUM, crc);
}

/* ---- Reading ---- */

/* The length of what stands before the payload; 0 if the kind does not exist. */
static size_t fixed_length(const uint8_t *p)
{
    bool tagged = p[AT_BITS] & SLMP_TAGGED;
    size_t more = tagged ? SLMP_GREETING_MORE : 0;
    switch (p[AT_KIND]) {
    case SLMP_KIND_HELLO:
        return tagged ? HELLO_LENGTH + more : 0;
    case SLMP_KIND_WELCOME:
        return WELCOME_LENGTH + more;
    case SLMP_KIND_OPEN:
    case SLMP_KIND_OPENED:
        return OPEN_LENGTH + more;
    case SLMP_KIND_RESET:
        return RESET_LENGTH + (tagged ? SLMP_RESET_MORE : 0);
    case SLMP_KIND_LEAVE:
        return tagged ? RESET_LENGTH + SLMP_TAGGED_MORE : 0;
    case SLMP_KIND_DATA:
    case SLMP_KIND_ACK:
        return SLMP_OVERHEAD + 4u * p[AT_B] + (tagged ? SLMP_TAGGED_MORE : 0) +
               ((p[AT_BITS] & SLMP_PIECE) != 0 ? SLMP_PIECE_MORE : 0);
    default:
        return 0;
    }
}

/* What a tag brings, at the end of what stands before the payload. */
static void read_tag(struct slmp_wire *w, const uint8_t *end)
{
    bool reset = w->kind == SLMP_KIND_RESET;
    w->tag = end - SLMP_TAG_LENGTH;
    if (slmp_wire_inside(w)) {
        w->number = get64(end - SLMP_TAGGED_MORE);
        return;
    }
    const uint8_t *p = end - (reset ? SLMP_RESET_MORE : SLMP_GREETING_MORE);
    w->number = get64(p);
    w->to_ip = get32(p + 8);
    w->to_port = get16(p + 12);
    if (reset) {
        w->from_ip = get32(p + 16);
        w->from_port = get16(p + 20);
        w->answers = get64(p + 24);
    }
}

static void read_session(struct slmp_wire *w, const uint8_t *p)
{
    w->channel = p[AT_A];
    w->ranges = p[AT_B];
    w->cover = (p[AT_BITS] & SLMP_COVER) != 0;
    w->blank = (p[AT_BITS] & SLMP_BLANK) != 0;
    w->token = get32(p + 18);
    w->sequence = get32(p + 22);
    w->cumulative = get32(p + 26);
    w->window = get16(p + 30);
    w->stamp = get32(p + 32);
    w->echo = get32(p + 36);
    w->length = get32(p + 40);
    for (unsigned i = 0; i < w->ranges; i++) {
        w->range[i].first = get16(p + SLMP_OVERHEAD + 4 * i);
        w->range[i].end = get16(p + SLMP_OVERHEAD + 4 * i + 2);
    }
    w->piece = p[AT_BITS] & SLMP_PIECE;
    if (w->piece) {
        w->piece_at = get16(p + SLMP_OVERHEAD + 4u * w->ranges);
        w->piece_of = get16(p + SLMP_OVERHEAD + 4u * w->ranges + 2);
    }
}

/* Pieces are cut at multiples of a unit, so that few bits say which have come. */
static bool sensible_piece(const struct slmp_wire *w)
{
    uint64_t end = w->piece_at + (uint64_t)w->payload_length;
    return w->piece_at % SLMP_PIECE_UNIT == 0 && end <= w->piece_of &&
           (end == w->piece_of || end % SLMP_PIECE_UNIT == 0) &&
           w->piece_of <= w->length - (uint64_t)w->offset;
}

static void read_greeting(struct slmp_wire *w, const uint8_t *p)
{
    w->version = p[AT_A];
    if (w->kind == SLMP_KIND_HELLO) {
        w->version += w->version == 0; /* the first version did not say it */
        w->cover = false;
        return;
    }
    w->nonce = get64(p + 18);
    w->incarnation = get64(p + 26);
    if (w->kind == SLMP_KIND_WELCOME) {
        w->version_max = p[AT_B];
        return;
    }
    w->token = get32(p + 34);
    w->packet_size = get16(p + 38);
    w->window = get16(p + 40);
}

static bool sensible(const struct slmp_wire *w)
{
    switch (w->kind) {
    case SLMP_KIND_DATA:
        if (w->payload_length > w->length - (uint64_t)w->offset && w->length >= w->offset) {
            return false;
        }
        return w->offset <= w->length && (!w->piece || sensible_piece(w)) &&
               w->channel < SLMP_CHANNELS && (w->flags & SLMP_SYN) != 0 &&
               (w->payload_length > 0 || w->length == 0);
    case SLMP_KIND_ACK:
        return w->payload_length == 0 && w->channel < SLMP_CHANNELS && (w->flags & SLMP_ACK) != 0;
    case SLMP_KIND_OPEN:
    case SLMP_KIND_OPENED:
        return w->payload_length == 0 && w->packet_size >= SLMP_PACKET_MIN && w->token != 0 &&
               w->window > 0;
    default:
        return w->payload_length == 0;
    }
}

static bool sum_is_right(const uint8_t *p, size_t fixed, const struct slmp_wire *w)
{
    uint32_t crc = header_sum(p, fixed);
    if ((p[AT_BITS] & SLMP_COVER) != 0) {
        crc = slmp_crc(crc, w->payload, w->payload_length);
    }
    return crc == get32(p + AT_SUM);
}

enum slmp_parse slmp_wire_parse(struct slmp_wire *w, const uint8_t *p, size_t length)
{
    if (length < SLMP_HEADER || length > SLMP_PACKET_MAX) {
        return SLMP_MALFORMED;
    }
    w->flags = get16(p);
    w->id = get32(p + 2);
    w->offset = get32(p + 6);
    w->kind = SLMP_KIND_PLAIN;
    w->tagged = false;
    w->payload = p + SLMP_HEADER;
    w->payload_length = length - SLMP_HEADER;
    if ((w->flags & SLMP_VER) == 0 || length == SLMP_HEADER) {
        return w->offset + (uint64_t)w->payload_length > SLMP_LENGTH_MAX ? SLMP_MALFORMED
                                                                         : SLMP_PARSED;
    }
    if (length < RESET_LENGTH) {
        return SLMP_MALFORMED;
    }
    size_t fixed = fixed_length(p);
    bool data = p[AT_KIND] == SLMP_KIND_DATA;
    w->tagged = p[AT_BITS] & SLMP_TAGGED;
    uint8_t bits = w->tagged ? SLMP_TAGGED : data ? SLMP_COVER : 0;
    bits |= data ? SLMP_PIECE | SLMP_BLANK : 0;
    if (fixed == 0 || length < fixed || (w->flags & ~SLMP_FLAGS) != 0 ||
        (p[AT_BITS] & ~bits) != 0 || (w->tagged && get32(p + AT_SUM) != 0) ||
        (p[AT_KIND] == SLMP_KIND_DATA && p[AT_B] > SLMP_RANGES_DATA) ||
        (p[AT_KIND] == SLMP_KIND_ACK && p[AT_B] > SLMP_RANGES_ACK)) {
        return SLMP_MALFORMED;
    }
    w->kind = p[AT_KIND];
    w->payload = p + fixed;
    w->payload_length = length - fixed;
    if (w->tagged) {
        read_tag(w, p + fixed); /* whether it is right, who has the key can say */
    } else if (!sum_is_right(p, fixed, w)) {
        return SLMP_CORRUPT;
    }
    if (w->kind == SLMP_KIND_DATA || w->kind == SLMP_KIND_ACK) {
        read_session(w, p);
    } else if (w->kind == SLMP_KIND_RESET || w->kind == SLMP_KIND_LEAVE) {
        w->token = get32(p + 18);
        w->incarnation = get64(p + 22);
    } else {
        read_greeting(w, p);
        if (w->kind != SLMP_KIND_WELCOME && w->version != slmp_version(w->tagged)) {
            return w->payload_length == 0 ? SLMP_OTHER_VERSION : SLMP_MALFORMED;
        }
    }
    return sensible(w) ? SLMP_PARSED : SLMP_MALFORMED;
}

/* ---- Writing ---- */

static size_t write_session(const struct slmp_wire *w, uint8_t *p)
{
    p[AT_A] = w->channel;
    p[AT_B] = w->ranges;
    p[AT_BITS] = (uint8_t)((w->cover ? SLMP_COVER : 0) | (w->blank ? SLMP_BLANK : 0));
    put32(p + 18, w->token);
    put32(p + 22, w->sequence);
    put32(p + 26, w->cumulative);
    put16(p + 30, w->window);
    put32(p + 32, w->stamp);
    put32(p + 36, w->echo);
    put32(p + 40, w->length);
    for (unsigned i = 0; i < w->ranges; i++) {
        put16(p + SLMP_OVERHEAD + 4 * i, w->range[i].first);
        put16(p + SLMP_OVERHEAD + 4 * i + 2, w->range[i].end);
    }
    size_t length = SLMP_OVERHEAD + 4u * w->ranges;
    if (w->piece) {
        p[AT_BITS] |= SLMP_PIECE;
        put16(p + length, w->piece_at);
        put16(p + length + 2, w->piece_of);
        length += SLMP_PIECE_MORE;
    }
    return length;
}

static size_t write_greeting(const struct slmp_wire *w, uint8_t *p)
{
    p[AT_A] = w->version;
    put64(p + 18, w->nonce);
    put64(p + 26, w->incarnation);
    if (w->kind == SLMP_KIND_WELCOME) {
        p[AT_B] = w->version_max;
        return WELCOME_LENGTH;
    }
    put32(p + 34, w->token);
    put16(p + 38, w->packet_size);
    put16(p + 40, w->window);
    return OPEN_LENGTH;
}

static size_t write_address(uint8_t *p, uint32_t ip, uint16_t port)
{
    put32(p, ip);
    put16(p + 4, port);
    put16(p + 6, 0);
    return 8;
}

/* All of it but the tag itself. */
static size_t write_tagged(const struct slmp_wire *w, uint8_t *p, size_t length)
{
    p[AT_BITS] |= SLMP_TAGGED;
    put64(p + length, w->number);
    length += 8;
    if (!slmp_wire_inside(w)) {
        length += write_address(p + length, w->to_ip, w->to_port);
    }
    if (w->kind == SLMP_KIND_RESET) {
        length += write_address(p + length, w->from_ip, w->from_port);
        put64(p + length, w->answers);
        length += 8;
    }
    memset(p + length, 0, SLMP_TAG_LENGTH);
    return length + SLMP_TAG_LENGTH;
}

size_t slmp_wire_write(const struct slmp_wire *w, uint8_t *p)
{
    size_t length;
    put16(p, w->flags);
    put32(p + 2, w->id);
    put32(p + 6, w->offset);
    if (w->kind == SLMP_KIND_PLAIN) {
        return SLMP_HEADER;
    }
    memset(p + AT_KIND, 0, AT_REST - AT_KIND);
    p[AT_KIND] = (uint8_t)w->kind;
    if (w->kind == SLMP_KIND_HELLO) {
        p[AT_A] = w->version;
        length = HELLO_LENGTH;
    } else if (w->kind == SLMP_KIND_DATA || w->kind == SLMP_KIND_ACK) {
        length = write_session(w, p);
    } else if (w->kind == SLMP_KIND_RESET || w->kind == SLMP_KIND_LEAVE) {
        put32(p + 18, w->token);
        put64(p + 22, w->incarnation);
        length = RESET_LENGTH;
    } else {
        length = write_greeting(w, p);
    }
    if (w->tagged) {
        return write_tagged(w, p, length);
    }
    if (!w->cover) {
        slmp_wire_seal(p, length, NULL, 0, NULL, 0);
    }
    return length;
}
