/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a channel: records of its ring (receive.c). */
#ifndef FABRIC_SHM_RECEIVE_H
#define FABRIC_SHM_RECEIVE_H

#include "fabric/shm/shm.h"

/* shm_rx_prepare() makes the channels of a peer that has no slot with us: nothing comes there.
 * shm_rx_attach() makes them consume from `slot` of our segment. */
void shm_rx_prepare(struct shm_peer *p);
void shm_rx_attach(struct shm_peer *p, struct slot *slot);
/* shm_rx_announce() says from now on in `next`, by class, where peek() finds the next records of a
 * peer's channels; with NULL nobody is told any more. */
void shm_rx_announce(struct shm_peer *p, _Atomic uintptr_t *next);
/* shm_rx_advance() takes responses and requests; true if anything moved. shm_rx_asks() takes asks,
 * and before them responses; shm_rx_asked() tells whether it has more to do. */
bool shm_rx_advance(struct shm_peer *p);
bool shm_rx_asks(struct shm_peer *p);
bool shm_rx_asked(const struct shm_peer *p);
/* shm_rx_visible() tells whether the peer has published something for us. */
bool shm_rx_visible(struct shm_peer *p);
/* shm_rx_state() is what is under way, of enum rx_state: RX_OURS is also a message that waits for
 * its sender; RX_AWAITS one that could go on as soon as its sender fills a cell, of which nobody is
 * told while we poll. */
unsigned shm_rx_state(const struct shm_peer *p);
/* shm_rx_cut() ends a torn message as UNDELIVERABLE. */
void shm_rx_cut(struct shm_peer *p);

#endif
