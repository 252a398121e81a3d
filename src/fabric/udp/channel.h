/* SPDX-License-Identifier: BSD-3-Clause */
/* Which messages of a peer go on (channel.c). */
#ifndef FABRIC_UDP_CHANNEL_H
#define FABRIC_UDP_CHANNEL_H

#include "fabric/udp/udp.h"

/* udp_take() goes on with what a peer has sent; true if anything moved. */
bool udp_take(struct udp_peer *);
/* udp_state() is what is under way, of enum rx_state; RX_BUSY also while anything is staged. */
unsigned udp_state(const struct udp_peer *);
/* Whether the next poll should look at it though nothing comes. */
bool udp_wants_poll(const struct udp_peer *);
/* udp_cut() ends messages in progress of which no more will come. */
void udp_cut(struct udp_peer *);

#endif
