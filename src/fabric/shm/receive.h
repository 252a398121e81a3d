/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of a channel: records of its ring (receive.c). */
#ifndef FABRIC_SHM_RECEIVE_H
#define FABRIC_SHM_RECEIVE_H

#include "fabric/shm/shm.h"

/* shm_rx_prepare() sets up the channels of a peer that has no slot in this NIC's segment, so that
 * no record appears there. shm_rx_attach() makes them consume from `slot`. */
void shm_rx_prepare(struct shm_peer *p);
void shm_rx_attach(struct shm_peer *p, struct slot *slot);
/* shm_rx_announce() keeps in `next`, by class, where peek() looks for the next records of a peer's
 * channels; NULL ends that. */
void shm_rx_announce(struct shm_peer *p, _Atomic uintptr_t *next);
/* shm_rx_advance() takes responses and requests; true if anything has moved. shm_rx_asks() takes
 * asks, and before them responses; shm_rx_asked() says whether there are asks to be taken or gone
 * on with. */
bool shm_rx_advance(struct shm_peer *p);
bool shm_rx_asks(struct shm_peer *p);
bool shm_rx_asked(const struct shm_peer *p);
/* shm_rx_visible() says whether the peer has published a record that was not taken. */
bool shm_rx_visible(struct shm_peer *p);
/* shm_rx_state() returns the state of the peer's messages, of enum rx_state. RX_OURS includes a
 * message that waits for its sender. RX_AWAITS: a message can go on as soon as its sender fills a
 * cell, which the sender does not signal to a NIC that polls. */
unsigned shm_rx_state(const struct shm_peer *p);
/* shm_rx_cut() ends a torn message as UNDELIVERABLE. */
void shm_rx_cut(struct shm_peer *p);

#endif
