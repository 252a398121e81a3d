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
/* udp_stream_behind() returns the stream after another one, NULL after the last. */
static inline struct udp_stream *udp_stream_behind(const struct udp_channel *c,
                                                   const struct udp_stream *l)
{
    return l->link.next == &c->streams ? NULL : container_of(l->link.next, struct udp_stream, link);
}
static inline bool udp_stream_alone(const struct udp_channel *c)
{
    return c->streams.next == c->streams.prev;
}
/* udp_stream_begin() returns a stream for a message that begins; NULL: none is free. */
struct udp_stream *udp_stream_begin(struct udp_channel *);
/* udp_stream_split() moves the messages behind the one in progress to a stream of their own; false:
 * no stream is free, and some are still behind it. */
bool udp_stream_split(struct udp_channel *, struct udp_stream *);
/* udp_stream_retire() frees the first stream if it is empty and will get no more, and there are
 * others. */
bool udp_stream_retire(struct udp_fabric *, struct udp_channel *);
/* udp_stream_most() returns how many pieces a stream may have. */
static inline unsigned udp_stream_most(const struct udp_channel *c, const struct udp_stream *l)
{
    return l == udp_stream_first(c) ? STAGED_MOST : STAGED_BEHIND;
}

#endif
