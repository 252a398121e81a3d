/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on oneself: a small message from a NIC to itself passes through the stages of its
 * receipt in the call that sends it, without a fabric.
 *
 * It must not overtake: it goes this way only while no other message of the NIC to itself is queued
 * or in progress on the fabric. It must end at once: if the portal table entry has entries with
 * handlers, which may wait, it goes through the fabric, too. A quiet one (quiet.h) does not even
 * need the stages.
 */
#include "nic/self.h"

#include "base/paths.h"
#include "nic/initiate.h"
#include "nic/peer.h"
#include "nic/quiet.h"
#include "nic/receive.h"

#include <stdlib.h>
#include <string.h>

/* The longest payload; it is copied to the stack, since source and destination may overlap. */
#define SELF_MAX 1024

static struct rx *self_rx(struct nic *nic, struct nic_peer *peer)
{
    if (nic->self == NULL) {
        nic->self = calloc(1, sizeof(*nic->self));
    }
    struct rx *rx = nic->self;
    if (rx != NULL && rx->peer != peer) { /* the peer for oneself was freed and made anew */
        rx->peer = peer;
        rx->class = FABRIC_REQUEST;
        rx->m = (struct message *)rx->f.header;
    }
    return rx;
}

/* Whether no message of the NIC to itself is on its way through the fabric, and no answer is due
 * that would come through it. Then self_afar is cleared, until self_request() sends such a message
 * again. */
static bool is_near(struct nic_peer *peer)
{
    struct nic *nic = peer->nic;
    if (likely(!nic->self_afar)) {
        return true;
    }
    if (!nic->fastpath) {
        return false; /* all messages go through the fabric */
    }
    bool near = list_empty(&peer->waiting) && list_empty(&peer->detached) &&
                (peer->fabric == NULL || !peer->ops->unsent(peer->fabric));
    nic->self_afar = !near || peer->outstanding != 0;
    return near;
}

static bool may_go(const struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    const struct pt *pt = ni_pt(ni, r->pt_index);
    return r->length <= SELF_MAX && pt != NULL && pt->with_handlers == 0 && is_near(peer);
}

/* Whether the program learns of a message at this entry by a count only, and the entry stays as it
 * is. */
static bool is_quiet(const struct pt *pt, const struct le *le)
{
    return le->fast && le_lasts(le) &&
           !(eq_ref_alive(pt->eq) && le_wants_event(le, PTL_ME_EVENT_COMM_DISABLE, PTL_NI_OK));
}

struct le *quiet_look_up(struct ni *ni, uint32_t pt_index, uint64_t match_bits)
{
    struct pt *pt = &ni->pts[pt_index];
    struct match_header header = {.bits = match_bits, .nid = ni->nic->nid, .pid = ni->nic->pid};
    if (ni_is_logical(ni)) {
        header.nid = ni->rank;
        header.pid = 0;
    }
    if (!pt_is_open(pt) || (pt->options & PTL_PT_FLOWCTRL) != 0 || pt->with_handlers != 0 ||
        (ni_is_logical(ni) && ni->rank == PTL_RANK_ANY)) {
        return NULL;
    }
    /* The header has no fits(): the caller asks whether the entry holds the operation. */
    const struct match_entry *e = match_first(&pt->priority, &header);
    struct le *le = e != NULL ? container_of(e, struct le, match) : NULL;
    if (le == NULL || !is_quiet(pt, le) ||
        le_permits(le, ni->nic->uid, PTL_ME_OP_PUT) != PTL_NI_OK) {
        return NULL;
    }
    pt->quiet_bits = match_bits;
    pt->quiet_epoch = ni->epoch;
    pt->quiet_entry = le;
    return le;
}

/* Whether a request is a put of QUIET_MAX bytes at the most, or an atomic of one word, and wants no
 * answer. */
static inline bool may_be_quiet(const struct request *r)
{
    bool small = r->kind == OP_PUT ? r->length <= QUIET_MAX
                                   : r->kind == OP_ATOMIC && r->length <= sizeof(uint64_t) &&
                                         r->length == atomic_size(r->datatype);
    return small && !request_expects(r) && r->memory.vector == NULL;
}

bool quiet_make(struct ni *ni, const struct request *r, struct quiet *q)
{
    q->epoch = 0;
    if (!may_be_quiet(r) || ni_pt(ni, r->pt_index) == NULL) {
        return false;
    }
    const struct le *le = quiet_find(ni, r->pt_index, r->match_bits);
    if (le == NULL || !quiet_set(q, le, r->length, r->remote_offset)) {
        return false;
    }
    q->from = r->memory.base;
    if (r->kind == OP_ATOMIC) {
        q->deed.kind = OP_ATOMIC;
        q->deed.op = r->op;
        q->deed.datatype = r->datatype;
        q->deed.instruction = atomic_is_aligned(q->deed.to, r->length)
                                  ? atomic_instruction(r->op, r->datatype, r->length)
                                  : NULL;
    }
    return true;
}

/* Does a request at once if it is quiet (quiet.h); false: nothing was done. */
static bool quietly_done(struct ni *ni, const struct request *r)
{
    struct quiet q;
    if (!quiet_make(ni, r, &q) || !quiet_send(ni->nic, &q)) {
        return false;
    }
    COUNT_PATH(self_quiet);
    if (!request_is_silent(r)) {
        request_left(r, PTL_NI_OK);
    }
    return true;
}

/* Takes any other request through the stages of its receipt, in one step. None of them says
 * RX_WAIT: may_go() lets no message pass where there are handlers, and a message to oneself never
 * waits for room (lookup.c). Not inlined, so that the payload is not on the stack of quiet
 * requests. */
__attribute__((noinline)) static bool through_stages(struct ni *ni, struct nic_peer *peer,
                                                     const struct request *r)
{
    uint8_t payload[ATOMIC_OPERAND + SELF_MAX];
    size_t operand = request_operand_size(r);
    struct rx *rx = self_rx(ni->nic, peer);
    if (rx == NULL) {
        return false;
    }
    COUNT_PATH(self_staged);
    if (operand != 0) {
        memcpy(payload, r->operand, operand);
    }
    if (request_sends(r) && memory_read(payload + operand, &r->memory, r->length) != 0) {
        return false; /* the fabric will find that, too, and report it */
    }
    request_head(ni, r, request_expects(r), rx->m);
    rx->local = r;
    rx->f.length = request_sends(r) ? operand + r->length : 0;
    rx->f.torn = false;
    rx_short(peer, &rx->f, payload);
    rx->local = NULL;
    request_count(ni->nic, r);
    if (!request_expects(r) && !request_is_silent(r)) {
        request_left(r, PTL_NI_OK);
    }
    return true;
}

bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r)
{
    bool done = may_go(ni, peer, r) && (quietly_done(ni, r) || through_stages(ni, peer, r));
    if (!done) {
        COUNT_PATH(self_fabric);
        ni->nic->self_afar = true; /* the request goes through the fabric */
    }
    return done;
}

/* Answers a message to oneself, as send_ack() and send_reply() answer others. */
void self_answer(struct rx *rx)
{
    const struct request *r = rx->local;
    if (request_sends(r)) {
        request_left(r, PTL_NI_OK);
    }
    if (request_fetches(r) && rx->at.fail == PTL_NI_OK) {
        uint8_t data[SELF_MAX];
        struct memory from = {rx->before, NULL, 0};
        if (r->kind == OP_GET) {
            from = le_memory(rx->at.le, rx->at.offset);
        }
        if (memory_read(data, &from, rx->at.mlength) != 0 ||
            memory_write(request_reply_memory(r), data, rx->at.mlength) != 0) {
            rx->at.fail = PTL_NI_SEGV;
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
