/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive and match: what a header is for, whether it may, and where its
 * payload goes. Checks come in the order of the specification: interface,
 * portal table entry, match, permissions, then length and offset.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class)
{
    struct rx *rx = calloc(1, sizeof(*rx));
    if (rx == NULL) {
        return NULL;
    }
    rx->peer = peer;
    rx->class = class;
    rx->m = (struct message *)rx->f.header;
    peer->rx[class] = rx;
    return &rx->f;
}

void rx_free(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    peer->rx[rx->class] = NULL;
    handlers_free(rx);
    free(rx);
}

void rx_reset(struct rx *rx)
{
    if (rx->ni != NULL) {
        rx->ni->in_flight--;
    }
    rx->ni = NULL;
    rx->le = NULL;
    rx->decided = rx->event_posted = false;
    rx->response_due = rx->response_silent = false;
    rx->reply_started = rx->reply_left = rx->reserved = rx->header_begun = false;
    rx->fail = PTL_NI_OK;
    rx->mlength = 0;
    rx->cookie = 0;
}

struct op *rx_op(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    if (rx->cookie == 0 || handle_kind(rx->cookie) != HANDLE_OP) {
        return NULL;
    }
    struct op *op = table_get(&nic->operations, rx->cookie);
    bool get = rx->m->type == MESSAGE_REPLY;
    return op != NULL && op->peer == rx->peer && op->expects && (op->request.kind == OP_GET) == get
               ? op
               : NULL;
}

/* Room for `length` bytes is left in the entry at the offset it would use. */
static bool fits_whole(const struct match_entry *entry, uint64_t length, uint64_t remote_offset)
{
    const struct le *le = container_of(entry, struct le, match);
    uint64_t offset = (le->options & PTL_ME_MANAGE_LOCAL) != 0 ? le->offset : remote_offset;
    return offset <= le->length && length <= le->length - offset;
}

struct fits_context {
    struct match_header header;
    uint64_t remote_offset;
};

static bool entry_fits(const struct match_entry *entry, const struct match_header *header)
{
    const struct le *le = container_of(entry, struct le, match);
    const struct fits_context *c = container_of(header, struct fits_context, header);
    return !le->reserved && ((le->options & PTL_ME_NO_TRUNCATE) == 0 ||
                             fits_whole(entry, header->length, c->remote_offset));
}

static struct le *find_entry(struct rx *rx, struct pt *pt)
{
    struct fits_context c;
    c.header.bits = rx->m->match_bits;
    c.header.pid = 0;
    if (ni_is_logical(rx->ni)) {
        c.header.nid = rx->m->rank;
    } else {
        c.header.nid = rx->peer->nid;
        c.header.pid = rx->peer->pid;
    }
    if (pt->recent != NULL && match_is_first(&pt->priority, &pt->recent->match, &c.header)) {
        return pt->recent;
    }
    c.header.fits = entry_fits;
    c.header.length = rx->m->length;
    c.remote_offset = rx->m->remote_offset;
    struct match_entry *e = match_first(&pt->priority, &c.header);
    pt->recent = e == NULL ? NULL : container_of(e, struct le, match);
    return pt->recent;
}

static struct le *drop(struct rx *rx, ptl_sr_index_t reg)
{
    rx->ni->registers[reg]++;
    return NULL;
}

static inline bool check_permission(struct rx *rx, const struct le *le, ptl_ni_fail_t *fail)
{
    unsigned needed = rx->m->type == MESSAGE_GET ? PTL_ME_OP_GET : PTL_ME_OP_PUT;
    if (le->uid != PTL_UID_ANY && le->uid != rx->peer->uid) {
        *fail = PTL_NI_PERM_VIOLATION;
        drop(rx, PTL_SR_PERMISSION_VIOLATIONS);
    } else if ((le->options & needed) == 0) {
        *fail = PTL_NI_OP_VIOLATION;
        drop(rx, PTL_SR_OPERATION_VIOLATIONS);
    }
    return *fail == PTL_NI_OK;
}

/* Where in the entry the message goes and how much of it fits. */
static inline void set_place(struct rx *rx, const struct le *le, uint64_t offset)
{
    uint64_t room = offset < le->length ? le->length - offset : 0;
    rx->offset = offset;
    rx->mlength = rx->m->length < room ? rx->m->length : room;
}

/* Takes the entry for the message: length, offset, and what that does to it. */
static void take_entry(struct rx *rx, struct le *le)
{
    bool local = (le->options & PTL_ME_MANAGE_LOCAL) != 0;
    set_place(rx, le, local ? le->offset : rx->m->remote_offset);
    rx->le = le;
    le->users++;
    rx->ni->pts[le->pt_index].users++;
    if (local) {
        le->offset += rx->mlength;
    }
    if ((le->options & PTL_ME_USE_ONCE) != 0 && le->handlers != NULL) {
        /* A handler may say PENDING, and then the entry stays. */
        le->reserved = true;
        le->match.picky = true;
        rx->reserved = true;
    } else if ((le->options & PTL_ME_USE_ONCE) != 0 ||
               (local && le->min_free != 0 && le->length - le->offset < le->min_free)) {
        le_take_out(le);
    }
}

/* A logical NI knows who may be who: the rank that a message claims must be
 * the peer's own. */
static bool rank_is_true(const struct rx *rx)
{
    const struct ni *ni = rx->ni;
    return rx->m->rank < ni->map_size && ni->map[rx->m->rank].phys.nid == rx->peer->nid &&
           ni->map[rx->m->rank].phys.pid == rx->peer->pid;
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
    rx->ni = ni;
    if (!ni_is_logical(ni)) {
        rx->initiator.phys.nid = rx->peer->nid;
        rx->initiator.phys.pid = rx->peer->pid;
    } else if (rank_is_true(rx)) {
        rx->initiator.rank = rx->m->rank;
    } else {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    if (rx->m->pt_index > (unsigned)ni->limits.max_pt_index) {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    struct pt *pt = &ni->pts[rx->m->pt_index];
    if (!pt->allocated || !pt->enabled) {
        *fail = pt->allocated ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    struct le *le = find_entry(rx, pt);
    if (le == NULL) {
        return drop(rx, PTL_SR_DROP_COUNT);
    }
    *fail = PTL_NI_OK;
    return check_permission(rx, le, fail) ? le : NULL;
}

/* What becomes of a request; the entry, if there is one, is the message's then. */
static void decide(struct rx *rx, struct le *le)
{
    if (rx->ni != NULL) {
        rx->ni->in_flight++;
    }
    if (le != NULL) {
        take_entry(rx, le);
    }
    rx->decided = true;
}

static enum rx_step request_header(struct rx *rx)
{
    if (!rx->decided) {
        rx->response_due = rx->m->cookie != 0;
        decide(rx, look_up(rx, &rx->fail));
    }
    if (rx_has_handlers(rx)) {
        return handlers_header(rx);
    }
    if (rx->fail == PTL_NI_OK && rx->m->type == MESSAGE_PUT) {
        rx->f.sink = RX_DEPOSIT;
        rx->f.base = memory_at(rx->le->start, rx->offset);
        rx->f.room = rx->mlength;
    }
    return RX_GO;
}

static enum rx_step response_header(struct rx *rx)
{
    rx->cookie = rx->m->cookie;
    struct op *op = rx_op(rx);
    if (op == NULL) {
        rx->peer->nic->malformed++;
    } else if (rx->m->type == MESSAGE_REPLY && op->ni != NULL) {
        rx->f.sink = RX_DEPOSIT;
        rx->f.base = (void *)op->request.base;
        rx->f.room = op->request.length;
    }
    return RX_GO;
}

/* The payload that a request says it has must be the one that came. */
static inline bool message_sound(const struct rx *rx)
{
    const struct message *m = rx->m;
    switch (m->type) {
    case MESSAGE_PUT:
        return rx->class == FABRIC_REQUEST && m->ack <= PTL_OC_ACK_REQ &&
               (m->length == rx->f.length || rx->f.length == 0);
    case MESSAGE_GET:
        return rx->class == FABRIC_REQUEST && rx->f.length == 0 && m->cookie != 0;
    case MESSAGE_ACK:
    case MESSAGE_REPLY:
        return rx->class == FABRIC_RESPONSE;
    default:
        return false;
    }
}

static void deposit(struct rx *rx, const struct le *le, const void *payload)
{
    if (rx->mlength != 0 && nic_copy(memory_at(le->start, rx->offset), payload, rx->mlength) != 0) {
        rx->fail = PTL_NI_SEGV;
    }
}

/* A put that finds a plain entry: it does not change that entry, nothing can come in
 * between, and it needs nothing afterwards but an ack, if one is due. */
static enum rx_step put_plain(struct rx *rx, struct le *le, const void *payload)
{
    set_place(rx, le, rx->m->remote_offset);
    deposit(rx, le, payload);
    post_target_event(rx, le);
    if (!rx->response_due) {
        rx->ni = NULL;
        return RX_GO;
    }
    rx->response_silent = (le->options & PTL_ME_ACK_DISABLE) != 0;
    rx->event_posted = true;
    decide(rx, NULL);
    return rx_done(rx->peer, &rx->f, FABRIC_OK);
}

/* A put that finds handlers ends at once as well, if its header handler neither waits nor
 * asks for payload handlers. */
static enum rx_step put_to_handlers(struct rx *rx, const void *payload)
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
    if (rx->f.sink == RX_DEPOSIT && nic_copy(rx->f.base, payload, rx->f.room) != 0) {
        status = FABRIC_SEGV;
    }
    return rx_done(rx->peer, &rx->f, status);
}

enum rx_step rx_short(struct nic_peer *peer, struct fabric_rx *f, const void *payload)
{
    struct rx *rx = (struct rx *)f;
    if (rx->m->length != f->length || rx->m->type != MESSAGE_PUT || !message_sound(rx)) {
        return RX_FIRST;
    }
    rx->response_due = rx->m->cookie != 0;
    struct le *le = look_up(rx, &rx->fail);
    if (le != NULL && le->plain) {
        return put_plain(rx, le, payload);
    }
    decide(rx, le);
    if (rx_has_handlers(rx)) {
        return put_to_handlers(rx, payload);
    }
    if (le != NULL) {
        deposit(rx, le, payload);
    }
    return rx_done(peer, f, FABRIC_OK);
}

enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    if (!rx->decided && !message_sound(rx)) {
        peer->nic->malformed++;
        rx->m->type = 0;
        rx->decided = true;
    }
    switch (rx->m->type) {
    case MESSAGE_PUT:
    case MESSAGE_GET:
        return request_header(rx);
    case MESSAGE_ACK:
    case MESSAGE_REPLY:
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
