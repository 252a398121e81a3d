/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of pingpong.c and their host, pingpong_host.c, do with a frame of 20 bytes of
 * IPv4 header. */
#ifndef PINGPONG_H
#define PINGPONG_H

#include <stdint.h>

enum { IP = 14, PROTO = IP + 9, SOURCE = IP + 12, TRANSPORT = IP + 20, ICMP = 1, UDP = 17 };

static inline void pingpong_swap(uint8_t *a, uint8_t *b, int n)
{
    for (int i = 0; i < n; i++) {
        uint8_t byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Makes the answer of a request, but for its checksum, which is 0. */
static inline void pingpong_turn(uint8_t *f)
{
    uint8_t *sum = f + TRANSPORT + (f[PROTO] == UDP ? 6 : 2);
    pingpong_swap(f, f + 6, 6);
    pingpong_swap(f + SOURCE, f + SOURCE + 4, 4);
    if (f[PROTO] == UDP) {
        pingpong_swap(f + TRANSPORT, f + TRANSPORT + 2, 2);
    } else {
        f[TRANSPORT] = 0;
    }
    sum[0] = sum[1] = 0;
}

/* The checksum of a packet from its time to live on; of UDP with addresses, protocol and length. */
static inline unsigned pingpong_sum(const uint8_t *from, unsigned length)
{
    unsigned first = TRANSPORT - (PROTO - 1);
    uint32_t total = 0;
    if (from[1] == UDP) {
        total = UDP + length - first;
        first = SOURCE - (PROTO - 1);
    }
    for (unsigned i = first; i + 1 < length; i += 2) {
        total += (uint32_t)from[i] << 8 | from[i + 1];
    }
    total += (length - first) % 2 != 0 ? (uint32_t)from[length - 1] << 8 : 0;
    total = (total & 0xffff) + (total >> 16);
    total = ~(total + (total >> 16)) & 0xffff;
    return from[1] == UDP && total == 0 ? 0xffff : total;
}

static inline void pingpong_put_sum(uint8_t *f, unsigned sum)
{
    uint8_t *at = f + TRANSPORT + (f[PROTO] == UDP ? 6 : 2);
    at[0] = (uint8_t)(sum >> 8);
    at[1] = (uint8_t)sum;
}

#endif
