/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on oneself: a small message from a NIC to itself goes through the stages
 * of its receipt at once, in the call that sends it, and needs no fabric.
 *
 * It must not overtake: it takes this way only while nothing of the NIC's own is on the
 * other one, queued or in progress. It must end at once: where entries have handlers, which may
 * wait, it goes the other way, too. What is quiet (quiet.h) needs not even the stages.
 */
#include "nic/self.h"

#include "base/paths.h"
#include "nic/initiate.h"
#include "nic/peer.h"
#include "nic/quiet.h"
#include "nic/receive.h"

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

/* Whether nothing that the NIC sent to itself is on the fabric's way. Once nothing is, and no
 * answer is due that would come that way, it stays so until something is sent there: see
 * self_request(). */
static bool is_near(struct nic_peer *peer)
{
    struct nic *nic = peer->nic;
    if (likely(!nic->self_afar)) {
        return true;
    }
    if (!nic->fastpath) {
        return false; /* the fabric has all */
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

/* True if the program learns of a message that this entry takes by a count only, and the message
 * leaves the entry as it is. */
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
    /* Of one that does not truncate, whether it fits is asked later, and not of others. */
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

/* Whether it is a put of a line at the most, or an atomic of one word, that wants no answer. */
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

/* Does a request at once if the entry that it finds is quiet (quiet.h); false if it does not. */
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

/* All other messages: through the stages of their receipt, in one step. None of these says RX_WAIT:
 * may_go() lets no message for handlers come here, and a loopback message never waits for room
 * (lookup.c). Not inlined: its payload would be on the stack of those that are done on the spot. */
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
        return false; /* the fabric has a way to say so */
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
        ni->nic->self_afar = true; /* it goes the fabric's way */
    }
    return done;
}

/* Answers a loopback message, as send_ack() and send_reply() answer others. */
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
