/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that take more than one step at their receiver (rx_payload.c). */
#ifndef FABRIC_SHM_RX_PAYLOAD_H
#define FABRIC_SHM_RX_PAYLOAD_H

#include "fabric/shm/shm.h"

extern const struct rx_source_ops payload_source;

/* payload_can_move() says whether the machine would find payload to move. */
bool payload_can_move(struct shm_peer *p, struct rx_channel *r);
/* payload_cell() returns a payload that is in one cell, which the sender has filled before the
 * record. NULL: its cell is not known yet, or the sender could not read the payload.
 * payload_taken() notes that the cell is done with. */
const uint8_t *payload_cell(struct shm_peer *p, struct rx_channel *r);
void payload_taken(struct shm_peer *p, struct rx_channel *r);

#endif
