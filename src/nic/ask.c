/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks: operations by which a handler fetches data, and for whose answer it waits. Meanwhile the
 * handler's message holds up those behind it in its channel; so an ask must overtake requests. It
 * has a class of its own (fabric.h), and at its initiator a list of its own, apart from the
 * operations of the program and from what handlers put. Invariant set 2 has the argument.
 *
 *   nic_ask() ──► peer->asks ──► FABRIC_ASK ──► target ──► FABRIC_RESPONSE ──► op_response()
 *
 * Asks of one peer leave in the order in which they were made, and ASKS_MOST at a time: more would
 * only wait in the ring of the target. Both ends count them, so each has a number.
 *
 * A handler whose time is up withdraws its ask. If the ask has not left, it just ends. Otherwise
 * the initiator tells the target so by a response, which nothing holds up:
 *
 *   decided     the target has done or refused the ask, or its handlers have it: the answer comes
 *   not yet     the target sets the ask's bit, and in its turn answers FAIL_WITHDRAWN instead
 *
 * So each ask has one answer: it was done, or it was not. A handler that gets none after the same
 * time once more cannot know which: the peer is dead or stopped, or its handlers have the ask.
 */
#include "nic/ask.h"

#include "nic/answer.h"
#include "nic/initiate.h"
#include "nic/peer.h"

#define ASKS_MOST 64

void ask_give_place(struct op *op)
{
    if (op->share != NULL) {
        share_give(op->share);
        op->share = NULL;
    }
}

bool asks_send(struct nic_peer *p)
{
    bool sent = false;
    while (p->fabric != NULL && p->asking < ASKS_MOST && !list_empty(&p->asks)) {
        struct op *op = LIST_POP(struct op, &p->asks, link);
        if (!op_hand_over(op, FABRIC_ASK)) {
            list_insert_after(&p->asks, &op->link);
            break;
        }
        ask_give_place(op);
        op->number = p->asks_sent++;
        p->asking++;
        sent = true;
    }
    return sent;
}

int nic_ask(struct ni *ni, const struct request *request, struct op **made)
{
    struct nic_peer *peer = peer_resolve(ni, request->target);
    struct op *op = peer != NULL ? op_new(ni, peer, request) : NULL;
    if (op == NULL) {
        return PTL_NO_SPACE;
    }
    op->share = NULL;
    op->withdrawn = false;
    /* A handler does not wait for an ask that fetches into an entry: so such an ask takes a place
     * of its peer's, and holds it until it leaves. */
    if (request->answer == NULL && !op_take_place(op)) {
        return op_give_up(op);
    }
    *made = op;
    request_count(ni->nic, request);
    list_push_back(&peer->asks, &op->link);
    asks_send(peer);
    if (!list_empty(&peer->asks)) {
        peer_rouse(peer);
    }
    return PTL_OK;
}

bool ask_withdraw(struct op *op)
{
    struct nic_peer *p = op->peer;
    if (!op->counted) {
        list_remove(&op->link);
        peer_rest(p);
        op_fail(op, FAIL_WITHDRAWN);
        return true;
    }
    _Alignas(8) struct message m = {.type = MESSAGE_WITHDRAW, .match_bits = op->number};
    op->withdrawn = p->ops->send_short(p->fabric, FABRIC_RESPONSE, &m, NULL, 0) != SHORT_FULL;
    return op->withdrawn;
}

void asks_note_withdrawn(struct nic_peer *p, uint64_t number)
{
    uint64_t ahead = number - p->asks_taken;
    if (ahead < ASKS_MOST) {
        p->asks_withdrawn |= UINT64_C(1) << ahead;
    } else if (p->asks_taken - number > ASKS_MOST) {
        /* The number is neither that of an ask that may still come, nor of one that was decided
         * lately. */
        p->nic->stats->malformed++;
    }
}
