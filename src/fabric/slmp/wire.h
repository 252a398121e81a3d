/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of SLMP as bytes and as structs; docs/slmp.md pictures them. Parsing checks all
 * that one packet alone can say: lengths, kinds, reserved bits, the checksum. Numbers stay
 * 32 bits wide here; who knows their neighbours makes 64 of them.
 */
#ifndef FABRIC_SLMP_WIRE_H
#define FABRIC_SLMP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    SLMP_EOM = 0x8000, /* the three flags of the paper, where the prototype has them */
    SLMP_SYN = 0x4000,
    SLMP_ACK = 0x2000,
    SLMP_VER = 0x1000, /* the version bit: a packet of, or towards, a session */
    SLMP_FLAGS = 0xf000
};

enum slmp_kind {
    SLMP_KIND_PLAIN, /* not on the wire: no version bit, or nothing behind the header */
    SLMP_KIND_WELCOME,
    SLMP_KIND_OPEN,
    SLMP_KIND_OPENED,
    SLMP_KIND_DATA,
    SLMP_KIND_ACK,
    SLMP_KIND_RESET,
    SLMP_KIND_HELLO, /* with a tag only: without, an empty packet of the paper is the hello */
    SLMP_KIND_LEAVE  /* with a tag only: its sender ends the session; without, a RESET does */
};

enum {
    SLMP_VERSION = 3,       /* packets without a tag; 1 and 2 had two channels */
    SLMP_VERSION_KEYED = 4, /* packets with a tag */
    SLMP_COVER = 1,         /* bit of byte 13: the checksum covers the payload */
    SLMP_BLANK = 2, /* bit of byte 13: zeros stand for bytes that the sender could not read */
    SLMP_PIECE = 8, /* bit of byte 13: a piece of a packet that is too long for the path now */
    SLMP_PIECE_UNIT = 32, /* pieces begin at multiples of it */
    SLMP_PIECE_MORE = 4,  /* bytes that it adds: where in the packet, bytes of all */
    SLMP_TAGGED = 4,      /* a tag, made with the job key, is in place of the checksum */
    SLMP_TAG_LENGTH = 16,
    SLMP_TAGGED_MORE = 24,   /* bytes that a tag adds in a session: number, tag */
    SLMP_GREETING_MORE = 32, /* bytes that a tag adds outside of one: number, address, tag */
    SLMP_RESET_MORE = 48,    /* the same of a RESET: also sender's address, what it answers */
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
    uint64_t nonce, incarnation;  /* all but HELLO; of RESET and LEAVE the second */
    uint32_t token;               /* all but HELLO and WELCOME */
    uint16_t packet_size;         /* OPEN, OPENED */
    uint16_t window;              /* OPEN, OPENED, DATA, ACK, as all that follows */
    uint8_t channel, ranges;
    bool cover, blank, tagged, piece;
    uint16_t piece_at, piece_of; /* piece: where its payload is in the packet's */
    uint64_t number;             /* tagged: of the packet; of an exchange, what one side drew */
    uint32_t to_ip, from_ip;     /* tagged, outside of a session: where it was sent to */
    uint16_t to_port, from_port; /* RESET: also by whom; 0 where he does not know */
    uint64_t answers;            /* RESET: how the tag of the packet that it answers begins */
    const uint8_t *tag;          /* tagged: the MAC, in the packet, of the packet's other bytes */
    uint32_t sequence, cumulative, stamp, echo, length;
    struct slmp_range range[SLMP_RANGES_ACK];

    const uint8_t *payload; /* PLAIN, DATA */
    size_t payload_length;
};

/* The version of packets with a tag, or without. */
static inline uint8_t slmp_version(bool tagged)
{
    return tagged ? SLMP_VERSION_KEYED : SLMP_VERSION;
}

/* Whether a packet is of a session, and its tag made with the session's key. */
static inline bool slmp_wire_inside(const struct slmp_wire *w)
{
    return w->kind == SLMP_KIND_DATA || w->kind == SLMP_KIND_ACK || w->kind == SLMP_KIND_LEAVE;
}

/* SLMP_OTHER_VERSION: it greets in a version that is not spoken here, and all is parsed. */
enum slmp_parse { SLMP_PARSED, SLMP_MALFORMED, SLMP_CORRUPT, SLMP_OTHER_VERSION };

enum slmp_parse slmp_wire_parse(struct slmp_wire *, const uint8_t *packet, size_t length);

/* slmp_wire_write() writes all but the payload to `to`, SLMP_HEADER_ROOM bytes, and
 * returns how many. A packet with `cover` wants slmp_wire_seal() then; one with `tagged`
 * a tag in its last SLMP_TAG_LENGTH bytes. */
size_t slmp_wire_write(const struct slmp_wire *, uint8_t *to);

/* CRC-32C (Castagnoli), with `crc` 0 for the first piece. */
uint32_t slmp_crc(uint32_t crc, const void *bytes, size_t length);

/* slmp_wire_seal() stores the checksum of a packet whose header is at `header` and whose
 * payload is in so many parts. */
void slmp_wire_seal(uint8_t *header, size_t header_length, const struct iovec *part,
                    unsigned parts);

#endif
