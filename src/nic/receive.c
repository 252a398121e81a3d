/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive and match: what a header is for, whether it may, and where its
 * payload goes. Checks come in the order of the specification: interface,
 * portal table entry, match, permissions, then length and offset.
 */
#include "nic/stages.h"

#include "base/paths.h"
#include "nic/atomic.h"

#include <string.h>

/* Between two messages of a flood there is less than this. */
#define FLOOD_GAP_NS 50000

struct fits_context {
    struct match_header header;
    uint64_t remote_offset;
    const struct nic_peer *peer;
    const struct match_entry **kept; /* the first that fits but for a message of this peer, */
    bool *in_channel;                /* which has not left its channel */
    bool *refused;                   /* one that has its key does not fit, or not now */
};

static bool entry_fits(const struct match_entry *entry, const struct match_header *header)
{
    const struct le *le = container_of(entry, struct le, match);
    const struct fits_context *c = container_of(header, struct fits_context, header);
    bool fits = le_fits(le, c->remote_offset, header->length);
    bool left = fits && le->reserved && detach_keeps(c->peer, le);
    bool kept = left || (fits && le->reserved && turn_keeps(c->peer, le));
    if (kept && (*c->kept == NULL || entry->sequence < (*c->kept)->sequence)) {
        *c->kept = entry;
        *c->in_channel = !left;
    }
    *c->refused |= !fits || le->reserved;
    return fits && !le->reserved;
}

/* The first entry of a list that the message matches. It waits where that is one that a message
 * before it may yet leave there. */
static struct le *first_of(struct rx *rx, struct match_list *list, struct fits_context *c)
{
    const struct match_entry *kept = NULL;
    bool in_channel = false;
    c->kept = &kept;
    c->in_channel = &in_channel;
    struct match_entry *e = match_first(list, &c->header);
    if (kept != NULL && (e == NULL || kept->sequence < e->sequence)) {
        rx->held = true;
        rx->held_by_turn = in_channel;
        return NULL;
    }
    return e == NULL ? NULL : container_of(e, struct le, match);
}

/* What a search found, if that was for such a header and the entry fits. */
static inline struct le *found_before(const struct pt *pt, const struct fits_context *c)
{
    const struct found *f = &pt->found;
    if (f->le == NULL || f->bits != c->header.bits || f->nid != c->header.nid ||
        f->pid != c->header.pid) {
        return NULL;
    }
    bool fits = !f->le->reserved && le_fits(f->le, c->remote_offset, c->header.length);
    return !f->le->match.picky || fits ? f->le : NULL;
}

static inline void note_found(struct pt *pt, struct le *le, const struct match_header *h)
{
    pt->found = (struct found){le, h->nid, h->pid, h->bits};
}

/* The entry that the message matches: of the priority list, or else of the overflow list. */
static struct le *find_entry(struct rx *rx, struct pt *pt)
{
    struct fits_context c;
    c.header.bits = rx->m->match_bits;
    c.header.pid = 0;
    if (ni_is_logical(rx->at.ni)) {
        c.header.nid = rx->m->rank;
    } else {
        c.header.nid = rx->peer->nid;
        c.header.pid = rx->peer->pid;
    }
    if (usual(pt->recent != NULL && match_is_first(&pt->priority, &pt->recent->match, &c.header))) {
        COUNT_PATH(match_recent);
        return pt->recent;
    }
    c.header.fits = entry_fits;
    c.header.length = rx->m->length;
    c.remote_offset = rx->m->remote_offset;
    struct le *le = found_before(pt, &c);
    if (le != NULL) {
        COUNT_PATH(match_found);
        return le;
    }
    COUNT_PATH(match_search);
    bool refused = false;
    c.refused = &refused;
    c.peer = rx->peer;
    le = pt->recent = first_of(rx, &pt->priority, &c);
    if (le != NULL && !refused && le_lasts(le)) {
        note_found(pt, le, &c.header);
    }
    bool over = le == NULL && !rx->held && pt->overflow.entries != 0;
    return over ? first_of(rx, &pt->overflow, &c) : le;
}

static struct le *drop(struct rx *rx, ptl_sr_index_t reg)
{
    rx->at.ni->registers[reg]++;
    return NULL;
}

static inline bool check_permission(struct rx *rx, const struct le *le, ptl_ni_fail_t *fail)
{
    unsigned needed = rx->m->type == MESSAGE_GET     ? PTL_ME_OP_GET
                      : rx->m->type == MESSAGE_FETCH ? PTL_ME_OP_GET | PTL_ME_OP_PUT
                                                     : PTL_ME_OP_PUT;
    *fail = le_permits(le, rx->peer->uid, needed);
    if (rare(*fail != PTL_NI_OK)) {
        drop(rx, *fail == PTL_NI_PERM_VIOLATION ? PTL_SR_PERMISSION_VIOLATIONS
                                                : PTL_SR_OPERATION_VIOLATIONS);
    }
    return *fail == PTL_NI_OK;
}

/* Files the header of a message that the overflow list takes. */
static void file_header(struct rx *rx, struct le *le)
{
    struct unexpected *u = rx->at.unexpected;
    u->le = le;
    u->busy = true;
    u->header.key.bits = rx->m->match_bits;
    u->header.key.nid =
        ni_is_logical(rx->at.ni) ? rx->at.initiator.rank : rx->at.initiator.phys.nid;
    u->header.key.pid = ni_is_logical(rx->at.ni) ? 0 : rx->at.initiator.phys.pid;
    target_event(rx, rx->m, &rx->at, &u->event, KNOWN_NOTHING);
    u->event.type++; /* PUT to PUT_OVERFLOW, and so on */
    le->headers++;
    unexpected_add(&rx->at.pt->unexpected, &u->header);
}

/* Takes the entry for the message: length, offset, and what that does to it. */
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
        /* A handler may say PENDING, and then the entry stays. */
        le->handlers->taken = true;
        le->reserved = true;
        le->match.picky = true;
        rx->at.reserved = true;
    } else if ((le->options & PTL_ME_USE_ONCE) != 0 ||
               (local && le->min_free != 0 && le->length - le->offset < le->min_free &&
                !rx->tick)) {
        le_take_out(le);
    }
}

/*
 * Whether a message that flow control has no room for is to wait: its channel stands still
 * then, and the sender is held back. A program that is at work takes its events meanwhile or
 * opens the portal table entry again, and nobody has to recover. Those that come behind one that
 * waited in vain are of the same flood: they are refused at once. A message to oneself never waits,
 * whichever way it goes: the program that it would wait for may be the one that sends it.
 */
__attribute__((noinline)) static bool may_wait(struct rx *rx)
{
    const struct nic *nic = rx->peer->nic;
    int64_t patience = nic->process->options.number[OPT_FLOWCTRL_MS] * 1000000;
    if (patience == 0 || rx->peer->self) {
        return false;
    }
    int64_t now = nic->now();
    int64_t *refused_at = &rx->peer->rx[FABRIC_REQUEST]->refused_at;
    bool same_flood = *refused_at != 0 && now - *refused_at < FLOOD_GAP_NS;
    if (rx->wait_end == 0 && !same_flood) {
        rx->wait_end = now + patience;
        nic->board->waited++;
    }
    rx->held = now < rx->wait_end;
    if (!rx->held) {
        *refused_at = now;
    }
    return rx->held;
}

/* A message that there is no room for waits, is dropped, or closes the portal table entry. */
__attribute__((noinline)) static struct le *no_room(struct rx *rx, struct pt *pt,
                                                    const struct le *le, ptl_ni_fail_t *fail)
{
    *fail = PTL_NI_DROPPED;
    if ((pt->options & PTL_PT_FLOWCTRL) != 0) {
        if (may_wait(rx)) {
            return NULL;
        }
        *fail = PTL_NI_PT_DISABLED;
        pt_refuse(rx->at.ni, rx->m->pt_index, le);
    }
    return drop(rx, PTL_SR_DROP_COUNT);
}

/* Finds room for the event and the unexpected header of a message. */
__attribute__((noinline)) static bool find_room(struct rx *rx, const struct pt *pt,
                                                const struct le *le)
{
    bool header = le_leaves_header(le);
    if (!pt_queue_has_room(pt)) {
        return false;
    }
    rx->at.unexpected = header ? table_add(&rx->at.ni->unexpected) : NULL;
    return !header || rx->at.unexpected != NULL;
}

/* Finds the entry that a message is for, or says why there is none. */
static inline struct le *look_up(struct rx *rx, ptl_ni_fail_t *fail)
{
    struct nic *nic = rx->peer->nic;
    struct ni *ni = rx->m->ni < NI_KINDS ? nic->ni[rx->m->ni] : NULL;
    *fail = PTL_NI_DROPPED;
    if (ni == NULL) {
        return NULL;
    }
    rx->at.ni = ni;
    if (!ni_is_logical(ni)) {
        uint64_t id = nic_peer_id(rx->peer);
        memcpy(&rx->at.initiator, &id, sizeof(rx->at.initiator));
    } else if (rx_rank_is_true(rx, ni)) {
        rx->at.initiator.rank = rx->m->rank;
    } else {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    if (rx->m->pt_index > (unsigned)ni->limits.max_pt_index) {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    struct pt *pt = rx->at.pt = &ni->pts[rx->m->pt_index];
    if (rare(!pt->allocated || !pt->enabled)) {
        if (pt->refusing && may_wait(rx)) {
            return NULL;
        }
        *fail = pt->allocated ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    struct le *le = find_entry(rx, pt);
    if (le == NULL) {
        return rx->held ? NULL : no_room(rx, pt, NULL, fail);
    }
    *fail = PTL_NI_OK;
    if (!check_permission(rx, le, fail)) {
        return NULL;
    }
    bool room = le->plain ? pt_queue_has_room(pt) : find_room(rx, pt, le);
    return room ? le : no_room(rx, pt, le, fail);
}

/* Whether the message is to come again when there may be room. */
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

/* A message for an entry without handlers does not pass one of its sender that is at handlers. */
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
    return !list_empty(&rx->peer->detached) && le != NULL && le->handlers == NULL;
}

/* What becomes of a request; the entry, if there is one, is the message's then. */
static void decide(struct rx *rx, struct le *le)
{
    target_count_request(rx->peer->nic, rx->m, KNOWN_NOTHING);
    if (rx->at.ni != NULL) {
        rx->at.ni->in_flight++;
        if (le != NULL) { /* it is of that NI */
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
    return RX_GO;
}

/* The message's entry is to be searched for, whatever was found before. */
static void forget_found(const struct rx *rx)
{
    const struct message *m = rx->m;
    struct ni *ni = m->ni < NI_KINDS ? rx->peer->nic->ni[m->ni] : NULL;
    if (ni != NULL && m->pt_index <= (unsigned)ni->limits.max_pt_index) {
        ni->pts[m->pt_index].recent = NULL;
        ni->pts[m->pt_index].found.le = NULL;
    }
}

static enum rx_step request_header(struct rx *rx)
{
    if (!rx->decided) {
        COUNT_PATH(header_request);
        if (!rx->peer->nic->fastpath) {
            forget_found(rx);
        }
        rx->at.response_due = rx->m->cookie != 0;
        struct le *le = look_up(rx, &rx->at.fail);
        if (must_wait_behind(rx, le)) {
            wait_behind(rx);
        }
        if (let_wait(rx)) {
            bool turn = rx->held_by_turn;
            rx->held_by_turn = false;
            return turn ? RX_TURN : RX_WAIT;
        }
        decide(rx, le);
    }
    rx->f.matched = true;
    if (turn_waits_to_begin(rx)) {
        return RX_TURN;
    }
    if (rx_has_handlers(rx)) {
        /* One behind others stays in the channel: it is its place that tells when it may end. */
        enum rx_step step =
            !rx->f.behind && !rx->header_begun && detach(rx) ? RX_GO : handlers_header(rx);
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

static enum rx_step response_header(struct rx *rx)
{
    COUNT_PATH(header_response);
    if (rx->m->type == MESSAGE_ACKS) {
        return RX_GO;
    }
    rx->cookie = rx->m->cookie;
    struct op *op = rx_op(rx);
    if (op == NULL) {
        rx->peer->nic->board->malformed++;
    } else if (rx->m->type == MESSAGE_REPLY && op->ni != NULL) {
        rx_lend(rx, *request_reply_memory(&op->request), op->request.length);
    }
    return RX_GO;
}

static inline bool is_fail_type(uint8_t value)
{
    return value <= PTL_NI_SEGV || value == PTL_NI_HANDLER_FAIL || value == PTL_NI_HANDLER_TIMEOUT;
}

/* The payload that a request says it has must be the one that came. */
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
        return rx->class == FABRIC_REQUEST && rx->f.length == 0 && m->cookie != 0;
    case MESSAGE_ACK:
    case MESSAGE_REPLY:
        return rx->class == FABRIC_RESPONSE && is_fail_type(m->ack) && m->op <= PTL_OVERFLOW_LIST;
    case MESSAGE_ACKS:
        return rx->class == FABRIC_RESPONSE && rx->f.length == 0 &&
               acks_count((const struct message_acks *)m) <= ACKS_MOST;
    default:
        return false;
    }
}

/* The message is over, in one step. */
static inline enum rx_step over(struct rx *rx)
{
    rx->at.ni = NULL;
    rx->at.le = NULL;
    rx->at.fail = PTL_NI_OK;
    rx->applied = rx->reply_left = false;
    return RX_GO;
}

/* A put or an atomic, and then a get or an atomic that fetches, that finds a plain entry. The reply
 * leaves before the event; if it, or an ack, cannot leave at once, the message goes on as any
 * other. */
static inline enum rx_step put_plain(struct rx *rx, const void *payload)
{
    unsigned options = rx->at.le->options;
    if (usual(put_at_entry(rx, rx->m, &rx->at, payload, KNOWN_NOTHING))) {
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
    target_count_request(rx->peer->nic, rx->m, KNOWN_NOTHING);
    return over(rx);
}

/* A message that finds handlers ends at once as well, if its header handler neither waits nor
 * asks for payload handlers. */
static enum rx_step short_to_handlers(struct rx *rx, const void *payload)
{
    rx->f.first = payload;
    rx->f.first_length = rx->f.length;
    rx->f.sink = RX_DISCARD;
    if (handlers_header(rx) != RX_GO) {
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

/* A response that is here whole. */
static enum rx_step response_short(struct rx *rx, const void *payload)
{
    if (!message_sound(rx)) {
        return RX_FIRST;
    }
    COUNT_PATH(short_response);
    if (rx->m->type == MESSAGE_ACKS) {
        response_done(rx, FABRIC_OK);
        return RX_GO;
    }
    rx->cookie = rx->m->cookie;
    struct op *op = rx_op(rx);
    enum fabric_status status = FABRIC_OK;
    if (op == NULL) {
        rx->peer->nic->board->malformed++;
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

/* The usual case of message_sound(). */
static inline bool is_whole_put(const struct rx *rx)
{
    return rx->m->type == MESSAGE_PUT && rx->class == FABRIC_REQUEST &&
           rx->m->length == rx->f.length && rx->m->ack <= PTL_OC_ACK_REQ;
}

/* Forgets what was looked up: the message goes the ordinary way, which begins with its header. */
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
    if (rare(!put)) {
        if (rx->class == FABRIC_RESPONSE) {
            return response_short(rx, payload);
        }
        /* A header without its payload says that the sender could not read it. */
        bool get = rx->m->type == MESSAGE_GET;
        if ((rx->m->length != 0 && f->length == 0 && !get) || (rx->local != NULL && get) ||
            (rx->local == NULL && !message_sound(rx))) {
            return RX_FIRST;
        }
    }
    rx->at.response_due = rx->m->cookie != 0;
    struct le *le = look_up(rx, &rx->at.fail);
    if (rare(must_wait_behind(rx, le))) {
        return begin_anew(rx);
    }
    bool fetches = rx->m->type == MESSAGE_GET || rx->m->type == MESSAGE_FETCH;
    if (usual(le != NULL && le->plain)) {
        rx->at.le = le;
        rx->at.offset = rx->m->remote_offset;
        return fetches ? get_plain(rx, payload) : put_plain(rx, payload);
    }
    if (le != NULL && rx->m->type == MESSAGE_GET) {
        return begin_anew(rx);
    }
    if (let_wait(rx)) {
        return RX_FIRST;
    }
    decide(rx, le);
    if (rx_has_handlers(rx)) {
        if (detach_short(rx, payload)) {
            COUNT_PATH(short_detached);
            return RX_GO;
        }
        COUNT_PATH(short_handlers);
        return short_to_handlers(rx, payload);
    }
    if (le == NULL) {
        COUNT_PATH(short_refused);
    } else {
        COUNT_PATH(short_entry);
        target_write(rx, rx->m, &rx->at, payload, KNOWN_NOTHING);
    }
    return rx_done(peer, f, FABRIC_OK);
}

enum rx_step staged_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    (void)peer;
    (void)f;
    (void)payload;
    return RX_FIRST;
}

enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    if (!rx->decided && !message_sound(rx)) {
        peer->nic->board->malformed++;
        rx->m->type = 0;
        rx->decided = true;
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
        return response_header(rx);
    default:
        return RX_GO; /* discarded; rx_done() forgets it */
    }
}

enum rx_step rx_packet(struct nic_peer *peer, struct fabric_rx *f, void *data, uint64_t offset,
                       size_t length)
{
    return handlers_packet((struct rx *)f, data, offset, length);
}
