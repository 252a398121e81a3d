/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks, at whose rings no poll looks before it is told of one (asks.c). */
#ifndef FABRIC_SHM_ASKS_H
#define FABRIC_SHM_ASKS_H

#include "fabric/shm/shm.h"

/* asks_tell() tells a peer that we have asked. */
void asks_tell(struct shm_peer *p);
/* asks_attend() has polls look at the asks of a peer until they are done with; asks_note() those of
 * all who have told us that they asked. */
void asks_attend(struct shm_peer *p);
void asks_note(struct shm_fabric *f);
/* asks_poll() takes asks; true if anything moved. */
bool asks_poll(struct shm_fabric *f);

#endif
