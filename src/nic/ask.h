/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers ask of others (ask.c). */
#ifndef NIC_ASK_H
#define NIC_ASK_H

#include "nic/objects.h"

/* nic_ask() starts an operation of a handler that fetches, as nic_request() does others; lock
 * held. The operation lasts until it is answered. */
int nic_ask(struct ni *ni, const struct request *request, struct op **made);
/* ask_withdraw() tells the target of an ask, which was not answered, that nobody waits for it any
 * more. One that has not left ends at once, as FAIL_WITHDRAWN. False: there is no room just now. */
bool ask_withdraw(struct op *op);
/* asks_send() sends the asks that wait for a peer, as far as there is room; true if any went. */
bool asks_send(struct nic_peer *p);
/* ask_give_place() gives back what an ask that waits has taken of its peer's places (share.h). */
void ask_give_place(struct op *op);

/* At the target: asks_note_withdrawn() notes that the ask of this number was withdrawn,
 * ask_is_withdrawn() says whether the next one was, and ask_decided() that it is decided. */
static inline bool ask_is_withdrawn(const struct nic_peer *p)
{
    return (p->asks_withdrawn & 1) != 0;
}
static inline void ask_decided(struct nic_peer *p)
{
    p->asks_taken++;
    p->asks_withdrawn >>= 1;
}
void asks_note_withdrawn(struct nic_peer *p, uint64_t number);

#endif
