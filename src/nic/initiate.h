/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight way of a request, for the calls to have inline: what most requests are is known
 * where they are called, and stays in registers.
 *
 *   nic_request_straight()   the peer is met, nothing waits for it, one line of its ring holds all
 *   nic_request()            all others
 *
 * Both are made of the same steps, which are here; the straight way is the other one with its
 * questions answered: nothing is queued, lent to the fabric, or kept but what the answer needs.
 */
#ifndef NIC_INITIATE_H
#define NIC_INITIATE_H

#include "base/paths.h"
#include "nic/message.h"
#include "nic/nic.h"

/* ---- what the program sees ---- */

/* Posts and counts SEND. */
static inline __attribute__((always_inline)) void request_tell_left(const struct request *r,
                                                                    ptl_ni_fail_t fail)
{
    unsigned options = request_send_options(r);
    if (rare((options & PTL_MD_EVENT_CT_SEND) != 0)) {
        ct_count(r->md->ct, fail, (options & PTL_MD_EVENT_CT_BYTES) != 0, r->length);
    }
    if ((options & PTL_MD_EVENT_SEND_DISABLE) != 0 ||
        (fail == PTL_NI_OK && (options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0)) {
        return;
    }
    struct eq_ref eq = r->md != NULL ? r->md->eq : r->eq;
    if (usual(eq_ref_alive(eq))) {
        request_event(eq.eq, PTL_EVENT_SEND, r, fail, r->length, r->remote_offset, 0);
    }
}

/* ---- its message ---- */

_Static_assert(MESSAGE_PUT + OP_GET == MESSAGE_GET && MESSAGE_PUT + OP_ATOMIC == MESSAGE_ATOMIC &&
                   MESSAGE_PUT + OP_FETCH == MESSAGE_FETCH,
               "requests and their messages come in one order");

static inline __attribute__((always_inline)) void
request_head(const struct ni *ni, const struct request *r, uint32_t cookie, struct message *m)
{
    struct message begin = {
        .type = (uint8_t)(MESSAGE_PUT + r->kind),
        .ni = (uint8_t)ni->kind,
        .ack = r->ack,
        .pt_index = (uint16_t)r->pt_index,
        .op = r->op,
        .datatype = r->datatype,
        .cookie = cookie,
        .rank = ni->rank,
    };
    message_begin(m, &begin);
    m->length = r->length;
    m->match_bits = r->match_bits;
    m->hdr_data = r->hdr_data;
    m->remote_offset = r->remote_offset;
}

static inline __attribute__((always_inline)) void request_count(struct nic *nic,
                                                                const struct request *r)
{
    board_count(nic->board->sent, &nic->board->sent_bytes, (enum board_movement)r->kind, r->length);
}

/* ---- its operation ---- */

/* The peer may be asked for one more response. */
static inline bool may_ask(const struct nic_peer *peer)
{
    return peer->outstanding < peer->outstanding_most;
}

/* Makes an operation of a request: all before its copy is set here. One that has left is answered
 * next. */
static inline __attribute__((always_inline)) void
op_begin(struct op *op, struct ni *ni, struct nic_peer *peer, const struct request *r, bool left)
{
    op->ni = ni;
    op->peer = peer;
    op->left = left;
    op->fabric_has = false;
    op->expects = request_expects(r);
    op->counted = left && op->expects;
    peer->outstanding += op->counted;
    list_init(&op->link);
    op->tx.vector = NULL; /* cut_off() looks at it */
    ni->in_flight++;
    if (usual(r->md != NULL)) {
        r->md->users++;
    }
    if (r->kind == OP_FETCH && r->origin != FROM_HANDLER) {
        r->get_md->users++;
    }
}

/* Keeps of a request of the program whose data have left what its answer, and the events of that,
 * ask for. */
static inline __attribute__((always_inline)) void op_keep(struct op *op, const struct request *r)
{
    struct request *to = &op->request;
    to->kind = r->kind;
    to->origin = r->origin;
    to->md = r->md;
    to->get_md = NULL;
    to->length = r->length;
    to->ack = r->ack;
    to->remote_offset = r->remote_offset;
    to->user_ptr = r->user_ptr;
    to->owned = r->owned;
    if (r->kind == OP_GET) {
        to->memory = r->memory;
    } else if (r->kind == OP_FETCH) {
        to->get_md = r->get_md;
        to->get_memory = r->get_memory;
    }
}

/* Sends a request whose payload fits a line; SHORT_UNREADABLE: that cannot be read, and nothing
 * has left. The cookie is 0 for one that expects nothing. */
static inline __attribute__((always_inline)) enum fabric_short
request_send_line(const struct ni *ni, struct nic_peer *peer, const struct request *r,
                  uint32_t cookie)
{
    struct {
        struct message m;
        uint64_t payload;
    } line;
    _Static_assert(sizeof(line) == sizeof(struct fabric_line) &&
                       offsetof(struct fabric_line, payload) == sizeof(struct message),
                   "it is a fabric_line");
    size_t length = request_sends(r) ? r->length : 0;
    request_head(ni, r, cookie, &line.m);
    if (request_sends(r)) {
        line.payload = 0;
        if (rare(nic_copy(&line.payload, r->memory.base, length) != 0)) {
            return SHORT_UNREADABLE;
        }
    }
    return peer->ops->send_line(peer->fabric, FABRIC_REQUEST, (const struct fabric_line *)&line,
                                length);
}

/* ---- the straight way ---- */

/* Who sent an answer last, and now a request: its line is fetched while that is made. */
static inline void peer_foresend(struct nic_peer *peer)
{
    if (peer->acked) {
        peer->acked = false;
        if (peer->ops->foresend != NULL) {
            peer->ops->foresend(peer->fabric);
        }
    }
}

/* Starts a request of the program, or one that was triggered, to a peer that is met, if it can go
 * straight; false: nothing was done. The lock is held. */
static inline __attribute__((always_inline)) bool
nic_request_straight(struct nic *nic, struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    if (rare(peer->staged || !list_empty(&peer->waiting) || r->memory.vector != NULL ||
             (request_sends(r) && r->length > FABRIC_LINE_PAYLOAD) ||
             (r->kind == OP_FETCH && atomic_operand_size(r->op, r->datatype) != 0))) {
        return false;
    }
    peer_foresend(peer);
    if (!request_expects(r)) {
        if (rare(request_send_line(ni, peer, r, 0) != SHORT_SENT)) {
            return false;
        }
        COUNT_PATH(send_straight);
        request_count(nic, r);
        request_tell_left(r, PTL_NI_OK);
        return true;
    }
    if (rare(!may_ask(peer) || !table_ready(&nic->operations))) {
        return false;
    }
    struct op *op = table_take(&nic->operations);
    /* The operation is made behind the message's back: who waits for it need not wait for that. */
    if (rare(request_send_line(ni, peer, r, op->slot.handle) != SHORT_SENT)) {
        table_drop(&nic->operations, op);
        return false;
    }
    COUNT_PATH(send_straight_op);
    op_begin(op, ni, peer, r, true);
    op_keep(op, r);
    request_count(nic, r);
    if (request_sends(r)) {
        request_tell_left(r, PTL_NI_OK);
    }
    return true;
}

#endif
