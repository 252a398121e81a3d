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

bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    uint8_t payload[ATOMIC_OPERAND + SELF_MAX];
    size_t operand = request_operand_size(r);
    struct rx *rx = may_go(ni, peer, r) ? self_rx(ni->nic, peer) : NULL;
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
