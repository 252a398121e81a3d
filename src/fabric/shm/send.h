/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a channel: records in its ring, and who is told of them (send.c). */
#ifndef FABRIC_SHM_SEND_H
#define FABRIC_SHM_SEND_H

#include "fabric/shm/shm.h"

/* tx_allocate() takes the memory that the channels into a segment need, false if it is short;
 * tx_free() gives it back. */
bool tx_allocate(struct shm_peer *p, const struct segment_info *g);
void tx_free(struct shm_peer *p);
/* tx_attach() has the channels write to `slot` of the peer's segment; tx_stop() keeps further
 * messages from leaving. */
void tx_attach(struct shm_peer *p, struct slot *slot);
void tx_stop(struct shm_peer *p);
enum fabric_send shm_send(struct fabric_peer *p, enum fabric_class class, struct fabric_tx *tx);
enum fabric_short shm_send_short(struct fabric_peer *p, enum fabric_class class, const void *header,
                                 const void *payload, size_t length);
enum fabric_short shm_send_line(struct fabric_peer *p, enum fabric_class class,
                                const struct fabric_line *line, size_t length);
void shm_foresend(struct fabric_peer *p);
/* shm_signal() signals to the peer that memory which it watches has changed. */
void shm_signal(struct shm_peer *p);
/* shm_ring() wakes the owner of a segment, whose doorbell was found ASLEEP. False: the system has
 * refused, which was logged. */
bool shm_ring(struct shm_fabric *f, struct segment *s, uint32_t doorbell);

/* tx_refresh_head() reads how far the peer has taken records out. */
void tx_refresh_head(struct shm_peer *p, struct tx_channel *t);
/* tx_make_room() does so if tx_crowded() finds no room; false: there still is none. */
bool tx_make_room(struct shm_peer *p, struct tx_channel *t, uint64_t lines);
/* tx_watch() has polls watch whether the peer makes room. */
void tx_watch(struct shm_peer *p, struct tx_channel *t);

#endif
