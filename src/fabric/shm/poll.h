/* SPDX-License-Identifier: BSD-3-Clause */
/* The looks for what peers have sent (poll.c). */
#ifndef FABRIC_SHM_POLL_H
#define FABRIC_SHM_POLL_H

#include "fabric/shm/shm.h"

/* shm_listen() has the rings of a peer looked at by every poll until
 * shm_ignore(); `known` holds its bit meanwhile. */
void shm_listen(struct shm_fabric *f, struct shm_peer *p);
void shm_ignore(struct shm_fabric *f, struct shm_peer *p);
bool shm_poll(struct fabric *f);
bool shm_peek(struct fabric *f);
void shm_foresee(struct fabric *f);

#endif
