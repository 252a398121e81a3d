/* SPDX-License-Identifier: BSD-3-Clause */
/* Receipt from the engine, in pieces (stage.c). */
#ifndef FABRIC_UDP_STAGE_H
#define FABRIC_UDP_STAGE_H

#include "fabric/udp/udp.h"

/* Upcalls of the engine. */
enum slmp_step udp_begin(void *fabric, struct slmp_incoming *, const void *first, size_t length);
enum slmp_step udp_data(void *fabric, struct slmp_incoming *, uint64_t offset, const void *bytes,
                        size_t length);
void udp_done(void *fabric, struct slmp_incoming *, enum slmp_status);
/* udp_receive() gives the engine the packets of one look at the socket; false: there were none.
 * `more`: several datagrams were joined, and others may wait. */
bool udp_receive(struct udp_fabric *, int64_t now, bool *more);
struct udp_memory *udp_memory_new(size_t bytes);
void udp_memory_drop(struct udp_fabric *, struct udp_memory *);
void udp_piece_drop(struct udp_fabric *, struct udp_stream *);
/* udp_stream_clear() drops the pieces of a stream, but not its message in progress. */
void udp_stream_clear(struct udp_fabric *, struct udp_stream *);
void udp_memories_free(struct udp_fabric *);

#endif
