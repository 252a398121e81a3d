/* SPDX-License-Identifier: BSD-3-Clause */
/* Which senders are of this host, and senders without the key (trust.c). */
#ifndef FABRIC_UDP_TRUST_H
#define FABRIC_UDP_TRUST_H

#include "fabric/udp/udp.h"

bool udp_is_local(struct udp_fabric *, uint32_t ip);
/* udp_unproved() looks at a packet that was not of a session: if the engine has dropped it because
 * one of both ends has another key, or none, the first says so in the log, and the 10th, the 100th,
 * ..., so that a flood of such packets leaves 20 lines. */
void udp_unproved(struct udp_fabric *, const struct slmp_address *from);
void udp_learn_locals(struct udp_fabric *);
/* udp_owner() is the uid that the kernel says a socket of this host has; FABRIC_NOBODY if it
 * does not say. */
uint32_t udp_owner(const struct slmp_address *);

#endif
