/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of SLMP as bytes and as structs; docs/slmp.md has their layouts. slmp_wire_parse() checks
 * all that can be checked on a single packet: lengths, kinds, reserved bits, the checksum. Numbers
 * are the 32 bits of the packet; a flow widens them to 64 (slmp_widen()).
 */
#ifndef FABRIC_SLMP_WIRE_H
#define FABRIC_SLMP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    SLMP_EOM = 0x8000, /* the three flags of the paper, in the prototype's places */
    SLMP_SYN = 0x4000,
    SLMP_ACK = 0x2000,
    SLMP_VER = 0x1000, /* the version bit: the packet is of a session, or of an exchange for one */
    SLMP_FLAGS = 0xf000
};

enum slmp_kind {
    SLMP_KIND_PLAIN, /* not on the wire: without version bit, or without bytes behind the header */
    SLMP_KIND_WELCOME,
    SLMP_KIND_OPEN,
    SLMP_KIND_OPENED,
    SLMP_KIND_DATA,
    SLMP_KIND_ACK,
    SLMP_KIND_RESET,
    SLMP_KIND_HELLO, /* only with a tag; without one, an empty packet of plain SLMP is the hello */
    SLMP_KIND_LEAVE  /* only with a tag: its sender ends the session; without one, a RESET does */
};

enum {
    SLMP_VERSION = 3,       /* packets without a tag; versions 1 and 2 had two channels */
    SLMP_VERSION_KEYED = 4, /* packets with a tag */
    SLMP_COVER = 1,         /* bit of byte 13: the checksum covers the payload */
    /* bit of byte 13: the payload is zeros, as the sender could not read its bytes */
    SLMP_BLANK = 2,
    SLMP_PIECE = 8,       /* bit of byte 13: a piece of a packet that is too long for the path */
    SLMP_PIECE_UNIT = 32, /* pieces begin at multiples of this */
    SLMP_PIECE_MORE = 4,  /* bytes that it adds: place in the packet, and length of that */
    SLMP_TAGGED = 4,      /* bit of byte 13: a tag, made with the job key, replaces the checksum */
    SLMP_TAG_LENGTH = 16,
    SLMP_TAGGED_MORE = 24,   /* bytes that a tag adds in a session: number and tag */
    SLMP_GREETING_MORE = 32, /* bytes that a tag adds in greetings: number, address and tag */
    /* bytes that it adds in a RESET: also the sender's address, and what it answers */
    SLMP_RESET_MORE = 48,
    SLMP_RANGES_DATA = 4,
    SLMP_RANGES_ACK = 32
};

/* Packets [cum + first, cum + end) have arrived. */
struct slmp_range {
    uint16_t first, end;
};

struct slmp_wire {
    uint16_t flags;
    uint32_t id, offset;
    enum slmp_kind kind;

    uint8_t version, version_max; /* HELLO, WELCOME, OPEN, OPENED */
    /* all kinds but HELLO; RESET and LEAVE have only the incarnation */
    uint64_t nonce, incarnation;
    uint32_t token;       /* all kinds but HELLO and WELCOME */
    uint16_t packet_size; /* OPEN, OPENED */
    uint16_t window;      /* OPEN, OPENED, DATA, ACK; so are the following fields */
    uint8_t channel, ranges;
    bool cover, blank, tagged, piece;
    /* piece: its place in the payload of the packet, and the length of that */
    uint16_t piece_at, piece_of;
    /* tagged: number of the packet; in greetings the initiator's random number */
    uint64_t number;
    uint32_t to_ip, from_ip; /* tagged, in greetings: the address that it was sent to */
    /* RESET: also the sender's address; 0 if the sender does not know it */
    uint16_t to_port, from_port;
    /* RESET: the first bytes of the tag of the packet that it answers */
    uint64_t answers;
    const uint8_t *tag; /* tagged: the MAC, in the packet, of the packet's other bytes */
    uint32_t sequence, cumulative, stamp, echo, length;
    struct slmp_range range[SLMP_RANGES_ACK];

    const uint8_t *payload; /* PLAIN, DATA */
    size_t payload_length;
};

/* Returns the version of packets with or without a tag. */
static inline uint8_t slmp_version(bool tagged)
{
    return tagged ? SLMP_VERSION_KEYED : SLMP_VERSION;
}

/* Whether a packet is of a session, so that its tag is made with the session's key. */
static inline bool slmp_wire_inside(const struct slmp_wire *w)
{
    return w->kind == SLMP_KIND_DATA || w->kind == SLMP_KIND_ACK || w->kind == SLMP_KIND_LEAVE;
}

/* SLMP_OTHER_VERSION: a greeting in a version that this engine does not speak; all fields are
 * parsed. */
enum slmp_parse { SLMP_PARSED, SLMP_MALFORMED, SLMP_CORRUPT, SLMP_OTHER_VERSION };

enum slmp_parse slmp_wire_parse(struct slmp_wire *, const uint8_t *packet, size_t length);

/* slmp_wire_write() writes all but the payload to `to`, which has SLMP_HEADER_ROOM bytes, and
 * returns the number of bytes. A packet with `cover` then needs slmp_wire_seal(); one with `tagged`
 * a tag in the last SLMP_TAG_LENGTH bytes. */
size_t slmp_wire_write(const struct slmp_wire *, uint8_t *to);

/* slmp_crc() returns the CRC-32C (Castagnoli) of bytes, given that of the bytes before them; `crc`
 * is 0 at first. */
uint32_t slmp_crc(uint32_t crc, const void *bytes, size_t length);

/* slmp_wire_seal() stores the checksum of a packet with its header at `header` and its payload in
 * these parts. */
void slmp_wire_seal(uint8_t *header, size_t header_length, const struct iovec *part,
                    unsigned parts);

#endif
