/* SPDX-License-Identifier: BSD-3-Clause */
/* How the receiver finds what peers have sent (poll.c). */
#ifndef FABRIC_SHM_POLL_H
#define FABRIC_SHM_POLL_H

#include "fabric/shm/shm.h"

/* shm_listen() has every poll look at the rings of a peer until shm_ignore(); its bit is in `known`
 * meanwhile. */
void shm_listen(struct shm_fabric *f, struct shm_peer *p);
void shm_ignore(struct shm_fabric *f, struct shm_peer *p);
bool shm_poll(struct fabric *f);
bool shm_peek(struct fabric *f);
void shm_foresee(struct fabric *f);

#endif
