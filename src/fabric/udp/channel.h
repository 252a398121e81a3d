/* SPDX-License-Identifier: BSD-3-Clause */
/* How the messages of a peer go on (channel.c). */
#ifndef FABRIC_UDP_CHANNEL_H
#define FABRIC_UDP_CHANNEL_H

#include "fabric/udp/udp.h"

/* udp_take() takes messages of a peer, and goes on with those in progress; true if anything has
 * moved. */
bool udp_take(struct udp_peer *);
/* udp_state() returns the state of a peer's messages, of enum rx_state; RX_BUSY also while any
 * piece is staged. */
unsigned udp_state(const struct udp_peer *);
/* udp_wants_poll() says whether the next poll must look at a peer even if no packet comes. */
bool udp_wants_poll(const struct udp_peer *);
/* udp_cut() ends the messages in progress of a peer from which no more will come. */
void udp_cut(struct udp_peer *);

#endif
