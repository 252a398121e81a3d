/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of SLMP; see wire.h and docs/slmp.md. */
#include "wire.h"

#include "slmp.h"

#include "base/cpu.h"

#include <string.h>

/* Places of the fields behind the header of the paper. */
enum { AT_KIND = 10, AT_A = 11, AT_B = 12, AT_BITS = 13, AT_SUM = 14, AT_REST = 18 };
enum { LENGTH_LEAST = 30 };

/* By kind of packet: the bytes before the payload, without ranges, piece and tag; those that a tag
 * adds; and whether a tag is required. */
static const struct {
    uint8_t length, more;
    bool tag_only;
} kinds[] = {[SLMP_KIND_WELCOME] = {34, SLMP_GREETING_MORE, false},
             [SLMP_KIND_OPEN] = {42, SLMP_GREETING_MORE, false},
             [SLMP_KIND_OPENED] = {42, SLMP_GREETING_MORE, false},
             [SLMP_KIND_DATA] = {SLMP_OVERHEAD, SLMP_TAGGED_MORE, false},
             [SLMP_KIND_ACK] = {SLMP_OVERHEAD, SLMP_TAGGED_MORE, false},
             [SLMP_KIND_RESET] = {LENGTH_LEAST, SLMP_RESET_MORE, false},
             [SLMP_KIND_HELLO] = {18, SLMP_GREETING_MORE, true},
             [SLMP_KIND_LEAVE] = {LENGTH_LEAST, SLMP_TAGGED_MORE, true}};

static bool is_kind(uint8_t kind, bool tagged)
{
    return kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind].length != 0 &&
           (tagged || !kinds[kind].tag_only);
}

_Static_assert(SLMP_OVERHEAD + 4 * SLMP_RANGES_ACK + SLMP_TAGGED_MORE <= SLMP_HEADER_ROOM,
               "an ACK fits");

/* ---- Fields ----
 * One function for each group has the places of its fields, to read them or (`out`) to write. */

#define ALWAYS_INLINE static inline __attribute__((always_inline))
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a field's bytes are turned round");

ALWAYS_INLINE void field(bool out, uint8_t *p, void *value, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, out ? value : p, bytes);
    v = bytes == 4 ? __builtin_bswap32((uint32_t)v) : __builtin_bswap64(v) >> (64 - 8 * bytes);
    memcpy(out ? p : value, &v, bytes);
}

/* FIELD() reads or writes the field of w that is so many bytes behind p. */
#define FIELD(at, member) field(out, p + (at), &w->member, sizeof(w->member))

/* ---- CRC-32C ---- */

/* Remainders of the sixteen nibbles, for the polynomial 0x82f63b78 (reflected). */
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
    if ((length & 4) != 0) { /* headers are often no multiple of 8 bytes */
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

void slmp_wire_seal(uint8_t *header, size_t header_length, const struct iovec *part, unsigned parts)
{
    uint32_t crc = header_sum(header, header_length);
    for (unsigned i = 0; i < parts && (header[AT_BITS] & SLMP_COVER) != 0; i++) {
        crc = slmp_crc(crc, part[i].iov_base, part[i].iov_len);
    }
    field(true, header + AT_SUM, &crc, sizeof(crc));
}

ALWAYS_INLINE void header_fields(bool out, uint8_t *p, struct slmp_wire *w)
{
    FIELD(0, flags);
    FIELD(2, id);
    FIELD(6, offset);
}

ALWAYS_INLINE void session_fields(bool out, uint8_t *p, struct slmp_wire *w)
{
    FIELD(AT_A, channel);
    FIELD(AT_B, ranges);
    FIELD(18, token);
    FIELD(22, sequence);
    FIELD(26, cumulative);
    FIELD(30, window);
    FIELD(32, stamp);
    FIELD(36, echo);
    FIELD(40, length);
    p += SLMP_OVERHEAD;
    for (unsigned i = 0; i < w->ranges; i++, p += 4) {
        FIELD(0, range[i].first);
        FIELD(2, range[i].end);
    }
    if (w->piece) {
        FIELD(0, piece_at);
        FIELD(2, piece_of);
    }
}

ALWAYS_INLINE void greeting_fields(bool out, uint8_t *p, struct slmp_wire *w)
{
    FIELD(AT_A, version);
    if (w->kind == SLMP_KIND_HELLO) {
        return;
    }
    FIELD(18, nonce);
    FIELD(26, incarnation);
    if (w->kind == SLMP_KIND_WELCOME) {
        FIELD(AT_B, version_max);
        return;
    }
    FIELD(34, token);
    FIELD(38, packet_size);
    FIELD(40, window);
}

/* Reads or writes all fields but those that a tag adds. */
ALWAYS_INLINE void kind_fields(bool out, uint8_t *p, struct slmp_wire *w)
{
    if (w->kind == SLMP_KIND_DATA || w->kind == SLMP_KIND_ACK) {
        session_fields(out, p, w);
    } else if (w->kind == SLMP_KIND_RESET || w->kind == SLMP_KIND_LEAVE) {
        FIELD(18, token);
        FIELD(22, incarnation);
    } else {
        greeting_fields(out, p, w);
    }
}

/* Reads or writes the fields that a tag adds, without the tag itself. They are the last bytes
 * before `end`, where the payload begins. */
ALWAYS_INLINE void tag_fields(bool out, uint8_t *end, struct slmp_wire *w)
{
    uint8_t *p = end - kinds[w->kind].more;
    if (out) {
        memset(p, 0, (size_t)(end - p));
    }
    FIELD(0, number);
    if (!slmp_wire_inside(w)) {
        FIELD(8, to_ip);
        FIELD(12, to_port);
    }
    if (w->kind == SLMP_KIND_RESET) {
        FIELD(16, from_ip);
        FIELD(20, from_port);
        FIELD(24, answers);
    }
}

/* Returns the length of the part before the payload, from a packet's first bytes. */
static size_t fixed_length(const uint8_t *p)
{
    bool session = p[AT_KIND] == SLMP_KIND_DATA || p[AT_KIND] == SLMP_KIND_ACK;
    return kinds[p[AT_KIND]].length + (session ? 4u * p[AT_B] : 0) +
           ((p[AT_BITS] & SLMP_PIECE) != 0 ? SLMP_PIECE_MORE : 0) +
           ((p[AT_BITS] & SLMP_TAGGED) != 0 ? kinds[p[AT_KIND]].more : 0);
}

/* ---- Reading ---- */

/* Whether a piece has a legal place: pieces begin at multiples of a unit, so that few bits note
 * which have come. */
static bool sensible_piece(const struct slmp_wire *w)
{
    uint64_t end = w->piece_at + (uint64_t)w->payload_length;
    return w->piece_at % SLMP_PIECE_UNIT == 0 && end <= w->piece_of &&
           (end == w->piece_of || end % SLMP_PIECE_UNIT == 0) &&
           w->piece_of <= w->length - (uint64_t)w->offset;
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

static uint32_t sum_in(const uint8_t *p)
{
    uint32_t sum;
    field(false, (uint8_t *)(uintptr_t)p + AT_SUM, &sum, sizeof(sum));
    return sum;
}

static bool sum_is_right(const uint8_t *p, size_t fixed, const struct slmp_wire *w)
{
    uint32_t crc = header_sum(p, fixed);
    if ((p[AT_BITS] & SLMP_COVER) != 0) {
        crc = slmp_crc(crc, w->payload, w->payload_length);
    }
    return crc == sum_in(p);
}

enum slmp_parse slmp_wire_parse(struct slmp_wire *w, const uint8_t *p, size_t length)
{
    if (length < SLMP_HEADER || length > SLMP_PACKET_MAX) {
        return SLMP_MALFORMED;
    }
    header_fields(false, (uint8_t *)(uintptr_t)p, w);
    w->kind = SLMP_KIND_PLAIN;
    w->tagged = false;
    w->payload = p + SLMP_HEADER;
    w->payload_length = length - SLMP_HEADER;
    if ((w->flags & SLMP_VER) == 0 || length == SLMP_HEADER) {
        return w->offset + (uint64_t)w->payload_length > SLMP_LENGTH_MAX ? SLMP_MALFORMED
                                                                         : SLMP_PARSED;
    }
    w->tagged = length >= LENGTH_LEAST && (p[AT_BITS] & SLMP_TAGGED) != 0;
    if (length < LENGTH_LEAST || !is_kind(p[AT_KIND], w->tagged)) {
        return SLMP_MALFORMED;
    }
    size_t fixed = fixed_length(p);
    bool data = p[AT_KIND] == SLMP_KIND_DATA;
    uint8_t bits = w->tagged ? SLMP_TAGGED : data ? SLMP_COVER : 0;
    bits |= data ? SLMP_PIECE | SLMP_BLANK : 0;
    if (length < fixed || (w->flags & ~SLMP_FLAGS) != 0 || (p[AT_BITS] & ~bits) != 0 ||
        (w->tagged && sum_in(p) != 0) ||
        (p[AT_KIND] == SLMP_KIND_DATA && p[AT_B] > SLMP_RANGES_DATA) ||
        (p[AT_KIND] == SLMP_KIND_ACK && p[AT_B] > SLMP_RANGES_ACK)) {
        return SLMP_MALFORMED;
    }
    w->kind = p[AT_KIND];
    w->payload = p + fixed;
    w->payload_length = length - fixed;
    w->cover = (p[AT_BITS] & SLMP_COVER) != 0;
    w->blank = (p[AT_BITS] & SLMP_BLANK) != 0;
    w->piece = (p[AT_BITS] & SLMP_PIECE) != 0;
    uint8_t *at = (uint8_t *)(uintptr_t)p; /* field() with `out` false only reads it */
    if (w->tagged) {
        tag_fields(false, at + fixed, w);
        w->tag = p + fixed - SLMP_TAG_LENGTH; /* only a holder of the key can check it */
    } else if (!sum_is_right(p, fixed, w)) {
        return SLMP_CORRUPT;
    }
    kind_fields(false, at, w);
    if (w->kind == SLMP_KIND_HELLO) {
        w->version += w->version == 0; /* a HELLO of the first version has 0 there */
    }
    bool says_version =
        w->kind == SLMP_KIND_HELLO || w->kind == SLMP_KIND_OPEN || w->kind == SLMP_KIND_OPENED;
    if (says_version && w->version != slmp_version(w->tagged)) {
        return w->payload_length == 0 ? SLMP_OTHER_VERSION : SLMP_MALFORMED;
    }
    return sensible(w) ? SLMP_PARSED : SLMP_MALFORMED;
}

/* ---- Writing ---- */

size_t slmp_wire_write(const struct slmp_wire *wire, uint8_t *p)
{
    /* field() with `out` only reads it */
    struct slmp_wire *w = (struct slmp_wire *)(uintptr_t)wire;
    header_fields(true, p, w);
    if (w->kind == SLMP_KIND_PLAIN) {
        return SLMP_HEADER;
    }
    memset(p + AT_KIND, 0, AT_REST - AT_KIND);
    p[AT_KIND] = (uint8_t)w->kind;
    p[AT_BITS] = (uint8_t)((w->cover ? SLMP_COVER : 0) | (w->blank ? SLMP_BLANK : 0) |
                           (w->piece ? SLMP_PIECE : 0) | (w->tagged ? SLMP_TAGGED : 0));
    kind_fields(true, p, w);
    size_t length = fixed_length(p);
    if (w->tagged) {
        tag_fields(true, p + length, w);
    } else if (!w->cover) {
        slmp_wire_seal(p, length, NULL, 0);
    }
    return length;
}
