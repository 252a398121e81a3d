/* SPDX-License-Identifier: BSD-3-Clause */
/* What ICMP says of addresses where nobody listens (refusal.c). */
#ifndef FABRIC_UDP_REFUSAL_H
#define FABRIC_UDP_REFUSAL_H

#include "fabric/udp/socket.h"

/* udp_socket_refusal() names an address where nobody listens, as its host has answered to a
 * packet of ours; false: there is no more to tell. What others say of it is passed over. Such an
 * answer is proof where the address is this host's own: the kernel lets nobody else send from
 * there. Another host is believed as far as the network is. */
bool udp_socket_refusal(struct udp_socket *, struct slmp_address *);

#endif
