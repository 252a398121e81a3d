/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliver: how a message ends at its receiver.
 *
 *   put    completion handler ─► event, counter ─► entry released ─► ack
 *   get    completion handler ─► reply until its last byte left ─► event, counter ─► released
 *   ack, reply                  the initiator's operation ends
 *
 * Acks and replies wait for room in the RESPONSE channel; the message, and with
 * it the channel it came through, waits with them (wall 2). So responses leave
 * in the order of their requests.
 */
#include "nic/entry.h"
#include "nic/rx.h"

#include "base/paths.h"

#include <string.h>

static bool is_pending(const struct rx *rx)
{
    return rx->header_begun && rx->run->pending;
}

static const uint8_t event_kinds[] = {
    [MESSAGE_PUT] = PTL_EVENT_PUT,
    [MESSAGE_GET] = PTL_EVENT_GET,
    [MESSAGE_ATOMIC] = PTL_EVENT_ATOMIC,
    [MESSAGE_FETCH] = PTL_EVENT_FETCH_ATOMIC,
};

/* Apart: only entries in parts need it. */
__attribute__((noinline)) static void *address_in_parts(const struct le *le, uint64_t offset)
{
    struct memory memory = le_memory(le, offset);
    return memory_address(&memory);
}

inline void target_event(const struct rx *rx, const struct le *le, ptl_event_t *event)
{
    *event = (ptl_event_t){
        .start = usual(le->vector.parts == NULL) ? memory_at(le->start, rx->offset)
                                                 : address_in_parts(le, rx->offset),
        .user_ptr = le->user_ptr,
        .hdr_data = rx->m->hdr_data,
        .match_bits = rx->m->match_bits,
        .rlength = rx->m->length,
        .mlength = rx->mlength,
        .remote_offset = rx->m->remote_offset,
        .initiator = rx->initiator,
    };
    eq_whose(event, rx->peer->uid, le->pt_index);
    eq_kinds(event, event_kinds[rx->m->type], le->list, rx->fail, rx->m->op, rx->m->datatype);
}

void post_target_event(struct rx *rx, struct le *le)
{
    if ((le->options & PTL_ME_EVENT_CT_COMM) != 0) {
        ct_count(le->ct, rx->fail, (le->options & PTL_ME_EVENT_CT_BYTES) != 0, rx->mlength);
    }
    struct eq_ref eq = rx->ni->pts[le->pt_index].eq;
    if (!eq_ref_alive(eq) || (le->options & PTL_ME_EVENT_COMM_DISABLE) != 0 ||
        (rx->fail == PTL_NI_OK && (le->options & PTL_ME_EVENT_SUCCESS_DISABLE) != 0)) {
        return;
    }
    target_event(rx, le, eq_place(eq.eq));
    eq_placed(eq.eq);
}

/* Ends the message's use of its entry, and a use-once entry with it. */
static void release_entry(struct rx *rx)
{
    struct le *le = rx->le;
    uint32_t pt_index = le->pt_index;
    if (rx->reserved) {
        le->handlers->taken = false;
        le->reserved = le->handlers->inactive;
        le->match.picky = le->reserved || (le->options & PTL_ME_NO_TRUNCATE) != 0;
        if (!is_pending(rx)) {
            le_take_out(le);
        }
    }
    rx->le = NULL;
    le_release(le);
    pt_release(rx->ni, pt_index);
}

/* Event, counter and entry, once. */
static void finish_entry(struct rx *rx)
{
    if (rx->le == NULL || rx->event_posted) {
        return;
    }
    rx->event_posted = true;
    /* A pending message completes nothing; a handler's error is told all the same. */
    if (!is_pending(rx) || rx->run->fail != PTL_NI_OK) {
        post_target_event(rx, rx->le);
    }
    rx->response_silent = (rx->le->options & PTL_ME_ACK_DISABLE) != 0;
    if (rx->unexpected != NULL) {
        unexpected_end(rx->unexpected, rx->fail);
        rx->unexpected = NULL;
    }
    release_entry(rx);
}

static inline void fill_response(const struct rx *rx, uint8_t type, ptl_list_t list,
                                 struct message *m)
{
    struct message begin = {
        .type = type,
        .ni = rx->m->ni,
        .ack = message_fail_code(rx->fail),
        .silent = type == MESSAGE_ACK && rx->response_silent,
        .op = list,
        .cookie = rx->m->cookie,
    };
    message_begin(m, &begin);
    m->length = rx->mlength;
    m->match_bits = 0;
    m->hdr_data = message_fail_mark(rx->fail);
    m->remote_offset = rx->offset;
}

/* The offset that the initiator hears of: the one used, if anything was. */
static uint64_t answer_offset(const struct rx *rx)
{
    bool done = rx->fail == PTL_NI_OK || rx->fail == PTL_NI_SEGV || rx->fail >= PTL_NI_HANDLER_FAIL;
    return done ? rx->offset : rx->m->remote_offset;
}

static enum rx_step answer_self(struct rx *rx)
{
    self_answer(rx);
    if (!(rx->m->type != MESSAGE_GET && rx->m->type != MESSAGE_FETCH && rx->response_silent)) {
        request_answered(rx->local, rx->fail, rx->mlength, answer_offset(rx), rx->response_list);
    }
    return RX_GO;
}

/* An answer waits for those of the messages before it. */
static inline bool must_wait(const struct rx *rx)
{
    return rare(rx->away || !list_empty(&rx->peer->detached)) && detach_behind_answer(rx);
}

/* Sends what was gathered; false: there is no room. */
static bool send_acks(struct rx *rx)
{
    rx = rx->peer->rx[FABRIC_REQUEST]; /* of a message that has left its channel: the channel's */
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

void acks_advance_all(struct nic *nic)
{
    for (struct list *l = nic->acks_due.next, *next; l != &nic->acks_due; l = next) {
        next = l->next;
        send_acks(container_of(l, struct rx, acks_due));
    }
}

/* The ack of a message that nothing is behind: its sender may wait for it. */
static inline bool send_single_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    struct nic_peer *peer = rx->peer;
    rx->acks.head = acks_head(1, list == PTL_OVERFLOW_LIST);
    acks_set_cookie(&rx->acks, 0, cookie);
    peer->acked = true;
    return usual(peer->ops->send_short(peer->fabric, FABRIC_RESPONSE, &rx->acks, NULL, 0) !=
                 SHORT_FULL);
}

void rx_send_ack(struct rx *rx, uint32_t cookie, ptl_list_t list)
{
    if (usual(rx->ack_count == 0)) {
        if (usual(rx->f.last) && send_single_ack(rx, cookie, list)) {
            return;
        }
        struct nic *nic = rx->peer->nic;
        list_push_back(&nic->acks_due, &rx->acks_due);
        atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
    }
    rx_note_ack(rx, cookie, list);
    if (rx->f.last || rx->ack_count == ACKS_MOST) {
        send_acks(rx); /* the peer may wait for it; what cannot leave stays gathered */
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

/* Responses leave in the order of their requests: the gathered acks go first. */
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
    fill_response(rx, MESSAGE_ACK, rx->response_list, &m);
    m.remote_offset = answer_offset(rx);
    return rx->peer->ops->send_short(rx->peer->fabric, FABRIC_RESPONSE, &m, NULL, 0) == SHORT_FULL
               ? RX_WAIT
               : RX_GO;
}

static enum rx_step send_reply_short(struct rx *rx, const struct message *m, const void *data,
                                     uint64_t length)
{
    const struct fabric_ops *ops = rx->peer->ops;
    switch (ops->send_short(rx->peer->fabric, FABRIC_RESPONSE, m, data, length)) {
    case SHORT_FULL:
        return RX_WAIT;
    case SHORT_UNREADABLE:
        rx->fail = PTL_NI_SEGV;
        break;
    case SHORT_SENT:
        break;
    }
    rx->reply_left = true;
    return RX_GO;
}

bool rx_reply_at_once(struct rx *rx, const struct le *le)
{
    bool fetched = rx->m->type == MESSAGE_FETCH;
    if (rx->local != NULL || (le->vector.parts != NULL && !fetched) ||
        rx->mlength > rx->peer->nic->inline_max || must_wait(rx) || !send_acks(rx)) {
        return false;
    }
    struct message m;
    fill_response(rx, MESSAGE_REPLY, le->list, &m);
    COUNT_PATH(reply_at_once);
    const void *data = fetched ? rx->before : memory_at(le->start, rx->offset);
    return send_reply_short(rx, &m, data, rx->fail == PTL_NI_OK ? rx->mlength : 0) == RX_GO;
}

/* Sends the data of a get, in as many calls as it takes. */
static enum rx_step send_reply(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    if (rx->reply_left) {
        return RX_GO;
    }
    if (rx->local != NULL) {
        return answer_self(rx);
    }
    if (rx->peer->fabric == NULL) { /* it has gone, and its message had left the channel */
        rx->fail = rx->fail == PTL_NI_OK ? PTL_NI_UNDELIVERABLE : rx->fail;
        return RX_GO;
    }
    if (rx->reply_started || must_wait(rx) || !send_acks(rx)) {
        return RX_WAIT;
    }
    COUNT_PATH(send_reply);
    struct message m;
    struct memory from = {NULL, NULL, 0};
    uint64_t length = rx->fail == PTL_NI_OK ? rx->mlength : 0;
    fill_response(rx, MESSAGE_REPLY, rx->response_list, &m);
    if (rx->fail == PTL_NI_OK && rx->m->type == MESSAGE_FETCH) {
        from.base = rx->before;
    } else if (rx->fail == PTL_NI_OK) {
        from = le_memory(rx->le, rx->offset);
    }
    if (from.vector == NULL && length < nic->short_end) {
        return send_reply_short(rx, &m, from.base, length);
    }
    memset(&rx->reply, 0, sizeof(rx->reply));
    memcpy(rx->reply.header, &m, sizeof(m));
    rx->reply.base = from.base;
    rx->reply.vector = from.vector;
    rx->reply.skip = from.skip;
    rx->reply.length = length;
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
        rx->fail = (ptl_ni_fail_t)rx->reply.fault;
    }
    return RX_GO;
}

void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status)
{
    struct rx *rx = container_of(tx, struct rx, reply);
    rx->reply_left = true;
    if (status != FABRIC_OK) {
        rx->fail = (ptl_ni_fail_t)status;
    }
    if (rx->away) {
        invoke_stir(rx);
    }
}

static inline void count_done(const struct rx *rx)
{
    switch (rx->m->type) {
    case MESSAGE_PUT:
        COUNT_PATH(done_put);
        break;
    case MESSAGE_GET:
        COUNT_PATH(done_get);
        break;
    case MESSAGE_ATOMIC:
        COUNT_PATH(done_atomic);
        break;
    default:
        COUNT_PATH(done_fetch);
        break;
    }
}

static enum rx_step request_done(struct rx *rx)
{
    if (rx_handlers_ran(rx) && !rx->event_posted && handlers_completion(rx) == RX_WAIT) {
        return RX_WAIT;
    }
    if (rx->fail != PTL_NI_OK && rx->fail != PTL_NI_SEGV && rx->le == NULL) {
        rx->mlength = 0;
    }
    count_done(rx);
    if (rx->m->type == MESSAGE_GET || rx->m->type == MESSAGE_FETCH) {
        if (send_reply(rx) == RX_WAIT) {
            return RX_WAIT;
        }
        finish_entry(rx);
        return RX_GO;
    }
    finish_entry(rx);
    return rx->response_due ? send_ack(rx) : RX_GO;
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
        if (status == FABRIC_OK && short_payload && rx->fail == PTL_NI_OK) {
            status = FABRIC_SEGV;
        }
        if (status != FABRIC_OK && rx->fail == PTL_NI_OK) {
            if (rx_handlers_ran(rx)) {
                handlers_torn(rx, (ptl_ni_fail_t)status);
            } else {
                rx->fail = (ptl_ni_fail_t)status;
            }
        }
        if (request_done(rx) == RX_WAIT) {
            return RX_WAIT;
        }
    }
    rx_reset(rx);
    return RX_GO;
}
