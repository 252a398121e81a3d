/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that have left the nodes of a network, to be looked at and sent again: the first SEEN
 * of those that are not longer than KEPT, which who includes this has said. */
#ifndef SLMP_SEEN_H
#define SLMP_SEEN_H

#include "slmp_net.h"

#include <string.h>

static struct {
    unsigned count;
    struct seen_packet {
        unsigned from;
        size_t length;
        uint8_t bytes[KEPT];
    } packet[SEEN];
} seen;

static bool see(void *context, unsigned from, const uint8_t *bytes, size_t length)
{
    if (seen.count < SEEN && length <= KEPT) {
        struct seen_packet *p = &seen.packet[seen.count++];
        p->from = from;
        p->length = length;
        memcpy(p->bytes, bytes, length);
    }
    return false;
}

static inline void watch(struct net *n)
{
    seen.count = 0;
    net_watch(n, see, NULL);
}

#endif
