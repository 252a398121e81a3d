/* SPDX-License-Identifier: BSD-3-Clause */
/* Which senders are of this host, and senders without the key (trust.c). */
#ifndef FABRIC_UDP_TRUST_H
#define FABRIC_UDP_TRUST_H

#include "fabric/udp/udp.h"

bool udp_is_local(struct udp_fabric *, uint32_t ip);
/* udp_unproved() looks at a packet that was not of a session. If the engine has dropped it because
 * one side has another key, or none, it logs that; but only for the 1st, the 10th, the 100th, ...
 * such packet, so that a flood makes 20 lines. */
void udp_unproved(struct udp_fabric *, const struct slmp_address *from);
void udp_learn_locals(struct udp_fabric *);
/* udp_owner() returns the uid of the user who owns a socket of this host; FABRIC_NOBODY if the
 * kernel does not say. */
uint32_t udp_owner(const struct slmp_address *);

#endif
