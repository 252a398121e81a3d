/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format of messages. Numbers are in the byte order of the machine; the magic number shows
 * whether the receiver has the same.
 *
 *      0 magic  4 version  5 type  6 flags (1: remote callback)  8 token  16 error
 *     20 units given up  24 units wanted  28 bytes of arguments  32 zero
 *     40 units: address and length, in answers the handle, too; then the arguments
 *
 * Version 2 has a message that revokes units, without an answer of its own: the peer gives them up
 * by a move. A move may be answered with the error -ERESTART.
 */
#include "inside.h"

#include <errno.h>
#include <string.h>

enum { MAGIC = 0x70774648, VERSION = 2, UNIT = 16, UNITS_MOST = 1 << 20 };

struct header {
    uint32_t magic;
    uint8_t version, type;
    uint16_t flags;
    uint64_t token;
    int32_t error;
    uint32_t unpins, pins, args;
    uint64_t zero;
};
_Static_assert(sizeof(struct header) == PW_FIREHOSE_HEADER, "a header has no gaps");

static size_t pin_size(enum message_type type)
{
    return type == MESSAGE_ANSWER ? UNIT + PW_FIREHOSE_HANDLE : UNIT;
}

size_t wire_size(const struct message *m)
{
    return sizeof(struct header) + (size_t)m->unpin_count * UNIT +
           m->pin_count * pin_size(m->type) + m->args_length;
}

unsigned char *wire_write(unsigned char *at, const struct message *m)
{
    struct header h = {.magic = MAGIC,
                       .version = VERSION,
                       .type = (uint8_t)m->type,
                       .flags = m->callback,
                       .token = m->token,
                       .error = m->error,
                       .unpins = m->unpin_count,
                       .pins = m->pin_count,
                       .args = m->args_length};
    memcpy(at, &h, sizeof(h));
    return at + sizeof(h);
}

unsigned char *wire_put(unsigned char *at, const struct pin_range *range, bool handle)
{
    memcpy(at, &range->addr, 8);
    memcpy(at + 8, &range->len, 8);
    if (handle) {
        memcpy(at + UNIT, range->handle, PW_FIREHOSE_HANDLE);
    }
    return at + UNIT + (handle ? PW_FIREHOSE_HANDLE : 0);
}

const unsigned char *wire_get(const unsigned char *at, struct pin_range *range, bool handle)
{
    memset(range, 0, sizeof(*range));
    memcpy(&range->addr, at, 8);
    memcpy(&range->len, at + 8, 8);
    if (handle) {
        memcpy(range->handle, at + UNIT, PW_FIREHOSE_HANDLE);
    }
    return at + UNIT + (handle ? PW_FIREHOSE_HANDLE : 0);
}

unsigned wire_version(const void *bytes, size_t length, unsigned *own)
{
    struct header h;
    *own = VERSION;
    if (length < sizeof(h)) {
        return 0;
    }
    memcpy(&h, bytes, sizeof(h));
    return h.magic == MAGIC ? h.version : 0;
}

/* Reads the header of a message, and finds the parts behind it. */
int wire_read(const void *bytes, size_t length, struct message *m)
{
    struct header h;
    if (length < sizeof(h)) {
        return -EPROTO;
    }
    memcpy(&h, bytes, sizeof(h));
    if (h.magic != MAGIC || h.version != VERSION || h.type < MESSAGE_MOVE ||
        h.type > MESSAGE_REVOKE || h.flags > 1 || h.error > 0 || h.zero != 0 ||
        h.unpins > UNITS_MOST || h.pins > UNITS_MOST || h.args > PW_FIREHOSE_ARGS ||
        (h.type != MESSAGE_MOVE && h.unpins != 0)) {
        return -EPROTO;
    }
    *m = (struct message){.type = h.type,
                          .callback = h.flags != 0,
                          .token = h.token,
                          .error = h.error,
                          .unpin_count = h.unpins,
                          .pin_count = h.pins,
                          .args_length = h.args};
    if (wire_size(m) != length) {
        return -EPROTO;
    }
    m->unpins = (const unsigned char *)bytes + sizeof(h);
    m->pins = m->unpins + (size_t)m->unpin_count * UNIT;
    m->args = m->pins + m->pin_count * pin_size(m->type);
    return 0;
}
