/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an operation at its initiator: answered by an ack or a reply, or given up.
 *
 *   left and waiting ──► answered: event, counter ──► ended, unless the fabric has its buffer still
 *
 * Most operations are puts whose ack says only that the target did all that was asked. For those
 * that only wait for it (only_waits()), op_acked() is a shorter op_response().
 */
#include "nic/answer.h"

#include "base/paths.h"
#include "nic/ask.h"
#include "nic/initiate.h"

#include <stdlib.h>
#include <string.h>

/* Posts and counts ACK, or REPLY if `get`, of a request whose answer goes to the MD `md`. Returns
 * whether it posted an event. */
static inline __attribute__((always_inline)) bool
tell_answer(const struct request *r, const struct md *md, bool get, ptl_ni_fail_t fail,
            uint64_t mlength, uint64_t remote_offset, ptl_list_t list)
{
    unsigned options = md->options;
    if (unlikely((options & (get ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK)) != 0)) {
        bool bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0 && r->ack != PTL_OC_ACK_REQ;
        ct_count(md->ct, fail, bytes, mlength);
    }
    bool wanted = (get || r->ack == PTL_ACK_REQ) &&
                  (fail != PTL_NI_OK || (options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0);
    if (unlikely(!wanted || !eq_ref_alive(md->eq))) {
        return false;
    }
    request_event(md->eq.eq, get ? PTL_EVENT_REPLY : PTL_EVENT_ACK, r, fail, mlength, remote_offset,
                  list);
    return true;
}

void request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength,
                      uint64_t remote_offset, ptl_list_t list)
{
    const struct md *md = request_reply_md(r);
    bool get = request_fetches(r);
    if (md != NULL) {
        tell_answer(r, md, get, fail, mlength, remote_offset, list);
    } else if (handler_request_answered(r, fail, mlength) && eq_ref_alive(r->eq)) {
        request_event(r->eq.eq, get ? PTL_EVENT_REPLY : PTL_EVENT_ACK, r, fail, mlength,
                      remote_offset, list);
    }
}

/* Ends the operation's use of its MDs, so that the program may release them. */
static void let_go_of_mds(struct op *op)
{
    struct request *r = &op->request;
    if (op->ni != NULL && r->md != NULL) {
        r->md->users--;
    }
    if (op->ni != NULL && r->get_md != NULL) {
        r->get_md->users--;
    }
    r->md = r->get_md = NULL;
}

/* Copies the parts of an MD with PTL_IOVEC into a list that the operation owns: the fabric still
 * reads the list after the program may have released the MD. False: no memory. */
static bool keep_parts(struct op *op)
{
    const struct vector *from = op->tx.vector;
    struct {
        struct vector vector;
        struct iovec parts[];
    } *own = malloc(sizeof(*own) + from->count * sizeof(own->parts[0]));
    if (own == NULL) {
        return false;
    }
    memcpy(own->parts, from->parts, from->count * sizeof(own->parts[0]));
    own->vector = (struct vector){own->parts, from->count};
    op->request.owned = own;
    op->tx.vector = &own->vector;
    return true;
}

/* Frees an operation that has left and been answered. `told`: the answer posted an event, which
 * wakes sleepers by itself. `only_waits`, a constant: the operation was a put or an atomic of the
 * program that only waited for its ack, so it owns nothing but its place in the table, and its NI
 * is open. */
static inline __attribute__((always_inline)) void
forget(struct nic *nic, struct op *op, struct md *md, bool told, const bool only_waits)
{
    if (only_waits) {
        md->users--;
    } else {
        let_go_of_mds(op);
        free(op->request.owned);
        if (op->request.origin == FROM_HANDLER) {
            handler_request_end(&op->request, op->ni == NULL);
        }
    }
    if (only_waits || op->ni != NULL) {
        op->ni->in_flight--;
    }
    if (!told) {
        /* also wakes threads that wait until no operation is in flight */
        wakeup_tell(&nic->wakeup);
    }
    table_drop(&nic->operations, op);
}

void op_end(struct op *op)
{
    forget(op->peer->nic, op, op->request.md, false, false);
}

/* Ends the operation that a response is for. `silent`: the initiator posts and counts nothing. */
static inline __attribute__((always_inline)) void answered(struct nic_peer *peer, struct op *op,
                                                           ptl_ni_fail_t fail, uint64_t mlength,
                                                           uint64_t remote_offset, bool silent,
                                                           ptl_list_t list, const bool only_waits)
{
    const struct request *r = &op->request;
    struct md *md = r->md;
    bool told = false;
    peer->outstanding -= only_waits || op->counted;
    if (only_waits) {
        told = tell_answer(r, md, false, fail, mlength, remote_offset, list);
    } else {
        peer->asking -= op->counted && request_asks(r);
        op->counted = false;
        if (unlikely(!op->left)) {
            /* An answer proves that the data have arrived. SEND fails only if they could not be
             * read or delivered; any other failure is the target's, and ACK or REPLY has it. */
            bool lost = fail == PTL_NI_SEGV || fail == PTL_NI_UNDELIVERABLE;
            op_left(op, lost ? fail : PTL_NI_OK);
        }
        if (likely(op->ni != NULL && !silent)) {
            request_answered(r, fail, mlength, remote_offset, list);
        }
        op->expects = false;
    }
    if (only_waits || likely(!op->fabric_has)) {
        forget(peer->nic, op, md, told, only_waits);
    } else if (op->ni != NULL && (op->tx.vector == NULL || keep_parts(op))) {
        let_go_of_mds(op); /* the program may release them once it has seen the last event */
    }
}

void op_response(struct op *op, ptl_ni_fail_t fail, uint64_t mlength, uint64_t remote_offset,
                 bool silent, ptl_list_t list)
{
    answered(op->peer, op, fail, mlength, remote_offset, silent, list, false);
}

/* Whether the fabric has sent the whole operation and let go of its buffer, it is counted at the
 * peer, and it waits only for its answer. */
static inline bool only_waits(const struct op *op)
{
    _Static_assert(offsetof(struct op, fabric_has) == offsetof(struct op, left) + 1 &&
                       offsetof(struct op, expects) == offsetof(struct op, left) + 2 &&
                       offsetof(struct op, counted) == offsetof(struct op, left) + 3,
                   "its states are the bytes of a word");
    static const uint8_t waits[] = {true, false, true, true};
    return memcmp(&op->left, waits, sizeof(waits)) == 0;
}

/* Ends the put or atomic whose ack, of complete success, has come from this peer. The general way
 * to end an operation also serves one that a handler issued, whose NI is closed, whose payload the
 * fabric still has, or that owns a copy of it. This function leaves all of these to it: it ends
 * only an operation with an MD that waits for nothing but its answer. False: the cookie names no
 * such operation, and nothing was done. */
static inline bool op_acked(struct nic_peer *peer, uint32_t cookie, ptl_list_t list)
{
    struct op *op = table_get(&peer->nic->operations, cookie);
    if (unlikely(op == NULL || op->peer != peer || !only_waits(op))) {
        return false;
    }
    const struct request *r = &op->request;
    if (unlikely(r->md == NULL || request_fetches(r))) {
        return false;
    }
    COUNT_PATH(acked);
    answered(peer, op, PTL_NI_OK, r->length, r->remote_offset, false, list, true);
    return true;
}

/* Returns the operation to this peer that has this cookie and waits for a reply (or, unless
 * `reply`, for an ack); NULL if there is none. */
static struct op *find_op(struct nic_peer *peer, uint32_t cookie, bool reply)
{
    if (cookie == 0 || handle_kind(cookie) != HANDLE_OP) {
        return NULL;
    }
    struct op *op = table_get(&peer->nic->operations, cookie);
    return op != NULL && op->peer == peer && op->expects && request_fetches(&op->request) == reply
               ? op
               : NULL;
}

struct op *rx_op(struct rx *rx)
{
    return find_op(rx->peer, rx->cookie, rx->m->type == MESSAGE_REPLY);
}

static __attribute__((noinline)) void other_acked(struct nic_peer *peer, uint32_t cookie,
                                                  ptl_list_t list)
{
    struct op *op = find_op(peer, cookie, false);
    if (op == NULL) {
        peer->nic->stats->malformed++;
        return;
    }
    op_response(op, PTL_NI_OK, op->request.length, op->request.remote_offset, false, list);
}

/* Ends the operations that the acks of a peer name. `fast`, a constant: it tries op_acked()
 * first. */
static inline __attribute__((always_inline)) void
end_acked(struct nic_peer *peer, const struct message_acks *a, const bool fast)
{
    unsigned count = acks_count(a);
    for (unsigned i = 0; i < count; i++) {
        uint32_t cookie = acks_cookie(a, i);
        ptl_list_t list = acks_overflow(a, i) ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST;
        if (!fast || unlikely(!op_acked(peer, cookie, list))) {
            other_acked(peer, cookie, list);
        }
    }
}

enum rx_step acks_done(struct nic_peer *peer, const struct message_acks *a)
{
    end_acked(peer, a, true);
    return RX_GO;
}

void response_end(const struct rx *rx, struct op *op, enum fabric_status status)
{
    ptl_ni_fail_t fail = status != FABRIC_OK ? (ptl_ni_fail_t)status : message_fail(rx->m);
    if (unlikely(fail == FAIL_WITHDRAWN) && !(request_asks(&op->request) && op->withdrawn)) {
        op->peer->nic->stats->malformed++; /* the initiator has not withdrawn this request */
        fail = PTL_NI_DROPPED;
    }
    uint64_t asked = op->request.length;
    uint64_t mlength = rx->m->length < asked ? rx->m->length : asked;
    op_response(op, fail, mlength, rx->m->remote_offset, rx->m->silent != 0, rx->m->op);
}

void response_done(struct rx *rx, enum fabric_status status)
{
    COUNT_PATH(done_response);
    if (rx->m->type == MESSAGE_ACKS) {
        end_acked(rx->peer, (const struct message_acks *)rx->m, false);
        return;
    }
    if (rx->m->type == MESSAGE_WITHDRAW) {
        asks_note_withdrawn(rx->peer, rx->m->match_bits);
        return;
    }
    struct op *op = rx_op(rx);
    if (op != NULL) {
        response_end(rx, op, status);
    }
}

void op_fail(struct op *op, ptl_ni_fail_t fail)
{
    bool expects = op->expects;
    if (!op->left) {
        op_left(op, fail);
    }
    if (expects) {
        op_response(op, fail, 0, op->request.remote_offset, false, 0);
    }
}
