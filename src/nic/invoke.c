/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with handlers that are in no channel: those that the host starts, for an entry that it
 * names, and small ones that have left their channel to let the next one pass (HPUs that are
 * threads only). They go through the same stages as others, and this file does for them what a
 * fabric does:
 *
 *   HEADER ──rx_header──► PAYLOAD ──all packets taken──► DONE ──rx_done──► gone
 *      └── RX_WAIT           └── RX_WAIT                   └── RX_WAIT      all: later, again
 *
 * Of one that has left its channel, "detached", its header has been matched, in its turn. Those of
 * a peer are in order in its list `detached`, and this order holds:
 *
 *   - handlers of one entry have one message of a peer at a time: each waits for the ones before
 *     it, as one in the channel does;
 *   - acks leave in the order of the messages, also that of the one in the channel;
 *   - a message for an entry without handlers waits, in its channel, until none is left: who sends
 *     to such an entry last may rely on all that he has sent before.
 *
 * The data is a copy, so that handlers may overwrite it. The memory of those that have ended is
 * kept for the next ones. Several of them may be under way; `busy` keeps other threads off one
 * whose handler runs without the lock. One whose handlers are with HPUs that are threads is in
 * nic->invoked_away, and not looked at, until invoke_stir() says that one of them has ended.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <stdlib.h>
#include <string.h>

#define SPARES 64        /* kept of those that have ended, with their memory, */
#define SPARE_ROOM 65536 /* for as much data */

enum phase { INVOKED_HEADER, INVOKED_PAYLOAD, INVOKED_DONE };

struct invocation {
    struct rx rx;
    struct list link;      /* nic->invoked or nic->invoked_away */
    struct nic_peer from;  /* who has sent it, as far as the stages ask */
    struct list turn;      /* of the peer that has sent it, if it is detached */
    struct nic_peer *peer; /* that one, while it lives; NULL: the host has */
    uint8_t *data;
    size_t room;    /* for it */
    uint64_t moved; /* bytes of it that handlers were called for, or are not to be */
    enum phase phase;
    enum fabric_status status;
    bool busy, waiting;
    bool behind; /* it waits for another one to leave its entry */
};

static struct invocation *invocation_at(struct list *l)
{
    return container_of(l, struct invocation, link);
}

static void free_parts(struct invocation *v)
{
    handlers_free(&v->rx);
    free(v->data);
    free(v);
}

/* Is done with one that is in no list: the next one has its memory again. */
static void spare(struct invocation *v)
{
    struct nic *nic = v->from.nic;
    if (nic->spares == SPARES || v->room > SPARE_ROOM) {
        free_parts(v);
        return;
    }
    handlers_cancel(&v->rx);
    list_push_back(&nic->spare_invocations, &v->link);
    nic->spares++;
}

static void end_invocation(struct invocation *v)
{
    v->from.nic->invocations -= !v->rx.detached;
    if (v->peer != NULL) {
        list_remove(&v->turn);
        v->peer->detached_count--;
    }
    list_remove(&v->link);
    spare(v);
}

/* The message, as a sender would have described it. */
static void describe(struct invocation *v, struct le *le, uint64_t length)
{
    struct ni *ni = le->ni;
    struct rx *rx = &v->rx;
    v->from.nic = ni->nic;
    v->from.nid = ni->nic->nid;
    v->from.pid = ni->nic->pid;
    v->from.uid = ni->nic->uid;
    rx->m->type = MESSAGE_PUT;
    rx->m->ni = (uint8_t)ni->kind;
    rx->m->pt_index = (uint16_t)le->pt_index;
    rx->m->rank = ni->rank;
    rx->m->length = length;
    rx->m->match_bits = le->match.bits;
    if (ni_is_logical(ni)) {
        rx->initiator.rank = ni->rank;
    } else {
        rx->initiator.phys.nid = ni->nic->nid;
        rx->initiator.phys.pid = ni->nic->pid;
    }
}

/* Memory for one, with room for its data: of one that has ended, as it was left, or zeroed. */
static struct invocation *find_memory(struct nic *nic, size_t room)
{
    struct list *l = list_pop_front(&nic->spare_invocations);
    nic->spares -= l != NULL;
    struct invocation *v = l != NULL ? invocation_at(l) : calloc(1, sizeof(*v));
    if (v == NULL || v->room >= room) {
        return v;
    }
    free(v->data);
    v->data = aligned_alloc(64, room);
    v->room = room;
    if (v->data == NULL) {
        free_parts(v);
        return NULL;
    }
    return v;
}

/* A message with room for its data, in no list yet; NULL: memory is short. */
static struct invocation *new_invocation(struct nic *nic, uint64_t length)
{
    struct invocation *v = find_memory(nic, (length / 64 + 1) * 64);
    if (v == NULL) {
        return NULL;
    }
    uint8_t *data = v->data;
    size_t room = v->room;
    struct handler_run *run = v->rx.run;
    memset(v, 0, sizeof(*v));
    v->data = data;
    v->room = room;
    v->rx.run = run;
    v->from.nic = nic;
    v->rx.peer = &v->from;
    v->rx.away = true;
    v->rx.class = FABRIC_REQUEST;
    v->rx.m = (struct message *)v->rx.f.header;
    v->rx.f.length = length;
    v->rx.f.held = FABRIC_HELD_NOTHING;
    return v;
}

static void begin(struct nic *nic, struct invocation *v)
{
    list_push_back(&nic->invoked, &v->link);
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
}

int invoke(struct le *le, const void *data, uint64_t length)
{
    struct nic *nic = le->ni->nic;
    if (le->handlers->inactive || length > (uint64_t)le->ni->limits.max_msg_size) {
        return PTL_ARG_INVALID;
    }
    if (le->reserved) {
        return PTL_IN_USE;
    }
    bool place = nic->invocations < (uint64_t)nic->process->options.number[OPT_HPU_QUEUE];
    struct invocation *v = place ? new_invocation(nic, length) : NULL;
    if (v == NULL) {
        return PTL_NO_SPACE;
    }
    if (nic_copy(v->data, data, length) != 0) {
        spare(v);
        return PTL_ARG_INVALID;
    }
    nic->invocations++;
    describe(v, le, length);
    rx_adopt(&v->rx, le);
    begin(nic, v);
    return PTL_OK;
}

/* ---- Messages that leave their channel ---- */

static struct invocation *detached_at(struct list *l)
{
    return container_of(l, struct invocation, turn);
}

bool invoke_detach(struct rx *rx, const void *data)
{
    struct nic_peer *peer = rx->peer;
    struct nic *nic = peer->nic;
    bool fits = rx->m->type == MESSAGE_PUT || rx->m->type == MESSAGE_ATOMIC;
    uint64_t most = (uint64_t)nic->process->options.number[OPT_HPU_QUEUE];
    struct invocation *v = NULL;
    if (nic->sched != NULL && fits && rx->f.length <= nic->inline_max && !rx->reserved &&
        peer->detached_count < most) {
        v = new_invocation(nic, rx->f.length);
    }
    if (v == NULL) {
        return false;
    }
    memcpy(v->data, data, rx->f.length);
    memcpy(v->rx.f.header, rx->f.header, sizeof(rx->f.header));
    v->from = (struct nic_peer){.nic = nic,
                                .nid = peer->nid,
                                .pid = peer->pid,
                                .uid = peer->uid,
                                .fabric = peer->fabric,
                                .ops = peer->ops};
    v->from.rx[FABRIC_REQUEST] = peer->rx[FABRIC_REQUEST]; /* for its gathered acks */
    v->peer = peer;
    v->rx.detached = v->rx.decided = true;
    v->rx.response_due = rx->response_due;
    v->rx.response_list = rx->response_list;
    v->rx.ni = rx->ni;
    v->rx.le = rx->le;
    v->rx.initiator = rx->initiator;
    v->rx.offset = rx->offset;
    v->rx.mlength = rx->mlength;
    rx->ni = NULL; /* it is that one's now */
    rx_reset(rx);
    list_push_back(&peer->detached, &v->turn);
    peer->detached_count++;
    begin(nic, v);
    return true;
}

/* The peer that a message has come from, in which those before it are looked for. */
static struct list *before(const struct rx *rx)
{
    const struct invocation *v = container_of(rx, struct invocation, rx);
    struct nic_peer *peer = !rx->away ? rx->peer : v->peer;
    return peer != NULL ? &peer->detached : NULL;
}

bool invoke_behind_entry(const struct rx *rx)
{
    struct list *all = before(rx);
    for (struct list *l = all != NULL ? all->next : NULL; l != all; l = l->next) {
        const struct rx *other = &detached_at(l)->rx;
        if (other == rx) {
            return false;
        }
        if (other->le == rx->le) {
            return true;
        }
    }
    return false;
}

bool invoke_behind_ack(const struct rx *rx)
{
    struct list *all = before(rx);
    for (struct list *l = all != NULL ? all->next : NULL; l != all; l = l->next) {
        const struct rx *other = &detached_at(l)->rx;
        if (other == rx) {
            return false;
        }
        if (other->response_due) {
            return true;
        }
    }
    return false;
}

/* Lets those of the peer go on that may have waited for a message to leave the entry. */
static void stir_behind(struct nic_peer *peer, const struct le *le)
{
    for (struct list *l = peer->detached.next; l != &peer->detached; l = l->next) {
        struct invocation *v = detached_at(l);
        if (v->rx.le == le && !v->rx.header_begun) {
            invoke_stir(&v->rx);
            return;
        }
    }
}

void invoke_peer_down(struct nic_peer *peer)
{
    while (!list_empty(&peer->detached)) {
        struct invocation *v = detached_at(peer->detached.next);
        list_remove(&v->turn);
        v->peer = NULL;
        v->from.fabric = NULL;
        v->from.rx[FABRIC_REQUEST] = NULL;
        v->rx.response_due = false;
        invoke_stir(&v->rx); /* it may have waited for one before it */
    }
}

static bool step_header(struct invocation *v)
{
    struct fabric_rx *f = &v->rx.f;
    size_t packet = v->from.nic->packet_size;
    enum rx_step step = rx_header(&v->from, f);
    if (step == RX_FIRST) {
        f->first = v->data;
        f->first_length = f->length < packet ? f->length : packet;
        step = rx_header(&v->from, f);
    }
    v->waiting = step == RX_WAIT;
    return step == RX_GO;
}

static bool step_payload(struct invocation *v)
{
    struct fabric_rx *f = &v->rx.f;
    if (f->sink == RX_DEPOSIT && rx_deposit(f, v->data) != 0) {
        v->status = FABRIC_SEGV;
    }
    if (f->sink != RX_PACKETS || v->moved == f->length) {
        return true;
    }
    uint64_t rest = f->length - v->moved;
    v->waiting = rx_packet(&v->from, f, v->data + v->moved, v->moved, rest) == RX_WAIT;
    v->moved += v->waiting ? f->taken : rest;
    return !v->waiting;
}

/* Takes it as far as it goes; true if that is its end. */
static bool step(struct invocation *v)
{
    v->behind = v->phase == INVOKED_HEADER && !v->rx.header_begun && invoke_behind_entry(&v->rx);
    if (v->behind) {
        v->waiting = true;
        return false;
    }
    if (v->phase == INVOKED_HEADER && step_header(v)) {
        v->phase = INVOKED_PAYLOAD;
    }
    if (v->phase == INVOKED_PAYLOAD && step_payload(v)) {
        v->phase = INVOKED_DONE;
    }
    if (v->phase != INVOKED_DONE) {
        return false;
    }
    v->waiting = rx_done(&v->from, &v->rx.f, v->status) == RX_WAIT;
    return !v->waiting;
}

bool invoke_advance_all(struct nic *nic)
{
    bool moved = false;
    unsigned n = 0;
    for (struct list *l = nic->invoked.next; l != &nic->invoked; l = l->next) {
        n++;
    }
    /* Each moves to the end before its turn: the list may change while the lock is free. */
    for (; n != 0 && !list_empty(&nic->invoked); n--) {
        struct invocation *v = invocation_at(nic->invoked.next);
        list_remove(&v->link);
        list_push_back(&nic->invoked, &v->link);
        if (v->busy) {
            continue;
        }
        enum phase phase = v->phase;
        struct nic_peer *peer = v->peer;
        const struct le *le = v->rx.le;
        v->busy = true;
        bool ended = step(v);
        v->busy = false;
        bool left = le != NULL && v->rx.le == NULL;
        moved |= ended || left || v->phase != phase;
        if (left && peer != NULL && v->peer != NULL) {
            stir_behind(peer, le);
        }
        if (ended) {
            end_invocation(v);
        } else if (v->waiting && (v->behind || handlers_away(&v->rx))) {
            list_remove(&v->link);
            list_push_back(&nic->invoked_away, &v->link);
        }
    }
    return moved;
}

void invoke_stir(struct rx *rx)
{
    struct invocation *v = container_of(rx, struct invocation, rx);
    list_remove(&v->link);
    list_push_back(&v->from.nic->invoked, &v->link);
}

bool invoke_waits(const struct nic *nic)
{
    for (struct list *l = nic->invoked.next; l != &nic->invoked; l = l->next) {
        const struct invocation *v = invocation_at(l);
        if (!v->busy) {
            return true;
        }
    }
    return false;
}

static void end(struct ni *ni, struct list *all)
{
    for (struct list *l = all->next; l != all; l = l->next) {
        if (invocation_at(l)->rx.ni == ni) {
            handlers_end(&invocation_at(l)->rx);
        }
    }
}

void invoke_end(struct ni *ni)
{
    end(ni, &ni->nic->invoked);
    end(ni, &ni->nic->invoked_away);
}

/* Nothing is left to do but to tell its sender that it was lost. */
static void refuse(struct invocation *v)
{
    v->rx.fail = PTL_NI_DROPPED;
    v->rx.f.sink = RX_DISCARD;
    v->phase = INVOKED_DONE;
    invoke_stir(&v->rx);
    atomic_store_explicit(&v->from.nic->attention, true, memory_order_relaxed);
}

static void cut(struct ni *ni, struct list *all)
{
    for (struct list *l = all->next, *next; l != all; l = next) {
        next = l->next;
        struct invocation *v = invocation_at(l);
        if (v->rx.ni != ni) {
            continue;
        }
        handlers_cancel(&v->rx);
        v->rx.le = NULL;
        v->rx.ni = NULL;
        if (!v->busy && v->rx.response_due) {
            refuse(v);
        } else if (!v->busy) {
            end_invocation(v);
        }
    }
}

void invoke_cut(struct ni *ni)
{
    cut(ni, &ni->nic->invoked);
    cut(ni, &ni->nic->invoked_away);
}

void invoke_free(struct nic *nic)
{
    while (!list_empty(&nic->invoked)) {
        end_invocation(invocation_at(nic->invoked.next));
    }
    for (struct list *l; (l = list_pop_front(&nic->spare_invocations)) != NULL;) {
        free_parts(invocation_at(l));
    }
    nic->spares = 0;
}
