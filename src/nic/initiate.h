/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The submission of a request, inline in the calls of the program: there the compiler knows most
 * fields of a request as constants, and keeps the others in registers.
 *
 *   submit()         a request that leaves at once, since its peer is known and no operation waits
 *                    there: inline if it fits one line of a ring, else from nic_request()
 *   nic_request()    all others: an operation, which is sent, or waits for its turn
 */
#ifndef NIC_INITIATE_H
#define NIC_INITIATE_H

#include "base/paths.h"
#include "nic/counter.h"
#include "nic/message.h"
#include "nic/spin_calls.h"

/* ---- the calls ---- */

/* request_operand_size() returns the size of a swap's operand, which leads its payload; 0 for
 * others. */
size_t request_operand_size(const struct request *r);
/* request_left() posts and counts SEND. */
void request_left(const struct request *r, ptl_ni_fail_t fail);
/* request_own() copies the data that a request sends, so that the caller may reuse its buffer after
 * the call. PTL_OK, PTL_NO_SPACE, or -EFAULT if the data cannot be read. */
int request_own(struct request *r);
/* nic_request() starts an operation, of which it copies the request; the caller holds the lock.
 * PTL_OK, or PTL_NO_SPACE when there is no memory for it: then the caller still has to free
 * `owned`. */
int nic_request(struct ni *ni, const struct request *request);
/* nic_request_now() starts an operation only if it can end before the call returns, so that the
 * caller has its buffer back; it says whether it did. */
bool nic_request_now(struct ni *ni, const struct request *request);
/* nic_has_place() is true while the queue of the program's operations has room; request_has_place()
 * while the queue of a peer has room for one of a handler's. A triggered operation needs no place:
 * it keeps the one that it had while it waited for its counter. */
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
/* op_new() makes an operation of a request, ready to be sent. NULL: no memory, and the caller still
 * has to free `owned`. */
struct op *op_new(struct ni *ni, struct nic_peer *peer, const struct request *request);
/* op_take_place() takes one of the peer's places for a handler's operation that has to wait
 * (share.h); false: no memory. op_give_up() ends an operation that has not begun, for lack of
 * memory, but leaves `owned` to the caller. */
bool op_take_place(struct op *op);
int op_give_up(struct op *op);
/* op_send() tries to hand an operation to the fabric as a request; false: the ring is full, or as
 * many responses are outstanding as the peer may be asked for. op_hand_over() hands it over in the
 * given class, without a look at that limit. */
bool op_send(struct op *op);
bool op_hand_over(struct op *op, enum fabric_class class);
/* op_left() notes that the fabric has sent an operation and its buffer is free. */
void op_left(struct op *op, ptl_ni_fail_t fail);

/* ---- checks ---- */

/* Whether a process could have this id: as a rank or as nid and pid, whichever the NI uses. */
static inline bool target_sound(const struct ni *ni, ptl_process_t target)
{
    if (ni_is_logical(ni)) {
        return target.rank < ni->map_size;
    }
    return target.phys.nid != PTL_NID_ANY && target.phys.pid != 0 && target.phys.pid <= PTL_PID_MAX;
}

/* ack_sound() and request_fits() check what all data movements have in common: that an ack which is
 * asked for has an event queue or a counter to go to, and that length and portal index are within
 * limits. */
static inline bool ack_sound(ptl_ack_req_t ack, struct eq_ref eq, struct ct_ref ct)
{
    return ack <= PTL_OC_ACK_REQ && (ack != PTL_ACK_REQ || eq.eq != NULL) &&
           (ack != PTL_CT_ACK_REQ || ct.ct != NULL);
}
static inline __attribute__((always_inline)) bool request_fits(const struct ni *ni,
                                                               const struct request *r)
{
    /* Atomics have limits of their own: request_atomic_sound(). */
    bool short_enough = r->length <= ni->limits.max_msg_size || r->kind > OP_GET;
    return short_enough && r->pt_index <= UINT16_MAX;
}
/* request_atomic_sound() checks what atomics have besides. */
static inline bool request_atomic_sound(const struct ni *ni, const struct request *r, bool swap)
{
    bool fetch = r->kind == OP_FETCH;
    enum atomic_call call = swap ? ATOMIC_SWAP : fetch ? ATOMIC_FETCH : ATOMIC_PLAIN;
    return atomic_is_legal(call, r->op, r->datatype) &&
           atomic_fits(r->length, r->op, r->datatype) &&
           r->length <= (fetch ? ni->limits.max_fetch_atomic_size : ni->limits.max_atomic_size);
}

/* ---- what the program sees ---- */

/* request_event() posts an event of a request. It is filled in at its place in the queue: a copy
 * would wait for the stores of the original. */
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

/* Whether one more response may be outstanding from this peer. */
static inline bool may_ask(const struct nic_peer *peer)
{
    return peer->outstanding < peer->outstanding_most;
}

/* Sets up an operation of a request, all but its copy of the request. `left`: the data have left,
 * and the operation only waits for its answer. */
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
    op->tx.vector = NULL; /* cut_off() reads it */
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

/* Copies a request into its operation, which then is a user of the handlers that made the request.
 * The calls of the program set get_md only in a fetch. */
static inline void op_copy(struct op *op, const struct request *r)
{
    op->request = *r;
    if (r->origin == FROM_HANDLER) {
        handler_request_begin(r);
    } else if (r->kind != OP_FETCH) {
        op->request.get_md = NULL;
    }
}

/* Copies only those fields of a request which its answer and the events need, as its data have
 * left. Of a handler's request it copies all; that never comes with `line`. */
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

/* request_send_whole() sends a request that expects no answer and is too long for send_short(). */
enum fabric_short request_send_whole(struct ni *ni, struct nic_peer *peer, const struct request *r);

/* Sends a request by the fabric's send_short(), or with `line` by its send_line(), where
 * SHORT_UNREADABLE says that nothing has left. The cookie is 0 if the request expects no answer. */
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

/* peer_foresend() prefetches the line of the ring that a request will use, while the NIC makes the
 * request. It does so only if the last message to the peer was an ack: after a request that is
 * done. */
static inline void peer_foresend(struct nic_peer *peer)
{
    if (peer->acked) {
        peer->acked = false;
        if (peer->ops->foresend != NULL) {
            peer->ops->foresend(peer->fabric);
        }
    }
}

/* Whether a request can go by send_short(), or with `line` by send_line(). */
static inline __attribute__((always_inline)) bool
request_is_short(const struct nic_peer *peer, const struct request *r, const bool line)
{
    uint64_t length = request_sends(r) ? r->length : 0;
    bool fits =
        line ? !peer->staged && length <= FABRIC_LINE_PAYLOAD : length < peer->nic->short_end;
    return fits && r->memory.vector == NULL &&
           (r->kind != OP_FETCH || atomic_operand_size(r->op, r->datatype) == 0);
}

/* submit() with the constant `expects`: whether the request expects an answer. One that expects
 * none also leaves at once if it is too long for send_short(), up to nic->now_end. */
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
    /* The message has left. The initiator fills in the operation only now, so that the target need
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

/* submit() starts a request to a known peer if it can leave at once; it makes an operation only if
 * the request expects an answer. `line`, a constant: the caller takes only requests of the program
 * or of a trigger, and submit() those whose payload fits a line. False: nothing was done. The
 * caller holds the lock. */
static inline __attribute__((always_inline)) bool submit(struct nic *nic, struct ni *ni,
                                                         struct nic_peer *peer,
                                                         const struct request *r, const bool line)
{
    return request_expects(r) ? submit_as(nic, ni, peer, r, line, true)
                              : submit_as(nic, ni, peer, r, line, false);
}

#endif
