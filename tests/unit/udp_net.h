/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network in memory in the place of UDP sockets: udp_net.c defines the functions of
 * fabric/udp/socket.h, in virtual time, with faults that a seed decides. Each wire packet
 * has its own fate.
 */
#ifndef UNIT_UDP_NET_H
#define UNIT_UDP_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct net_faults {
    unsigned lost, doubled, spoilt; /* of a thousand packets */
    int64_t latency, jitter;        /* nanoseconds: jitter makes packets overtake others */
};

struct net_counts {
    uint64_t packets, lost, doubled, spoilt;
};

/* net_begin() forgets all and sets the clock to 1 s. */
void net_begin(uint64_t seed, const struct net_faults *);
void net_set(const struct net_faults *);
/* net_choose() has those packets lost, too, for which the function is true; NULL: none. */
void net_choose(bool (*lost)(const uint8_t *packet, size_t length));
void net_pass(int64_t ns);
int64_t net_now(void);
struct net_counts net_counts(void);

#endif
