/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP under the SLMP engine of a command: the socket of fabric/udp/socket.h, and a turn that
 * moves packets between the two and sleeps until the engine's deadline.
 */
#ifndef PINWHEEL_SLMP_UDP_H
#define PINWHEEL_SLMP_UDP_H

#include "fabric/slmp/slmp.h"
#include "fabric/udp/socket.h"

#include <stdint.h>

struct slmp_udp {
    struct udp_socket socket;
    unsigned drop; /* a test's: of 10,000 packets that come so many are lost */
    uint64_t draw; /* the random number by which packets are lost */
    uint8_t *buffer;
};

/* slmp_udp_open() binds to `address` (0: all) and `port` (0: any) or, with a peer, talks to
 * that one only. 0, or -1 and `why` says what is wrong. */
int slmp_udp_open(struct slmp_udp *, uint32_t address, uint16_t port,
                  const struct slmp_address *peer, struct reason *why);
void slmp_udp_close(struct slmp_udp *);

/* slmp_udp_turn() gives the engine what has come and the network what is to leave. With
 * nothing to do it sleeps until the engine's deadline, `longest` nanoseconds at most. 0,
 * or -1 with `why` when the socket cannot be used. */
int slmp_udp_turn(struct slmp_udp *, struct slmp *, int64_t longest, struct reason *why);

/* slmp_udp_find() resolves a host name or address; -1 with `why` if there is none. */
int slmp_udp_find(const char *host, uint32_t *address, struct reason *why);

#endif
