/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums that were left open; see checksum.h. The kernel knows of each of its frames whether its
 * checksum is open, and forgets that when the frame is redirected to a socket. Given back, it would
 * be dropped as damaged. A damaged frame from a wire is taken for an open one as rarely as its
 * checksum is right by chance.
 */
#include "raw/source/checksum.h"

enum { ETH = 14, TAG = 4, V4 = 20, V6 = 40, TCP = 6, UDP = 17 };

static unsigned get_16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static uint32_t add(uint32_t sum, const uint8_t *data, uint32_t length)
{
    for (uint32_t i = 0; i + 1 < length; i += 2) {
        sum += get_16(data + i);
    }
    return length % 2 != 0 ? sum + ((uint32_t)data[length - 1] << 8) : sum;
}

static unsigned fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* A segment or datagram and the sum of its addresses. */
struct inner {
    uint8_t *at;
    uint32_t length, addresses;
    uint8_t protocol;
};

static bool find_v4(struct inner *i, uint8_t *p, uint32_t length)
{
    uint32_t head = (uint32_t)(p[0] & 15) * 4, total = length >= V4 ? get_16(p + 2) : 0;
    if (head < V4 || total < head || total > length || (get_16(p + 6) & 0x3fff) != 0) {
        return false;
    }
    *i = (struct inner){p + head, total - head, add(0, p + 12, 8), p[9]};
    return true;
}

static bool find_v6(struct inner *i, uint8_t *p, uint32_t length)
{
    uint32_t payload = length >= V6 ? get_16(p + 4) : 0;
    if (payload == 0 || payload > length - V6) {
        return false;
    }
    *i = (struct inner){p + V6, payload, add(0, p + 8, 32), p[6]};
    return true;
}

static bool find(struct inner *i, uint8_t *f, uint32_t length)
{
    uint32_t at = ETH;
    for (unsigned tags = 0; tags < 2 && at + TAG < length; tags++) {
        unsigned kind = get_16(f + at - 2);
        at += kind == 0x8100 || kind == 0x88a8 ? TAG : 0;
    }
    if (length < at + V4) {
        return false;
    }
    switch (get_16(f + at - 2)) {
    case 0x0800:
        return find_v4(i, f + at, length - at);
    case 0x86dd:
        return find_v6(i, f + at, length - at);
    default:
        return false;
    }
}

bool raw_checksum_finish(uint8_t *frame, uint32_t length)
{
    struct inner i;
    if (!find(&i, frame, length)) {
        return false;
    }
    bool udp = i.protocol == UDP;
    if (udp ? i.length < 8 : i.protocol != TCP || i.length < 20) {
        return false;
    }
    if (udp) {
        uint32_t datagram = get_16(i.at + 4);
        if (datagram < 8 || datagram > i.length) {
            return false;
        }
        i.length = datagram;
    }
    uint8_t *field = i.at + (udp ? 6 : 16);
    unsigned open = fold(i.addresses + i.protocol + i.length);
    uint32_t sum = add(0, i.at, i.length);
    if (get_16(field) != open || fold(open + sum) == 0xffff) {
        return false;
    }
    unsigned done = ~fold(sum) & 0xffff;
    done = done == 0 && udp ? 0xffff : done;
    field[0] = (uint8_t)(done >> 8);
    field[1] = (uint8_t)done;
    return true;
}
