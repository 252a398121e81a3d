/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a NIC to itself (self.c). */
#ifndef NIC_SELF_H
#define NIC_SELF_H

#include "nic/rx.h"

/* self_request() carries out a request to oneself, with all that follows from it, if that can be
 * done at once; false: nothing was done. */
bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r);
void self_free(struct nic *nic);
/* self_answer() posts SEND, and copies the data that a message to oneself fetches. */
void self_answer(struct rx *rx);

#endif
