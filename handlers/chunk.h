/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks: data in pieces that say themselves where they belong.
 *
 *      packet   | offset | length | data                    |      one message each
 *               |◄── 16 bytes ───►|◄── up to chunk_data() ──►|
 *
 * A payload handler learns neither offset nor match bits of its message, and messages
 * at one entry may be handled in parallel, so that no header handler can leave
 * something for it. Whatever a packet is to be passed on with stands in the packet.
 */
#ifndef HANDLERS_CHUNK_H
#define HANDLERS_CHUNK_H

#include <stdint.h>

#include "bytes.h"
#include "portals4.h"

enum { CHUNK_PACKET = 4096 }; /* of a chunk, at most: handlers keep one on their stack */

struct chunk {
    uint64_t offset; /* of the data in the whole */
    uint64_t length; /* of the whole */
};

_Static_assert(sizeof(struct chunk) == 16, "handlers of all nodes agree on it");

/* chunk_data() is what a chunk holds where packets have `packet` bytes. */
static inline uint64_t chunk_data(ptl_size_t packet)
{
    return smaller(packet, CHUNK_PACKET) - sizeof(struct chunk);
}

/* chunk_count() is the number of chunks of `length` bytes: one, even of none. */
static inline uint64_t chunk_count(uint64_t length, uint64_t data)
{
    return length == 0 ? 1 : (length - 1) / data + 1;
}

#endif
