/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols and fields that rules may name (rules.h). One table; text.c reads it. */
#ifndef RAW_FIELDS_H
#define RAW_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum raw_kind { RAW_NUMBER, RAW_MAC, RAW_IP4, RAW_IP6 };

/* A condition that a protocol implies: bytes at an offset behind the tags. */
struct raw_implied {
    uint16_t offset;
    uint32_t mask, value;
};

/* A protocol, what a frame of it has, and the protocol below it (NULL: Ethernet). */
struct raw_protocol {
    const char *name, *below;
    unsigned count;
    struct raw_implied implied[3];
};

/* A field: `bits` of `bytes` bytes (1, 2, 4, 6, 16), in network order, at an offset behind the
 * tags. */
struct raw_field {
    const char *name, *protocol; /* "udp.dport", "udp"; protocol NULL: each frame has it */
    uint16_t offset;
    uint8_t bytes;
    uint32_t bits; /* of fields up to 4 bytes; 0: all */
    enum raw_kind kind;
};

/* A value that has a name, of one field. */
struct raw_constant {
    const char *field, *name;
    uint32_t value;
};

const struct raw_protocol *raw_protocol_find(const char *name, size_t length);
const struct raw_field *raw_field_find(const char *name, size_t length);
const struct raw_constant *raw_constant_find(const char *field, const char *name, size_t length);

/* raw_name_at() lists all names of protocols and fields, for hints in errors; NULL at the end. */
const char *raw_name_at(unsigned n);

#endif
