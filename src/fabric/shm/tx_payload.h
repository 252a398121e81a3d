/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a channel: payload that no record of the ring holds (tx_payload.c). */
#ifndef FABRIC_SHM_TX_PAYLOAD_H
#define FABRIC_SHM_TX_PAYLOAD_H

#include "fabric/shm/shm.h"

/* tx_advance() fills cells, gives back what the peer has taken; true if it did. */
bool tx_advance(struct shm_peer *p);
/* tx_under_way() is true while a payload is on its way, in cells or by reference. */
static inline bool tx_under_way(const struct tx_channel *t)
{
    return !list_empty(&t->filling) || !list_empty(&t->referred);
}
/* tx_pending() is true while a tx of ours waits for the peer. */
bool tx_pending(const struct shm_peer *p);
/* tx_flows() tells whether the peer has emptied cells since we last looked. */
bool tx_flows(struct shm_peer *p);
/* tx_has_room() tells whether the peer made room since we found none. */
bool tx_has_room(struct shm_peer *p);
/* tx_cancel() gives every tx back as UNDELIVERABLE. */
void tx_cancel(struct shm_peer *p);

/* tx_send_long() sends what no record can hold. */
enum fabric_send tx_send_long(struct shm_peer *p, struct tx_channel *t, struct fabric_tx *tx);

#endif
