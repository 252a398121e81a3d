/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP messages about addresses where a port is closed (refusal.c). */
#ifndef FABRIC_UDP_REFUSAL_H
#define FABRIC_UDP_REFUSAL_H

#include "fabric/udp/socket.h"

/* udp_socket_refusal() returns an address whose port is closed, as the host of that address has
 * answered to a packet of this socket; false: there is no further one. Messages of other hosts are
 * ignored. For an address of this host the answer is proof, since the kernel lets no other host
 * send from it. For one of another host it is as trustworthy as the network. */
bool udp_socket_refusal(struct udp_socket *, struct slmp_address *);

#endif
