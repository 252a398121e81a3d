/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP socket of a command's SLMP engine: that of fabric/udp/socket.h, and a function that moves
 * packets between socket and engine and sleeps until the engine's deadline.
 */
#ifndef PINWHEEL_SLMP_UDP_H
#define PINWHEEL_SLMP_UDP_H

#include "fabric/slmp/slmp.h"
#include "fabric/udp/socket.h"

#include <stdint.h>

struct slmp_udp {
    struct udp_socket socket;
    unsigned drop; /* for tests: of 10,000 packets that come so many are lost */
    uint64_t draw; /* state of the random numbers that choose them */
    uint8_t *buffer;
};

/* slmp_udp_open() binds a socket to `address` (0: all) and `port` (0: any); with a `peer` it only
 * receives from that. Returns 0, or -1 with what is wrong in `why`. */
int slmp_udp_open(struct slmp_udp *, uint32_t address, uint16_t port,
                  const struct slmp_address *peer, struct reason *why);
void slmp_udp_close(struct slmp_udp *);

/* slmp_udp_turn() gives received packets to the engine, and sends the engine's packets. If there is
 * nothing to do it sleeps until the engine's deadline, `longest` nanoseconds at most. Returns 0, or
 * -1 with `why` if the socket cannot be used. */
int slmp_udp_turn(struct slmp_udp *, struct slmp *, int64_t longest, struct reason *why);

/* slmp_udp_find() resolves a host name or address; -1 with `why` if it cannot. */
int slmp_udp_find(const char *host, uint32_t *address, struct reason *why);

#endif
