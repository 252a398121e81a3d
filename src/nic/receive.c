/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive: which entry or operation a header is for, and where its payload goes; for a message that
 * has come whole, and for one that comes in parts. */
#include "nic/receive.h"

#include "base/paths.h"
#include "nic/answer.h"
#include "nic/ask.h"
#include "nic/lookup.h"
#include "nic/spin_calls.h"
#include "nic/stages.h"
#include "nic/turn.h"

#include <string.h>

/* Puts the header of a message, which an entry of the overflow list takes, among the unexpected
 * ones. */
static void file_header(struct rx *rx, struct le *le)
{
    struct unexpected *u = rx->at.unexpected;
    u->le = le;
    u->busy = true;
    struct match_header key = target_key(&rx->at, rx->m);
    u->header.key.bits = key.bits;
    u->header.key.nid = key.nid;
    u->header.key.pid = key.pid;
    target_event(rx, rx->m, &rx->at, &u->event, false);
    u->event.type++; /* PUT to PUT_OVERFLOW, and so on */
    le->headers++;
    unexpected_add(&rx->at.pt->unexpected, &u->header);
}

/* Takes the entry for the message: sets the length and offset that it gets, and counts it as a
 * user. Advances the managed offset, and takes out an entry that the message uses up. */
static void take_entry(struct rx *rx, struct le *le)
{
    bool local = (le->options & PTL_ME_MANAGE_LOCAL) != 0;
    rx->at.le = le;
    rx->at.offset = le_offset(le, rx->m->remote_offset);
    target_place(&rx->at, rx->m);
    rx->at.list = le->list;
    le->users++;
    rx->at.pt->users++;
    if (rx->at.unexpected != NULL) {
        file_header(rx, le);
    }
    if (local) {
        le->offset += rx->at.mlength;
    }
    if ((le->options & PTL_ME_USE_ONCE) != 0 && le->handlers != NULL) {
        if (rx->tick) {
            return;
        }
        /* The entry is reserved, not taken out: a handler may say PENDING, and then it stays. */
        le->handlers->taken = true;
        le_reserve(le, true);
        rx->at.reserved = true;
    } else if ((le->options & PTL_ME_USE_ONCE) != 0 || (local && le_is_undercut(le) && !rx->tick)) {
        le_take_out(le);
    }
}

/* Whether the message shall wait (rx->held). Then it forgets its lookup, which it will make
 * anew. */
static inline bool let_wait(struct rx *rx)
{
    if (!rx->held) {
        return false;
    }
    rx->held = false;
    rx->at.ni = NULL;
    rx->at.fail = PTL_NI_OK;
    return true;
}

/* Has a message for an entry without handlers wait: an earlier one of its sender is still at
 * handlers, and must not be overtaken. */
__attribute__((noinline)) static void wait_behind(struct rx *rx)
{
    if (rx->at.unexpected != NULL) {
        table_drop(&rx->at.ni->unexpected, rx->at.unexpected);
        rx->at.unexpected = NULL;
    }
    rx->held = true;
}

static inline bool must_wait_behind(const struct rx *rx, const struct le *le)
{
    return !list_empty(&rx->peer->detached) && le != NULL && le->handlers == NULL &&
           rx->class != FABRIC_ASK;
}

/* Decides what becomes of a request: it takes the entry, if the lookup has found one. */
static void decide(struct rx *rx, struct le *le)
{
    target_count_request(rx->peer->nic, rx->m->type - MESSAGE_PUT, rx->m->length);
    if (rx->at.ni != NULL) {
        rx->at.ni->in_flight++;
        if (le != NULL) { /* of that NI, so only if there is one */
            take_entry(rx, le);
        }
    }
    rx->decided = true;
}

void rx_adopt(struct rx *rx, struct le *le)
{
    rx->at.ni = le->ni;
    rx->at.pt = &le->ni->pts[le->pt_index];
    decide(rx, le);
}

static enum rx_step atomic_header(struct rx *rx)
{
    if (rx->at.fail != PTL_NI_OK || rx->f.torn || rx->applied || rx->f.length == 0) {
        return RX_GO;
    }
    if (rx->f.first == NULL) {
        return RX_FIRST;
    }
    rx_apply(rx, rx->f.first);
    rx->f.tells = true; /* it has no handlers, and all that is left in virtual time is to tell */
    return RX_GO;
}

/* Whether the initiator has withdrawn this ask. If so the target answers FAIL_WITHDRAWN, and does
 * nothing. */
static bool is_withdrawn(struct rx *rx)
{
    if (rx->class != FABRIC_ASK || !ask_is_withdrawn(rx->peer)) {
        return false;
    }
    rx->at.fail = FAIL_WITHDRAWN;
    rx->decided = true;
    ask_decided(rx->peer);
    return true;
}

static enum rx_step request_header(struct rx *rx)
{
    if (!rx->decided && is_withdrawn(rx)) {
        rx->f.matched = true;
        return RX_GO;
    }
    if (!rx->decided) {
        COUNT_PATH(header_request);
        if (!rx->peer->nic->fastpath) {
            rx_forget_found(rx);
        }
        rx->at.response_due = rx->m->cookie != 0;
        struct le *le = rx_look_up(rx, &rx->at.fail);
        if (must_wait_behind(rx, le)) {
            wait_behind(rx);
        }
        if (let_wait(rx)) {
            bool turn =
                /* an ask also waits for requests */
                rx->held_by_turn && rx->class != FABRIC_ASK;
            rx->held_by_turn = false;
            return turn ? RX_TURN : RX_WAIT;
        }
        decide(rx, le);
        if (rx->class == FABRIC_ASK) {
            ask_decided(rx->peer);
        }
    }
    rx->f.matched = true;
    if (turn_waits_to_begin(rx)) {
        return RX_TURN;
    }
    if (rx_has_handlers(rx)) {
        if (!rx->header_begun && detach_may(rx)) {
            if (rx->f.behind) {
                return RX_TURN; /* acks and replies leave in the order of the messages: detach.c */
            }
            if (detach(rx)) {
                return RX_GO;
            }
        }
        enum rx_step step = handlers_header(rx);
        return step == RX_GO && turn_waits_to_write(rx) ? RX_TURN : step;
    }
    if (rx_is_atomic(rx)) {
        return atomic_header(rx);
    }
    if (rx->at.fail == PTL_NI_OK && rx->m->type == MESSAGE_PUT) {
        rx_lend(rx, le_memory(rx->at.le, rx->at.offset), rx->at.mlength);
    }
    return RX_GO;
}

/* Whether another message in progress already brings this reply, and has the memory lent to it. */
static inline bool is_second_reply(const struct rx *rx, const struct op *op)
{
    return rx->m->type == MESSAGE_REPLY && op->replying;
}

static enum rx_step response_header(struct rx *rx)
{
    COUNT_PATH(header_response);
    if (rx->m->type >= MESSAGE_ACKS) {
        return RX_GO;
    }
    rx->cookie = rx->m->cookie;
    struct op *op = rx_op(rx);
    if (op == NULL || is_second_reply(rx, op)) {
        rx->cookie = 0; /* the response ends no operation */
        rx->peer->nic->stats->malformed++;
    } else if (rx->m->type == MESSAGE_REPLY && op->ni != NULL) {
        op->replying = true;
        rx_lend(rx, *request_reply_memory(&op->request), op->request.length);
    }
    return RX_GO;
}

static inline bool is_fail_type(uint8_t value)
{
    return value <= PTL_NI_SEGV || value == PTL_NI_HANDLER_FAIL ||
           value == PTL_NI_HANDLER_TIMEOUT || value == FAIL_WITHDRAWN;
}

/* Whether a message is sound: of a type that its class allows, with fields in range, and the
 * payload that its header says it has. */
static inline bool message_sound(const struct rx *rx)
{
    const struct message *m = rx->m;
    switch (m->type) {
    case MESSAGE_ATOMIC:
    case MESSAGE_FETCH:
        return rx_atomic_sound(rx);
    case MESSAGE_PUT:
        return rx->class == FABRIC_REQUEST && m->ack <= PTL_OC_ACK_REQ &&
               (m->length == rx->f.length || rx->f.length == 0);
    case MESSAGE_GET:
        return rx->class != FABRIC_RESPONSE && rx->f.length == 0 && m->cookie != 0;
    case MESSAGE_ACK:
    case MESSAGE_REPLY:
        return rx->class == FABRIC_RESPONSE && is_fail_type(m->ack) && m->op <= PTL_OVERFLOW_LIST;
    case MESSAGE_ACKS:
        return rx->class == FABRIC_RESPONSE && rx->f.length == 0 &&
               acks_count((const struct message_acks *)m) <= ACKS_MOST;
    case MESSAGE_WITHDRAW:
        return rx->class == FABRIC_RESPONSE && rx->f.length == 0;
    default:
        return false;
    }
}

/* Ends a message that was taken in one step: clears what the lookup has set. */
static inline enum rx_step over(struct rx *rx)
{
    rx->at.ni = NULL;
    rx->at.le = NULL;
    rx->at.fail = PTL_NI_OK;
    rx->done = 0;
    return RX_GO;
}

/* Take, in one step, a put or an atomic; and a get or an atomic that fetches, that has found a
 * plain entry. The reply leaves before the event is posted. If reply or ack cannot leave at once,
 * the message goes on in stages. */
static inline enum rx_step put_plain(struct rx *rx, const void *payload)
{
    unsigned options = rx->at.le->options;
    if (likely(put_at_entry(rx, rx->m, &rx->at, payload, false))) {
        return over(rx);
    }
    rx->response_silent = (options & PTL_ME_ACK_DISABLE) != 0;
    rx->event_posted = rx->decided = true;
    rx->at.le = NULL;
    rx->at.ni->in_flight++;
    return rx_done(rx->peer, &rx->f, FABRIC_OK);
}

__attribute__((noinline)) static enum rx_step get_plain(struct rx *rx, const void *payload)
{
    struct le *le = rx->at.le;
    COUNT_PATH(plain_fetching);
    rx->at.list = le->list;
    target_place(&rx->at, rx->m);
    if (rx->m->type == MESSAGE_FETCH) {
        rx_apply(rx, payload);
    }
    if (!rx_reply_at_once(rx)) {
        decide(rx, le);
        return rx_done(rx->peer, &rx->f, FABRIC_OK);
    }
    rx_tell(rx);
    if ((le->options & PTL_ME_USE_ONCE) != 0) {
        le_use_up(le);
    }
    target_count_request(rx->peer->nic, rx->m->type - MESSAGE_PUT, rx->m->length);
    return over(rx);
}

/* Takes a message that has come whole, and was decided, through the stages, if nothing in them
 * makes it wait and no handler wants its packets. */
static enum rx_step go_through(struct rx *rx, const void *payload)
{
    rx->f.first = payload;
    rx->f.sink = RX_DISCARD;
    if (request_header(rx) != RX_GO) {
        return RX_FIRST;
    }
    if (rx->f.sink == RX_PACKETS) {
        return RX_HEADED;
    }
    enum fabric_status status = FABRIC_OK;
    if (rx->f.sink == RX_DEPOSIT && rx_deposit(&rx->f, payload) != 0) {
        status = FABRIC_SEGV;
    }
    return rx_done(rx->peer, &rx->f, status);
}

/* Takes a response that has come whole. */
static enum rx_step response_short(struct rx *rx, const void *payload)
{
    if (!message_sound(rx)) {
        return RX_FIRST;
    }
    COUNT_PATH(short_response);
    if (rx->m->type >= MESSAGE_ACKS) {
        response_done(rx, FABRIC_OK);
        return RX_GO;
    }
    rx->cookie = rx->m->cookie;
    struct op *op = rx_op(rx);
    enum fabric_status status = FABRIC_OK;
    op = op != NULL && likely(!is_second_reply(rx, op)) ? op : NULL;
    if (op == NULL) {
        rx->peer->nic->stats->malformed++;
    } else if (rx->m->type == MESSAGE_REPLY && op->ni != NULL) {
        uint64_t room = op->request.length < rx->f.length ? op->request.length : rx->f.length;
        if (memory_write(request_reply_memory(&op->request), payload, room) != 0) {
            status = FABRIC_SEGV;
        }
    }
    if (op != NULL) {
        response_end(rx, op, status);
    }
    rx->cookie = 0;
    return RX_GO;
}

/* message_sound() for the usual case, a put that has come whole. */
static inline bool is_whole_put(const struct rx *rx)
{
    return rx->m->type == MESSAGE_PUT && rx->class == FABRIC_REQUEST &&
           rx->m->length == rx->f.length && rx->m->ack <= PTL_OC_ACK_REQ;
}

/* Forgets the lookup, and returns RX_FIRST: the message waits its turn, and begins again at its
 * header. */
__attribute__((noinline)) static enum rx_step begin_anew(struct rx *rx)
{
    wait_behind(rx);
    let_wait(rx);
    return RX_FIRST;
}

enum rx_step rx_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    struct rx *rx = (struct rx *)f;
    bool put = is_whole_put(rx);
    if (unlikely(!put)) {
        if (rx->class == FABRIC_RESPONSE) {
            return response_short(rx, payload);
        }
        /* A header without its payload means that the sender could not read the data. */
        bool get = rx->m->type == MESSAGE_GET;
        if ((rx->m->length != 0 && f->length == 0 && !get) ||
            (rx->local == NULL && !message_sound(rx))) {
            return RX_FIRST;
        }
    }
    rx->at.response_due = rx->m->cookie != 0;
    struct le *le = rx_look_up(rx, &rx->at.fail);
    if (unlikely(must_wait_behind(rx, le))) {
        return begin_anew(rx);
    }
    bool fetches = rx->m->type == MESSAGE_GET || rx->m->type == MESSAGE_FETCH;
    if (likely(le != NULL && le->plain)) {
        rx->at.le = le;
        rx->at.offset = rx->m->remote_offset;
        return fetches ? get_plain(rx, payload) : put_plain(rx, payload);
    }
    if (let_wait(rx)) {
        return RX_FIRST;
    }
    COUNT_PATH_OF(short_entry, le == NULL ? 1 : le->handlers != NULL ? 2 : 0);
    decide(rx, le);
    return go_through(rx, payload);
}

enum rx_step staged_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    return RX_FIRST;
}

/* What is not sound is not done. A request for which somebody waits is answered so: its sender may
 * keep the rules and have longer packets than this NIC. */
static __attribute__((cold)) void refuse(struct rx *rx)
{
    uint8_t type = rx->m->type;
    bool asks = type >= MESSAGE_PUT && type <= MESSAGE_FETCH && rx->class != FABRIC_RESPONSE;
    rx->peer->nic->stats->malformed++;
    rx->decided = true;
    rx->at.fail = PTL_NI_DROPPED;
    rx->at.response_due = rx->m->cookie != 0;
    if (!asks || rx->m->cookie == 0) {
        rx->m->type = 0; /* discarded; rx_done() forgets it */
    }
    if (rx->class == FABRIC_ASK) {
        ask_decided(rx->peer);
    }
}

enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    if (!rx->decided && !message_sound(rx)) {
        refuse(rx);
        return RX_GO;
    }
    switch (rx->m->type) {
    case MESSAGE_PUT:
    case MESSAGE_GET:
    case MESSAGE_ATOMIC:
    case MESSAGE_FETCH:
        return request_header(rx);
    case MESSAGE_ACK:
    case MESSAGE_REPLY:
    case MESSAGE_ACKS:
    case MESSAGE_WITHDRAW:
        return response_header(rx);
    default:
        return RX_GO;
    }
}

enum rx_step rx_packet(struct nic_peer *peer, struct fabric_rx *f, void *data, uint64_t offset,
                       size_t length)
{
    return handlers_packet((struct rx *)f, data, offset, length);
}
