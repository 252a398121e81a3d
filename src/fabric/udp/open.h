/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric opened and closed (open.c). */
#ifndef FABRIC_UDP_OPEN_H
#define FABRIC_UDP_OPEN_H

#include "fabric/udp/udp.h"

int udp_open(const struct fabric_setup *, struct fabric **, uint32_t *pid, struct reason *why);
/* udp_close(): peers learn it from a packet that ends their session; who does not get it finds
 * nobody. */
void udp_close(struct fabric *);

#endif
