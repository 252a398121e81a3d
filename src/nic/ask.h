/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers ask of others (ask.c). */
#ifndef NIC_ASK_H
#define NIC_ASK_H

#include "nic/objects.h"

/* nic_ask() starts an operation of a handler that fetches, as nic_request() does others; lock
 * held. */
int nic_ask(struct ni *ni, const struct request *request);
/* asks_send() sends the asks that wait for a peer, as far as there is room; true if any went. */
bool asks_send(struct nic_peer *p);
/* ask_give_place() gives back what an ask that waits has taken of its peer's places (share.h). */
void ask_give_place(struct op *op);

#endif
