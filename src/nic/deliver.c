/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliver: how a message ends at its receiver.
 *
 *   put    completion handler ─► event, counter ─► entry released ─► ack
 *   get    completion handler ─► reply until its last byte left ─► event, counter ─► released
 *   ack, reply                  the initiator's operation ends
 *
 * An ack or reply waits until the RESPONSE channel has room. The message waits with it, and so does
 * the channel by which that came (invariant set 2). So responses leave in the order of their
 * requests.
 */
#include "nic/deliver.h"

#include "base/paths.h"
#include "nic/answer.h"
#include "nic/pt.h"
#include "nic/self.h"
#include "nic/spin_calls.h"
#include "nic/stages.h"

#include <string.h>

static bool is_pending(const struct rx *rx)
{
    return rx->header_begun && rx->run->pending;
}

void rx_tell(const struct rx *rx)
{
    le_count(rx->at.le, PTL_ME_EVENT_CT_COMM, rx->at.fail, rx->at.mlength);
    target_post(rx, rx->m, &rx->at, false);
}

/* Ends the message's use of its entry; takes the entry out if the message had reserved it as its
 * only one, unless the handler said PENDING. */
static void release_entry(struct rx *rx)
{
    struct le *le = rx->at.le;
    uint32_t pt_index = le->pt_index;
    if (rx->at.reserved) {
        le->handlers->taken = false;
        le_reserve(le, le->handlers->inactive);
        if (!is_pending(rx)) {
            le_take_out(le);
        }
    }
    rx->at.le = NULL;
    le_release(le);
    pt_release(rx->at.ni, pt_index);
}

/* Posts the event, counts, and releases the entry of a message; on a second call it does
 * nothing. */
static void finish_entry(struct rx *rx)
{
    if (rx->at.le == NULL || rx->event_posted) {
        return;
    }
    rx->event_posted = true;
    /* If the handler said PENDING, the target completes nothing; but it reports a handler's
     * error. */
    if (!is_pending(rx) || rx->run->fail != PTL_NI_OK) {
        rx_tell(rx);
    }
    rx->response_silent = (rx->at.le->options & PTL_ME_ACK_DISABLE) != 0;
    if (rx->at.unexpected != NULL) {
        unexpected_end(rx->at.unexpected, rx->at.fail);
        rx->at.unexpected = NULL;
    }
    release_entry(rx);
}

static inline void fill_response(const struct rx *rx, uint8_t type, ptl_list_t list,
                                 struct message *m)
{
    struct message begin = {
        .type = type,
        .ni = rx->m->ni,
        .ack = message_fail_code(rx->at.fail),
        .silent = type == MESSAGE_ACK && rx->response_silent,
        .op = list,
        .cookie = rx->m->cookie,
    };
    message_begin(m, &begin);
    m->length = rx->at.mlength;
    m->match_bits = 0;
    m->hdr_data = message_fail_mark(rx->at.fail);
    m->remote_offset = rx->at.offset;
}

/* The offset in the target's answer: the one used, if the entry was accessed; else the one asked
 * for. */
static uint64_t answer_offset(const struct rx *rx)
{
    bool done = rx->at.fail == PTL_NI_OK || rx->at.fail == PTL_NI_SEGV ||
                rx->at.fail >= PTL_NI_HANDLER_FAIL;
    return done ? rx->at.offset : rx->m->remote_offset;
}

static enum rx_step answer_self(struct rx *rx)
{
    self_answer(rx);
    if (!(rx->m->type != MESSAGE_GET && rx->m->type != MESSAGE_FETCH && rx->response_silent)) {
        request_answered(rx->local, rx->at.fail, rx->at.mlength, answer_offset(rx), rx->at.list);
    }
    return RX_GO;
}

/* Whether the answer of this message must wait until those before it of its peer have been sent. */
static inline bool must_wait(const struct rx *rx)
{
    return unlikely(rx->away || !list_empty(&rx->peer->detached)) && detach_behind_answer(rx);
}

/* Sends the acks that were gathered for a peer; false: the response channel is full. */
static bool send_acks(struct rx *rx)
{
    /* a message that has left its channel has another rx; the acks are gathered in the channel's */
    rx = rx->peer->rx[FABRIC_REQUEST];
    if (rx != NULL && rx->ack_count != 0) {
        rx->acks.head = acks_head(rx->ack_count, rx->ack_overflow);
        if (rx->peer->ops->send_short(rx->peer->fabric, FABRIC_RESPONSE, &rx->acks, NULL, 0) ==
            SHORT_FULL) {
            return false;
        }
        rx->ack_count = rx->ack_overflow = 0;
        rx->peer->acked = true;
        list_remove(&rx->acks_due);
    }
    return true;
}

void acks_advance(struct nic *nic)
{
    for (struct list *l = nic->acks_due.next, *next; l != &nic->acks_due; l = next) {
        next = l->next;
        send_acks(container_of(l, struct rx, acks_due));
    }
}

/* Sends the ack of a message behind which its channel is empty: its sender may be waiting for
 * it. */
static inline bool send_single_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    struct nic_peer *peer = rx->peer;
    rx->acks.head = acks_head(1, list == PTL_OVERFLOW_LIST);
    acks_set_cookie(&rx->acks, 0, cookie);
    peer->acked = true;
    return likely(peer->ops->send_short(peer->fabric, FABRIC_RESPONSE, &rx->acks, NULL, 0) !=
                  SHORT_FULL);
}

void rx_send_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    if (likely(rx->ack_count == 0)) {
        if (likely(rx->f.last) && send_single_ack(rx, cookie, list)) {
            return;
        }
        struct nic *nic = rx->peer->nic;
        list_push_back(&nic->acks_due, &rx->acks_due);
        atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
    }
    rx_note_ack(rx, cookie, list);
    if (rx->f.last || rx->ack_count == ACKS_MOST) {
        /* the peer may be waiting for them; if the channel is full they stay gathered */
        send_acks(rx);
    }
}

bool rx_gather_ack(struct rx *rx, ptl_list_t list)
{
    if (must_wait(rx) || (rx->ack_count == ACKS_MOST && !send_acks(rx))) {
        return false;
    }
    rx_add_ack(rx, rx->m->cookie, list);
    return true;
}

/* Sends an ack with its own fields. The gathered acks go first: responses leave in the order of
 * their requests. */
static enum rx_step send_ack(struct rx *rx)
{
    if (rx->local != NULL) {
        return answer_self(rx);
    }
    if (must_wait(rx) || !send_acks(rx)) {
        return RX_WAIT;
    }
    COUNT_PATH(send_ack);
    struct message m;
    fill_response(rx, MESSAGE_ACK, rx->at.list, &m);
    m.remote_offset = answer_offset(rx);
    return rx->peer->ops->send_short(rx->peer->fabric, FABRIC_RESPONSE, &m, NULL, 0) == SHORT_FULL
               ? RX_WAIT
               : RX_GO;
}

/* Returns the memory that a reply is sent from, and sets its length. */
static inline struct memory reply_data(const struct rx *rx, uint64_t *length)
{
    bool data = rx->at.fail == PTL_NI_OK;
    *length = data ? rx->at.mlength : 0;
    return data && rx->m->type == MESSAGE_GET ? le_memory(rx->at.le, rx->at.offset)
                                              : (struct memory){rx->before, NULL, 0};
}

/* Sends a reply by send_short() of the fabric, which copies the data at once. */
static inline enum rx_step send_reply_short(struct rx *rx, const void *data, uint64_t length)
{
    struct message m;
    fill_response(rx, MESSAGE_REPLY, rx->at.list, &m);
    switch (rx->peer->ops->send_short(rx->peer->fabric, FABRIC_RESPONSE, &m, data, length)) {
    case SHORT_FULL:
        return RX_WAIT;
    case SHORT_UNREADABLE:
        rx->at.fail = PTL_NI_SEGV;
        break;
    case SHORT_SENT:
        break;
    }
    rx->reply_left = true;
    return RX_GO;
}

bool rx_reply_at_once(struct rx *rx)
{
    uint64_t length;
    struct memory from = reply_data(rx, &length);
    if (rx->local != NULL || from.vector != NULL || length > rx->peer->nic->inline_max ||
        must_wait(rx) || !send_acks(rx)) {
        return false;
    }
    COUNT_PATH(reply_at_once);
    return send_reply_short(rx, from.base, length) == RX_GO;
}

/* Sends the reply of a get or fetch; the caller repeats it until it returns RX_GO. */
static enum rx_step send_reply(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    if (rx->reply_left) {
        return RX_GO;
    }
    if (rx->local != NULL) {
        return answer_self(rx);
    }
    /* the peer has gone, and its message had left the channel before */
    if (rx->peer->fabric == NULL) {
        rx->at.fail = rx->at.fail == PTL_NI_OK ? PTL_NI_UNDELIVERABLE : rx->at.fail;
        return RX_GO;
    }
    if (rx->reply_started || must_wait(rx) || !send_acks(rx)) {
        return RX_WAIT;
    }
    COUNT_PATH(send_reply);
    uint64_t length;
    struct memory from = reply_data(rx, &length);
    if (from.vector == NULL && length < nic->short_end) {
        return send_reply_short(rx, from.base, length);
    }
    memset(&rx->reply, 0, sizeof(rx->reply));
    fill_response(rx, MESSAGE_REPLY, rx->at.list, (struct message *)rx->reply.header);
    rx->reply.base = from.base;
    rx->reply.vector = from.vector;
    rx->reply.skip = from.skip;
    rx->reply.length = length;
    rx->reply.from = FABRIC_FROM_HOST;
    switch (rx->peer->ops->send(rx->peer->fabric, FABRIC_RESPONSE, &rx->reply)) {
    case FABRIC_FULL:
        return RX_WAIT;
    case FABRIC_QUEUED:
        rx->reply_started = true;
        return RX_WAIT;
    case FABRIC_SENT:
        break;
    }
    rx->reply_left = true;
    if (rx->reply.fault != FABRIC_OK) {
        rx->at.fail = (ptl_ni_fail_t)rx->reply.fault;
    }
    return RX_GO;
}

void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status)
{
    struct rx *rx = container_of(tx, struct rx, reply);
    rx->reply_left = true;
    if (status != FABRIC_OK) {
        rx->at.fail = (ptl_ni_fail_t)status;
    }
    if (rx->away) {
        invoke_stir(rx);
    }
}

static enum rx_step request_done(struct rx *rx)
{
    if (rx_handlers_ran(rx) && !rx->event_posted && handlers_completion(rx) == RX_WAIT) {
        return RX_WAIT;
    }
    if (rx->at.fail != PTL_NI_OK && rx->at.fail != PTL_NI_SEGV && rx->at.le == NULL) {
        rx->at.mlength = 0;
    }
    COUNT_PATH_OF(done_put, rx->m->type - MESSAGE_PUT);
    if (rx->m->type == MESSAGE_GET || rx->m->type == MESSAGE_FETCH) {
        if (send_reply(rx) == RX_WAIT) {
            return RX_WAIT;
        }
        finish_entry(rx);
        return RX_GO;
    }
    finish_entry(rx);
    return rx->at.response_due ? send_ack(rx) : RX_GO;
}

enum rx_step rx_done(struct nic_peer *peer, struct fabric_rx *f, enum fabric_status status)
{
    struct rx *rx = (struct rx *)f;
    if (rx->stored != NULL && detach_stored(rx, status)) {
        return RX_GO;
    }
    if (rx->class == FABRIC_RESPONSE) {
        if (rx->m->type != 0) {
            response_done(rx, status);
        }
        rx_reset(rx);
        return RX_GO;
    }
    if (rx->m->type != 0) {
        bool short_payload = rx->m->type != MESSAGE_GET && f->length < rx->m->length;
        if (status == FABRIC_OK && short_payload && rx->at.fail == PTL_NI_OK) {
            status = FABRIC_SEGV;
        }
        if (status != FABRIC_OK && rx->at.fail == PTL_NI_OK) {
            if (rx_handlers_ran(rx)) {
                handlers_torn(rx, (ptl_ni_fail_t)status);
            } else {
                rx->at.fail = (ptl_ni_fail_t)status;
            }
        }
        if (request_done(rx) == RX_WAIT) {
            return RX_WAIT;
        }
    }
    rx_reset(rx);
    return RX_GO;
}
