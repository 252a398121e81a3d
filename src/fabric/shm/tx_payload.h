/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a channel: payloads that do not fit a record of the ring (tx_payload.c). */
#ifndef FABRIC_SHM_TX_PAYLOAD_H
#define FABRIC_SHM_TX_PAYLOAD_H

#include "fabric/shm/shm.h"

/* tx_advance() fills cells, and gives back each tx that the peer has taken; true if it did any of
 * this. */
bool tx_advance(struct shm_peer *p);
/* tx_under_way() says whether a payload is on its way, through cells or by reference. */
static inline bool tx_under_way(const struct tx_channel *t)
{
    return !list_empty(&t->filling) || !list_empty(&t->referred);
}
/* tx_pending() says whether a tx waits for the peer. */
bool tx_pending(const struct shm_peer *p);
/* tx_flows() says whether the peer has emptied cells since the last call. */
bool tx_flows(struct shm_peer *p);
/* tx_has_room() says whether the peer has made room since a message found none. */
bool tx_has_room(struct shm_peer *p);
/* tx_cancel() gives back each tx as UNDELIVERABLE. */
void tx_cancel(struct shm_peer *p);

/* tx_send_long() sends a message whose payload does not fit a record. */
enum fabric_send tx_send_long(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx);

#endif
