/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to oneself (self.c). */
#ifndef NIC_SELF_H
#define NIC_SELF_H

#include "nic/rx.h"

/* self_request() carries out a request to oneself if it can be done at once, with all that
 * follows from it; false: nothing was done. */
bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r);
void self_free(struct nic *nic);
/* self_answer() brings what a message to oneself fetched. */
void self_answer(struct rx *rx);

#endif
