/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on oneself: a small message from a NIC to itself goes through the stages
 * of its receipt at once, in the call that sends it, and needs no fabric.
 *
 * It must not overtake: it takes this way only while nothing of the NIC's own is on the
 * other one, queued or in hand. It must end at once: where entries have handlers, which may
 * wait, it goes the other way, too.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"
#include "nic/atomic.h"

#include <stdlib.h>
#include <string.h>

/* Its payload lies on the stack meanwhile: both ends may be the same memory. */
#define SELF_MAX 1024

static struct rx *self_rx(struct nic *nic, struct nic_peer *peer)
{
    if (nic->self == NULL) {
        nic->self = calloc(1, sizeof(*nic->self));
    }
    struct rx *rx = nic->self;
    if (rx != NULL && rx->peer != peer) { /* one that was lost and found is a new one */
        rx->peer = peer;
        rx->class = FABRIC_REQUEST;
        rx->m = (struct message *)rx->f.header;
    }
    return rx;
}

static bool may_go(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    return r->length <= SELF_MAX && list_empty(&peer->waiting) && list_empty(&peer->detached) &&
           r->pt_index <= (unsigned)ni->limits.max_pt_index &&
           ni->pts[r->pt_index].with_handlers == 0 &&
           (peer->fabric == NULL || !peer->ops->unsent(peer->fabric));
}

/* Whether a message that this entry takes is told by nothing but a count, and leaves it as it is.
 */
static bool is_quiet(const struct pt *pt, const struct le *le)
{
    return le->plain && le->vector.parts == NULL && (le->options & PTL_ME_USE_ONCE) == 0 &&
           (!eq_ref_alive(pt->eq) ||
            (le->options & (PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE)) != 0);
}

/* The entry of an atomic of one element, if it is a quiet one that may take all of it. */
static struct le *find_quiet(struct ni *ni, const struct nic_peer *peer, const struct request *r)
{
    struct pt *pt = &ni->pts[r->pt_index];
    struct match_header header = {.bits = r->match_bits, .nid = peer->nid, .pid = peer->pid};
    if (ni_is_logical(ni)) {
        header.nid = ni->rank;
        header.pid = 0;
    }
    if (!pt->allocated || !pt->enabled || (pt->options & PTL_PT_FLOWCTRL) != 0 ||
        (ni_is_logical(ni) && ni->rank == PTL_RANK_ANY)) {
        return NULL;
    }
    /* Of one that does not truncate, whether it fits is asked here, and not of others. */
    struct match_entry *e = pt->recent != NULL ? &pt->recent->match : NULL;
    if (e == NULL || !match_is_first(&pt->priority, e, &header)) {
        e = match_first(&pt->priority, &header);
    }
    struct le *le = e != NULL ? container_of(e, struct le, match) : NULL;
    bool may = le != NULL && is_quiet(pt, le) && (le->options & PTL_ME_OP_PUT) != 0 &&
               (le->uid == PTL_UID_ANY || le->uid == peer->uid) &&
               r->length <= le_room(le, r->remote_offset);
    return may ? le : NULL;
}

/* An atomic of one element that wants no answer and finds a quiet entry is done on the spot. What
 * fails has changed nothing, and is for the stages to tell. */
static bool atomic_done(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    uint64_t element;
    if (r->length > sizeof(element) || r->length != atomic_size(r->datatype) ||
        request_expects(r) || r->memory.vector != NULL) {
        return false;
    }
    struct le *le = find_quiet(ni, peer, r);
    if (le == NULL || nic_copy(&element, r->memory.base, r->length) != 0 ||
        nic_atomic(memory_at(le->start, r->remote_offset), &element, NULL, NULL, r->length, r->op,
                   r->datatype) != 0) {
        return false;
    }
    struct nic_board *board = ni->nic->board;
    board_count(board->received, &board->received_bytes, BOARD_ATOMIC, r->length);
    if ((le->options & PTL_ME_EVENT_CT_COMM) != 0) {
        ct_count(le->ct, PTL_NI_OK, (le->options & PTL_ME_EVENT_CT_BYTES) != 0, r->length);
    }
    if (!request_is_silent(r)) {
        request_left(r, PTL_NI_OK);
    }
    return true;
}

/* All other messages: through the stages of their receipt. */
static bool through_stages(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    uint8_t payload[ATOMIC_OPERAND + SELF_MAX];
    size_t operand = request_operand_size(r);
    struct rx *rx = self_rx(ni->nic, peer);
    if (rx == NULL) {
        return false;
    }
    if (operand != 0) {
        memcpy(payload, r->operand, operand);
    }
    if (request_sends(r) && memory_read(payload + operand, &r->memory, r->length) != 0) {
        return false; /* the fabric has a way to say so */
    }
    request_message(ni, r, request_expects(r), rx->m);
    rx->local = r;
    rx->f.length = request_sends(r) ? operand + r->length : 0;
    rx->f.torn = false;
    if (rx_short(peer, &rx->f, payload) == RX_FIRST) {
        rx_header(peer, &rx->f);
        rx_done(peer, &rx->f, FABRIC_OK);
    }
    rx->local = NULL;
    if (!request_expects(r) && !request_is_silent(r)) {
        request_left(r, PTL_NI_OK);
    }
    return true;
}

bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    if (!may_go(ni, peer, r)) {
        return false;
    }
    return (r->kind == OP_ATOMIC && atomic_done(ni, peer, r)) || through_stages(ni, peer, r);
}

/* What send_ack() and send_reply() do for others. */
void self_answer(struct rx *rx)
{
    const struct request *r = rx->local;
    if (request_sends(r)) {
        request_left(r, PTL_NI_OK);
    }
    if (request_fetches(r) && rx->fail == PTL_NI_OK) {
        uint8_t data[SELF_MAX];
        struct memory from = {rx->before, NULL, 0};
        if (r->kind == OP_GET) {
            from = le_memory(rx->le, rx->offset);
        }
        if (memory_read(data, &from, rx->mlength) != 0 ||
            memory_write(request_reply_memory(r), data, rx->mlength) != 0) {
            rx->fail = PTL_NI_SEGV;
        }
    }
}

void self_free(struct nic *nic)
{
    if (nic->self != NULL) {
        free(nic->self->before);
        free(nic->self);
    }
}
