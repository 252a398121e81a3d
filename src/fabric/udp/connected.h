/* SPDX-License-Identifier: BSD-3-Clause */
/* A second socket, connected to the busiest peer (connected.c). */
#ifndef FABRIC_UDP_CONNECTED_H
#define FABRIC_UDP_CONNECTED_H

#include "fabric/udp/socket.h"

/* udp_connected_count() counts a call that sends, and may connect the socket to another peer. */
void udp_connected_count(struct udp_connected *, int first, const struct slmp_address *to);
bool udp_connected_leads_to(const struct udp_connected *, const struct slmp_address *to);
/* udp_connected_fail() closes a connected socket on which sending has failed; much later there may
 * be a new one. */
void udp_connected_fail(struct udp_connected *);
void udp_connected_close(struct udp_connected *);

#endif
