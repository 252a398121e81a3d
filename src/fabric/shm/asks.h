/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks: polls look at their rings only when the sender has flagged some (asks.c). */
#ifndef FABRIC_SHM_ASKS_H
#define FABRIC_SHM_ASKS_H

#include "fabric/shm/shm.h"

/* asks_tell() flags to a peer that this NIC has sent it an ask. */
void asks_tell(struct shm_peer *p);
/* asks_attend() has polls look at the asks of a peer until none is left; asks_note() does so for
 * all peers that have flagged some. */
void asks_attend(struct shm_peer *p);
void asks_note(struct shm_fabric *f);
/* asks_poll() takes asks; true if anything has moved. */
bool asks_poll(struct shm_fabric *f);

#endif
