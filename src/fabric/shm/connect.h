/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection begins (connect.c). */
#ifndef FABRIC_SHM_CONNECT_H
#define FABRIC_SHM_CONNECT_H

#include "fabric/shm/shm.h"

enum fabric_connect shm_connect(struct fabric *f, uint32_t nid, uint32_t pid, struct reason *why);
/* accept_slot() accepts the claimant of a slot whose bit is set for the first time; NULL if it has
 * none that can be used. */
struct shm_peer *accept_slot(struct shm_fabric *f, unsigned index);
/* accept_rest() is for a segment that was closed: it accepts the slots that were claimed before,
 * but whose bit was not seen. A sender that claims one later sees that the segment is closed. */
void accept_rest(struct shm_fabric *f);

#endif
