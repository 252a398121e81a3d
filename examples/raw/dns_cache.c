/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DNS cache in the NIC: the handler answers questions whose answers are in the table
 * (dns_cache.h), and gives all others to the kernel, so to its server. The host,
 * dns_cache_host.c, asks the server what it was asked for in vain, and fills the table.
 *
 *      gcc -shared -fPIC -O2 dns_cache.c -o dns_cache.so        or        pinwheel cc --image
 *
 * The rules say that a datagram to port 53 is whole, in an IPv4 header of 20 bytes. What else the
 * kernel would look at before the server gets it, the handler looks at, too: lengths, checksums,
 * where it comes from. What is wrong with it is the kernel's to judge.
 */
#include <spin_handler.h>

#include "dns_cache.h"

enum { IP = DNS_ETH, UDP = IP + DNS_IP, LEAST = 60, LIVES = 64, DONT_FRAGMENT = 0x40 };

/* Adds 16-bit words, as for checksums of IP, to a sum. */
static uint32_t add(uint32_t sum, const uint8_t *data, unsigned length)
{
    unsigned i = 0;
    for (; i + 1 < length; i += 2) {
        sum += dns_16(data + i);
    }
    return i < length ? sum + ((uint32_t)data[i] << 8) : sum;
}

static unsigned fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* The sum of what stands for the IP header in the checksum of UDP. */
static uint32_t pseudo(const uint8_t *f, unsigned datagram)
{
    return add(17 + datagram, f + IP + 12, 8);
}

/* A sender on this machine may leave the checksum to its card: then it is that of the pseudo
 * header. */
static bool right_checksum(const uint8_t *f, unsigned datagram)
{
    uint32_t sum = pseudo(f, datagram);
    unsigned said = dns_16(f + UDP + 6);
    return said == 0 || said == fold(sum) || fold(add(sum, f + UDP, datagram)) == 0xffff;
}

/* Returns the length of the DNS message of a frame; 0: the kernel is to look at it. */
static unsigned message_of(const uint8_t *f, unsigned length)
{
    if (length < DNS_FRAME) {
        return 0;
    }
    unsigned packet = dns_16(f + IP + 2), datagram = dns_16(f + UDP + 4);
    uint8_t net = f[IP + 12];
    bool sender = net != 0 && net != 127 && net < 224 && dns_16(f + UDP) != 0 &&
                  dns_32(f + IP + 12) != dns_32(f + IP + 16);
    if (!sender || IP + packet > length || packet != DNS_IP + datagram || datagram < DNS_UDP ||
        fold(add(0, f + IP, DNS_IP)) != 0xffff || !right_checksum(f, datagram)) {
        return 0;
    }
    return datagram - DNS_UDP;
}

/* Makes the frame of an answer, and returns its length. */
static unsigned make(uint8_t *to, const uint8_t *f, const struct dns_entry *e, uint32_t age)
{
    unsigned datagram = DNS_UDP + e->answer_length, length = DNS_FRAME + e->answer_length;
    uint8_t *m = to + DNS_FRAME;
    __builtin_memcpy(to, f + 6, 6);
    __builtin_memcpy(to + 6, f, 6);
    to[12] = 8;
    to[13] = 0;
    __builtin_memset(to + IP, 0, DNS_IP + DNS_UDP);
    to[IP] = 0x45;
    dns_put_16(to + IP + 2, DNS_IP + datagram);
    to[IP + 6] = DONT_FRAGMENT;
    to[IP + 8] = LIVES;
    to[IP + 9] = 17;
    __builtin_memcpy(to + IP + 12, f + IP + 16, 4);
    __builtin_memcpy(to + IP + 16, f + IP + 12, 4);
    dns_put_16(to + IP + 10, ~fold(add(0, to + IP, DNS_IP)));
    __builtin_memcpy(to + UDP, f + UDP + 2, 2);
    __builtin_memcpy(to + UDP + 2, f + UDP, 2);
    dns_put_16(to + UDP + 4, datagram);
    __builtin_memcpy(m, e->answer, e->answer_length);
    __builtin_memcpy(m, f + DNS_FRAME, 2);
    __builtin_memcpy(m + DNS_HEAD, f + DNS_FRAME + DNS_HEAD, e->question_end - DNS_HEAD);
    for (unsigned i = 0; i < e->ttls; i++) {
        dns_put_32(m + e->ttl_at[i], dns_32(m + e->ttl_at[i]) - age);
    }
    unsigned sum = ~fold(add(pseudo(to, datagram), to + UDP, datagram)) & 0xffff;
    dns_put_16(to + UDP + 6, sum != 0 ? sum : 0xffff);
    for (; length < LEAST; length++) {
        to[length] = 0;
    }
    return length;
}

__handler int raw_payload(const ptl_payload_t p, void *state)
{
    struct dns_cache *c = state;
    const uint8_t *f = p.base, *m = f + DNS_FRAME;
    unsigned length = message_of(f, (unsigned)p.length);
    unsigned end = length > 0 ? dns_question(m, length) : 0;
    if (end > 0) {
        struct dns_entry *e = dns_find(c, m, length, dns_hash(c, m, length, end));
        if (e == NULL) {
            c->not_there++;
            (void)spin_queue_post(&c->host, m, length); /* or when it is asked for again */
        } else if (e->answer_length > 0 &&
                   PtlHandlerFrameSend(c->frame, make(c->frame, f, e, c->now - e->begun)) ==
                       PTL_OK) {
            e->used = c->now;
            c->answered++;
            return SUCCESS;
        }
    }
    c->passed++;
    return PtlHandlerFramePass() == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(raw_payload);
