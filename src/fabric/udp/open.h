/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric opened and closed (open.c). */
#ifndef FABRIC_UDP_OPEN_H
#define FABRIC_UDP_OPEN_H

#include "fabric/udp/udp.h"

int udp_open(const struct fabric_setup *, struct fabric **, uint32_t *pid, struct reason *why);
/* udp_close() sends peers a packet that ends their session; a peer that does not get it finds the
 * port closed. */
void udp_close(struct fabric *);

#endif
