/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a stream (receive.c). */
#ifndef FABRIC_UDP_RECEIVE_H
#define FABRIC_UDP_RECEIVE_H

#include "fabric/udp/udp.h"

extern const struct rx_source_ops udp_source;
/* udp_stream_take_first() takes messages of the first stream of a channel; udp_stream_take_behind()
 * goes on, as far as it may, with the message that is in progress in another stream, or begins
 * there. True if anything has moved. */
bool udp_stream_take_first(struct udp_peer *, struct udp_stream *);
bool udp_stream_take_behind(struct udp_peer *, struct udp_stream *);

#endif
