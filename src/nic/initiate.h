/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The submission of a request, for the calls to have inline: what most requests are is known where
 * they are called, and stays in registers.
 *
 *   submit()         what leaves at once, since the peer is met and nothing waits for it: inline
 *                    for what fits one line of a ring, else in nic_request()
 *   nic_request()    all others: an operation, which is sent, or waits for its turn
 */
#ifndef NIC_INITIATE_H
#define NIC_INITIATE_H

#include "base/paths.h"
#include "nic/counter.h"
#include "nic/message.h"
#include "nic/spin_calls.h"

/* ---- the calls ---- */

/* request_operand_size() is what leads the payload of a swap. */
size_t request_operand_size(const struct request *r);
/* request_left() posts and counts SEND. */
void request_left(const struct request *r, ptl_ni_fail_t fail);
/* request_own() copies what a request sends, since its buffer is the caller's again when the call
 * returns: PTL_OK, PTL_NO_SPACE, or -EFAULT if it cannot be read. */
int request_own(struct request *r);
/* nic_request() starts an operation; lock held. The request is copied. Gives
 * PTL_OK, or PTL_NO_SPACE when no place for it is left; `owned` then is the
 * caller's still. */
int nic_request(struct ni *ni, const struct request *request);
/* nic_request_now() starts an operation only if it can be over when the call
 * returns: its buffer is the caller's at once. True if it did. */
bool nic_request_now(struct ni *ni, const struct request *request);
/* nic_has_place() is true while the queue of the program has room; request_has_place() while that
 * of handlers has some for a handler's request to a peer. Triggered ones have the place that they
 * had while they waited for their counter. */
static inline bool nic_has_place(const struct nic *nic)
{
    return nic->queued_program < (unsigned)nic->process->options.number[OPT_SEND_QUEUE];
}
static inline enum share_kind request_share(const struct request *r)
{
    return r->le != NULL ? SHARE_HOST : SHARE_OWN;
}
static inline bool request_has_place(const struct nic_peer *peer, const struct request *r)
{
    enum share_kind kind = request_share(r);
    return share_is_open(&peer->nic->shares[kind], &peer->places[kind], r->context);
}
/* op_new() makes an op of a request, which may be sent then; NULL: no place for it is left, and
 * `owned` is the caller's still. */
struct op *op_new(struct ni *ni, struct nic_peer *peer, const struct request *request);
/* op_take_place() takes a place of its peer's for a handler's op that is to wait (share.h); false:
 * no memory. op_give_up() ends one that has not begun, for lack of memory; `owned` stays the
 * caller's.
 */
bool op_take_place(struct op *op);
int op_give_up(struct op *op);
/* op_send() tries to hand an op to the fabric; false if there is no room. op_hand_over() does so as
 * a message of that class, whether or not the peer may be asked for one more response. */
bool op_send(struct op *op);
bool op_hand_over(struct op *op, enum fabric_class class);
/* op_left() notes that the buffer is free. */
void op_left(struct op *op, ptl_ni_fail_t fail);

/* ---- whether it makes sense ---- */

/* Whether somebody may have this id, in the terms of the NI. */
static inline bool target_sound(const struct ni *ni, ptl_process_t target)
{
    if (ni_is_logical(ni)) {
        return target.rank < ni->map_size;
    }
    return target.phys.nid != PTL_NID_ANY && target.phys.pid != 0 && target.phys.pid <= PTL_PID_MAX;
}

/* ack_sound() and request_fits() make the checks that every data movement has in common besides:
 * that its answer has an event queue or a counter to go to, and that it is no longer than may be.
 */
static inline bool ack_sound(ptl_ack_req_t ack, struct eq_ref eq, struct ct_ref ct)
{
    return ack <= PTL_OC_ACK_REQ && (ack != PTL_ACK_REQ || eq.eq != NULL) &&
           (ack != PTL_CT_ACK_REQ || ct.ct != NULL);
}
static inline __attribute__((always_inline)) bool request_fits(const struct ni *ni,
                                                               const struct request *r)
{
    /* Atomics have limits of their own. */
    bool short_enough = r->length <= ni->limits.max_msg_size || r->kind > OP_GET;
    return short_enough && r->pt_index <= UINT16_MAX;
}
/* request_atomic_sound() makes those that atomics have besides. */
static inline bool request_atomic_sound(const struct ni *ni, const struct request *r, bool swap)
{
    bool fetch = r->kind == OP_FETCH;
    enum atomic_call call = swap ? ATOMIC_SWAP : fetch ? ATOMIC_FETCH : ATOMIC_PLAIN;
    return atomic_is_legal(call, r->op, r->datatype) &&
           atomic_fits(r->length, r->op, r->datatype) &&
           r->length <= (fetch ? ni->limits.max_fetch_atomic_size : ni->limits.max_atomic_size);
}

/* ---- what the program sees ---- */

/* request_event() posts an event of a request, made where it is posted: a copy would have to wait
 * for the stores of the original. */
static inline __attribute__((always_inline)) void
request_event(struct eq *eq, ptl_event_kind_t type, const struct request *r, ptl_ni_fail_t fail,
              uint64_t mlength, uint64_t remote_offset, ptl_list_t list)
{
    ptl_event_t *event = eq_place(eq);
    *event =
        (ptl_event_t){.user_ptr = r->user_ptr, .mlength = mlength, .remote_offset = remote_offset};
    eq_kinds(event, type, list, fail, 0, 0);
    eq_placed(eq);
}

/* Posts and counts SEND. */
static inline __attribute__((always_inline)) void request_tell_left(const struct request *r,
                                                                    ptl_ni_fail_t fail)
{
    unsigned options = request_send_options(r);
    if (unlikely((options & PTL_MD_EVENT_CT_SEND) != 0)) {
        ct_count(r->md->ct, fail, (options & PTL_MD_EVENT_CT_BYTES) != 0, r->length);
    }
    if ((options & PTL_MD_EVENT_SEND_DISABLE) != 0 ||
        (fail == PTL_NI_OK && (options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0)) {
        return;
    }
    struct eq_ref eq = r->md != NULL ? r->md->eq : r->eq;
    if (likely(eq_ref_alive(eq))) {
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
    stats_count(nic->stats->sent, &nic->stats->sent_bytes, (enum stats_movement)r->kind, r->length);
}

/* ---- its operation ---- */

/* The peer may be asked for one more response. */
static inline bool may_ask(const struct nic_peer *peer)
{
    return peer->outstanding < peer->outstanding_most;
}

/* Makes an operation of a request: all but its copy is set here. One that has left is answered
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
    if (likely(r->md != NULL)) {
        r->md->users++;
    }
    if (request_fetches(r)) {
        op->replying = false;
        if (r->kind == OP_FETCH && r->origin != FROM_HANDLER) {
            r->get_md->users++;
        }
    }
}

/* Copies all of a request into its op, which uses what that uses of handlers. One of the program
 * has set what a fetch needs only if it is one. */
static inline void op_copy(struct op *op, const struct request *r)
{
    op->request = *r;
    if (r->origin == FROM_HANDLER) {
        handler_request_begin(r);
    } else if (r->kind != OP_FETCH) {
        op->request.get_md = NULL;
    }
}

/* Keeps of a request whose data have left what its answer, and the events of that, ask for; of a
 * handler's, which does not come as a `line`, that is all. */
static inline __attribute__((always_inline)) void op_keep(struct op *op, const struct request *r,
                                                          const bool line)
{
    if (!line && unlikely(r->origin == FROM_HANDLER)) {
        op_copy(op, r);
        op->request.owned = NULL;
        return;
    }
    struct request *to = &op->request;
    to->kind = r->kind;
    to->origin = r->origin;
    to->md = r->md;
    to->get_md = NULL;
    to->length = r->length;
    to->ack = r->ack;
    to->remote_offset = r->remote_offset;
    to->user_ptr = r->user_ptr;
    to->owned = NULL;
    if (r->kind == OP_GET) {
        to->memory = r->memory;
    } else if (r->kind == OP_FETCH) {
        to->get_md = r->get_md;
        to->get_memory = r->get_memory;
    }
}

/* request_send_whole() sends one that expects nothing and is too long for the short cut. */
enum fabric_short request_send_whole(struct ni *ni, struct nic_peer *peer, const struct request *r);

/* Sends a request by the short cut of the fabric, which also has one for what fits a `line`: there
 * SHORT_UNREADABLE says that nothing has left. The cookie is 0 for one that expects nothing. */
static inline __attribute__((always_inline)) enum fabric_short
request_send(const struct ni *ni, struct nic_peer *peer, const struct request *r, uint32_t cookie,
             const bool line)
{
    struct {
        struct message m;
        uint64_t payload;
    } l;
    _Static_assert(sizeof(l) == sizeof(struct fabric_line) &&
                       offsetof(struct fabric_line, payload) == sizeof(struct message),
                   "it is a fabric_line");
    size_t length = request_sends(r) ? r->length : 0;
    request_head(ni, r, cookie, &l.m);
    if (!line) {
        return peer->ops->send_short(peer->fabric, FABRIC_REQUEST, &l.m, r->memory.base, length);
    }
    if (request_sends(r)) {
        l.payload = 0;
        if (unlikely(nic_copy(&l.payload, r->memory.base, length) != 0)) {
            return SHORT_UNREADABLE;
        }
    }
    return peer->ops->send_line(peer->fabric, FABRIC_REQUEST, (const struct fabric_line *)&l,
                                length);
}

/* ---- submission ---- */

/* Called for a peer to which an ack left last, and now a request: prefetches the line of the ring
 * that the request will use, while the NIC makes it. */
static inline void peer_foresend(struct nic_peer *peer)
{
    if (peer->acked) {
        peer->acked = false;
        if (peer->ops->foresend != NULL) {
            peer->ops->foresend(peer->fabric);
        }
    }
}

/* Whether the payload of a request may take the short cut of the fabric, or that for a `line`. */
static inline __attribute__((always_inline)) bool
request_is_short(const struct nic_peer *peer, const struct request *r, const bool line)
{
    uint64_t length = request_sends(r) ? r->length : 0;
    bool fits =
        line ? !peer->staged && length <= FABRIC_LINE_PAYLOAD : length < peer->nic->short_end;
    return fits && r->memory.vector == NULL &&
           (r->kind != OP_FETCH || atomic_operand_size(r->op, r->datatype) == 0);
}

/* submit(), of a request that expects an answer, or of one that does not: that is a constant. One
 * that expects none leaves whole also where it is too long for the short cut, up to nic->now_end.
 */
static inline __attribute__((always_inline)) bool submit_as(struct nic *nic, struct ni *ni,
                                                            struct nic_peer *peer,
                                                            const struct request *r,
                                                            const bool line, const bool expects)
{
    bool is_short = likely(request_is_short(peer, r, line));
    bool whole = !line && !expects && !is_short && r->length < nic->now_end;
    if (unlikely(!list_empty(&peer->waiting) || (!is_short && !whole))) {
        return false;
    }
    peer_foresend(peer);
    if (unlikely(expects && !(may_ask(peer) && table_ready(&nic->operations)))) {
        return false;
    }
    struct op *op = expects ? table_take(&nic->operations) : NULL;
    enum fabric_short sent = whole ? request_send_whole(ni, peer, r)
                                   : request_send(ni, peer, r, expects ? op->slot.handle : 0, line);
    if (unlikely(sent != SHORT_SENT) && (line || sent == SHORT_FULL)) {
        if (expects) {
            table_drop(&nic->operations, op);
        }
        return false;
    }
    if (line) {
        COUNT_PATH_OF(send_straight, expects);
    } else {
        COUNT_PATH_OF(send_now_short, expects ? 2 : whole);
    }
    /* The message has left. The initiator fills in the operation only now, so that the target does
     * not wait for that. */
    if (expects) {
        op_begin(op, ni, peer, r, true);
        op_keep(op, r, line);
    }
    request_count(nic, r);
    if (request_sends(r)) {
        request_tell_left(r, line || sent == SHORT_SENT ? PTL_NI_OK : PTL_NI_SEGV);
    }
    return true;
}

/* submit() starts a request to a peer that is met, if it can leave at once: then it becomes an
 * operation only if it expects an answer. With `line`, a constant, only one of the program or of a
 * trigger, whose payload fits a line. False: nothing was done. The lock is held. */
static inline __attribute__((always_inline)) bool submit(struct nic *nic, struct ni *ni,
                                                         struct nic_peer *peer,
                                                         const struct request *r, const bool line)
{
    return request_expects(r) ? submit_as(nic, ni, peer, r, line, true)
                              : submit_as(nic, ni, peer, r, line, false);
}

#endif
