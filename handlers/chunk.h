/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks: pieces of data, each with a head that tells its place in the whole.
 *
 *      packet   | offset | length | data                    |      one message each
 *               |◄── 16 bytes ───►|◄── up to chunk_data() ──►|
 *
 * A payload handler's arguments have neither the offset nor the match bits of its message; and
 * messages at one entry may be handled in parallel, so a header handler cannot leave them in the
 * entry's state. So the packet itself has all that is needed to send it on.
 */
#ifndef HANDLERS_CHUNK_H
#define HANDLERS_CHUNK_H

#include <stdint.h>

#include "bytes.h"
#include "portals4.h"

enum { CHUNK_PACKET = 4096 }; /* bytes of a chunk, at most: handlers keep one on their stack */

struct chunk {
    uint64_t offset; /* offset of the data in the whole */
    uint64_t length; /* bytes of the whole */
};

_Static_assert(sizeof(struct chunk) == 16, "handlers of all nodes agree on it");

/* chunk_data() returns the data bytes of a chunk, if packets have `packet` bytes. */
static inline uint64_t chunk_data(ptl_size_t packet)
{
    return smaller(packet, CHUNK_PACKET) - sizeof(struct chunk);
}

/* chunk_count() returns the number of chunks of `length` bytes; 0 bytes are one chunk. */
static inline uint64_t chunk_count(uint64_t length, uint64_t data)
{
    return length == 0 ? 1 : (length - 1) / data + 1;
}

#endif
