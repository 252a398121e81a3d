/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection begins (connect.c). */
#ifndef FABRIC_SHM_CONNECT_H
#define FABRIC_SHM_CONNECT_H

#include "fabric/shm/shm.h"

enum fabric_connect shm_connect(struct fabric *f, uint32_t nid, uint32_t pid, struct reason *why);
/* accept_slot() serves the first bit of a slot; NULL if nobody usable is there. */
struct shm_peer *accept_slot(struct shm_fabric *f, unsigned index);
/* accept_rest() serves, once the segment is closed, all slots that were claimed before and whose
 * bit nobody has seen: who claims one later sees that the segment is closed. */
void accept_rest(struct shm_fabric *f);

#endif
