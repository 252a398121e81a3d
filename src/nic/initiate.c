/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's side of an operation, until it has left; answer.c has its end.
 *
 *   request ──► sent at once ──────────────► left ──► answered ──► ended
 *         └───► waits for its turn or room ──┘
 *
 * `left`: its buffer is free and SEND was posted. `answered`: ACK or REPLY was posted.
 * An operation that wants no answer ends when it has left; one that is small and
 * leaves at once never becomes a struct op. Operations for one peer are sent
 * in the order of their requests.
 */
#include "nic/initiate.h"

#include "nic/answer.h"
#include "nic/peer.h"
#include "nic/self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void request_left(const struct request *r, ptl_ni_fail_t fail)
{
    request_tell_left(r, fail);
}

size_t request_operand_size(const struct request *r)
{
    return r->kind == OP_FETCH ? atomic_operand_size(r->op, r->datatype) : 0;
}

static void fill_tx(struct ni *ni, const struct request *r, uint32_t cookie, struct fabric_tx *tx)
{
    struct message *m = (struct message *)tx->header;
    request_head(ni, r, cookie, m);
    m->silent = r->md != NULL && (r->md->options & PTL_MD_UNORDERED) != 0;
    tx->base = r->memory.base;
    tx->vector = r->memory.vector;
    tx->skip = r->memory.skip;
    tx->length = request_sends(r) ? r->length : 0;
    tx->fault = FABRIC_OK;
    tx->at_once = false;
    tx->from = r->origin == FROM_PROGRAM   ? FABRIC_FROM_PROGRAM
               : r->origin == FROM_TRIGGER ? FABRIC_FROM_HOST
               : r->le != NULL             ? FABRIC_FROM_HANDLER_HOST
                                           : FABRIC_FROM_HANDLER;
}

void op_left(struct op *op, ptl_ni_fail_t fail)
{
    op->left = true;
    if (op->ni != NULL && request_sends(&op->request)) {
        request_left(&op->request, fail);
    }
    if (unlikely(op->request.owned != NULL) && !op->fabric_has) { /* else op_end() frees it */
        free(op->request.owned);
        op->request.owned = NULL;
    }
    if (!op->expects) {
        op_end(op);
    }
}

bool op_hand_over(struct op *op, enum fabric_class class)
{
    struct nic_peer *peer = op->peer;
    switch (peer->ops->send(peer->fabric, class, &op->tx)) {
    case FABRIC_FULL:
        return false;
    case FABRIC_QUEUED:
        op->fabric_has = true;
        break;
    case FABRIC_SENT:
        break;
    }
    COUNT_PATH(send_op);
    op->counted = op->expects;
    peer->outstanding += op->counted;
    if (op->fabric_has) {
        return true;
    }
    op_left(op, (ptl_ni_fail_t)op->tx.fault);
    return true;
}

bool op_send(struct op *op)
{
    struct nic_peer *peer = op->peer;
    return peer->fabric != NULL && (!op->expects || may_ask(peer)) &&
           op_hand_over(op, FABRIC_REQUEST);
}

int request_own(struct request *r)
{
    r->owned = malloc(r->length != 0 ? r->length : 1);
    if (r->owned == NULL) {
        return PTL_NO_SPACE;
    }
    if (memory_read(r->owned, &r->memory, r->length) != 0) {
        free(r->owned);
        r->owned = NULL;
        return -EFAULT;
    }
    r->memory = (struct memory){r->owned, NULL, 0};
    return PTL_OK;
}

/* The program may write to the buffer of a volatile MD as soon as the call returns. So a request up
 * to max_volatile_size that does not leave at once is copied. A source that cannot be read stays
 * where it is: the fabric will find that out and report it. False: no memory. */
static bool keep_volatile(struct ni *ni, struct request *r)
{
    bool keeps = r->md != NULL && (r->md->options & PTL_MD_VOLATILE) != 0 && request_sends(r) &&
                 r->origin == FROM_PROGRAM && r->length <= ni->limits.max_volatile_size;
    return !keeps || request_own(r) != PTL_NO_SPACE;
}

bool op_take_place(struct op *op)
{
    struct nic_peer *peer = op->peer;
    enum share_kind kind = request_share(&op->request);
    op->share = share_take(&peer->nic->shares[kind], &peer->places[kind], op->request.context);
    return op->share != NULL;
}

/* Has an operation wait for its turn at its peer; false: no memory. */
static bool enqueue(struct op *op)
{
    struct nic_peer *peer = op->peer;
    if (op->request.origin == FROM_HANDLER && !op_take_place(op)) {
        return false;
    }
    peer->nic->queued_program += op->request.origin == FROM_PROGRAM;
    list_push_back(&peer->waiting, &op->link);
    peer_rouse(peer);
    return true;
}

/* Copies the payload of a swap: its operand, and behind that the data. */
static void stage_operand(struct op *op)
{
    const struct request *r = &op->request;
    size_t size = request_operand_size(r);
    memcpy(op->staged, r->operand, size);
    op->tx.base = op->staged;
    op->tx.vector = NULL;
    op->tx.length = size + r->length;
    if (memory_read(op->staged + size, &r->memory, r->length) != 0) {
        op->tx.length = 0;
        op->tx.fault = FABRIC_SEGV;
    }
}

enum fabric_short request_send_whole(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    struct fabric_tx tx;
    fill_tx(ni, r, 0, &tx);
    tx.at_once = true;
    if (peer->ops->send(peer->fabric, FABRIC_REQUEST, &tx) != FABRIC_SENT) {
        return SHORT_FULL;
    }
    return tx.fault == FABRIC_OK ? SHORT_SENT : SHORT_UNREADABLE;
}

/* Starts a request, of the program, a trigger or a handler, if all its data can leave at once;
 * false: nothing was done. */
static bool leave_now(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    bool left = (peer->self && self_request(ni, peer, r)) ||
                (peer->fabric != NULL && submit(ni->nic, ni, peer, r, false));
    if (unlikely(left && r->owned != NULL)) {
        free(r->owned);
    }
    return left;
}

bool nic_request_now(struct ni *ni, const struct request *request)
{
    struct nic_peer *peer = peer_resolve(ni, request->target);
    if (peer == NULL) {
        return false;
    }
    return request_expects(request) ? peer->self && self_request(ni, peer, request)
                                    : leave_now(ni, peer, request);
}

__attribute__((cold)) int op_give_up(struct op *op)
{
    op->request.owned = NULL; /* the caller still has to free it */
    op_end(op);
    return PTL_NO_SPACE;
}

struct op *op_new(struct ni *ni, struct nic_peer *peer, const struct request *request)
{
    struct nic *nic = ni->nic;
    if (unlikely(!table_ready(&nic->operations))) {
        return NULL;
    }
    struct op *op = table_take(&nic->operations);
    op_begin(op, ni, peer, request, false);
    op_copy(op, request);
    if (!keep_volatile(ni, &op->request)) {
        op_give_up(op);
        return NULL;
    }
    fill_tx(ni, &op->request, op->expects ? op->slot.handle : 0, &op->tx);
    if (request_operand_size(request) != 0) {
        stage_operand(op);
    }
    return op;
}

int nic_request(struct ni *ni, const struct request *request)
{
    struct nic_peer *peer = peer_resolve(ni, request->target);
    if (unlikely(peer == NULL)) {
        return PTL_NO_SPACE;
    }
    if (leave_now(ni, peer, request)) {
        if (request->origin == FROM_TRIGGER && !peer->self) {
            COUNT_PATH(trigger_straight);
        }
        return PTL_OK;
    }
    struct op *op = op_new(ni, peer, request);
    if (unlikely(op == NULL)) {
        return PTL_NO_SPACE;
    }
    bool waits = peer->fabric == NULL || !list_empty(&peer->waiting) || !op_send(op);
    if (waits && !enqueue(op)) {
        return op_give_up(op);
    }
    request_count(ni->nic, request);
    return PTL_OK;
}
