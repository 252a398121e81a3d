/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a channel side by side (stream.c). */
#ifndef FABRIC_UDP_STREAM_H
#define FABRIC_UDP_STREAM_H

#include "fabric/udp/udp.h"

void udp_channel_init(struct udp_channel *, const struct rx_source *, enum fabric_class);
void udp_channel_free(struct udp_fabric *, struct udp_channel *);
static inline struct udp_stream *udp_stream_first(const struct udp_channel *c)
{
    return container_of(c->streams.next, struct udp_stream, link);
}
static inline struct udp_stream *udp_stream_last(const struct udp_channel *c)
{
    return container_of(c->streams.prev, struct udp_stream, link);
}
/* udp_stream_behind() is the stream behind another one, NULL behind the last. */
static inline struct udp_stream *udp_stream_behind(const struct udp_channel *c,
                                                   const struct udp_stream *l)
{
    return l->link.next == &c->streams ? NULL : container_of(l->link.next, struct udp_stream, link);
}
static inline bool udp_stream_alone(const struct udp_channel *c)
{
    return c->streams.next == c->streams.prev;
}
/* udp_stream_begin() finds a stream for a message that begins; NULL: there is none. */
struct udp_stream *udp_stream_begin(struct udp_channel *);
/* udp_stream_split() gives what is behind the message in progress a stream of its own, if it can;
 * false: something is behind it still. */
bool udp_stream_split(struct udp_channel *, struct udp_stream *);
/* udp_stream_retire() puts the first stream away if nothing comes there any more and others do. */
bool udp_stream_retire(struct udp_fabric *, struct udp_channel *);
/* udp_stream_most() is how many pieces a stream takes. */
static inline unsigned udp_stream_most(const struct udp_channel *c, const struct udp_stream *l)
{
    return l == udp_stream_first(c) ? STAGED_MOST : STAGED_BEHIND;
}

#endif
