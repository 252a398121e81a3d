/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks: operations of handlers that fetch data from other ranks (ask.c). */
#ifndef NIC_ASK_H
#define NIC_ASK_H

#include "nic/objects.h"

/* nic_ask() starts an ask of a handler, as nic_request() starts other operations; the caller holds
 * the NIC's lock. `*made` is valid until the ask is answered. */
int nic_ask(struct ni *ni, const struct request *request, struct op **made);
/* ask_withdraw() tells the target of an unanswered ask that the handler waits for it no more. An
 * ask that has not left ends at once, with FAIL_WITHDRAWN. False: the response channel to the peer
 * is full, and the caller tries again. */
bool ask_withdraw(struct op *op);
/* asks_send() sends the asks that wait for a peer, as far as its ring has room and ASKS_MOST
 * allows; it returns whether any left. */
bool asks_send(struct nic_peer *p);
/* ask_give_place() gives back the place that a waiting ask has taken among those of its peer
 * (share.h). */
void ask_give_place(struct op *op);

/* At the target: asks_note_withdrawn() notes that the initiator has withdrawn the ask of this
 * number, ask_is_withdrawn() says whether that is the ask whose turn it is, and ask_decided()
 * counts that one as decided. */
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
