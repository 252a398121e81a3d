/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that the host starts: a message that no fabric has carried, for an entry that the
 * program names. It goes through the same stages as one that has come, and this file does
 * for it what a fabric does:
 *
 *   HEADER ──rx_header──► PAYLOAD ──all packets taken──► DONE ──rx_done──► gone
 *      └── RX_WAIT           └── RX_WAIT                   └── RX_WAIT      all: later, again
 *
 * The data is a copy, so that handlers may overwrite it. Several of them may be under way;
 * `busy` keeps other threads off one whose handler runs without the lock. One whose handlers
 * are with HPUs that are threads is in nic->invoked_away, and not looked at, until invoke_stir()
 * says that one of them has ended.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <stdlib.h>

enum phase { INVOKED_HEADER, INVOKED_PAYLOAD, INVOKED_DONE };

struct invocation {
    struct rx rx;
    struct list link; /* nic->invoked or nic->invoked_away */
    struct nic_peer host;
    uint8_t *data;
    uint64_t moved; /* bytes of it that handlers were called for, or are not to be */
    enum phase phase;
    enum fabric_status status;
    bool busy, waiting;
};

static struct invocation *invocation_at(struct list *l)
{
    return container_of(l, struct invocation, link);
}

static void free_invocation(struct invocation *v)
{
    v->host.nic->invocations--;
    list_remove(&v->link);
    handlers_free(&v->rx);
    free(v->data);
    free(v);
}

/* The message, as a sender would have described it. */
static void describe(struct invocation *v, struct le *le, uint64_t length)
{
    struct ni *ni = le->ni;
    struct rx *rx = &v->rx;
    v->host.nic = ni->nic;
    v->host.nid = ni->nic->nid;
    v->host.pid = ni->nic->pid;
    v->host.uid = ni->nic->uid;
    rx->peer = &v->host;
    rx->invoked = true;
    rx->class = FABRIC_REQUEST;
    rx->m = (struct message *)rx->f.header;
    rx->m->type = MESSAGE_PUT;
    rx->m->ni = (uint8_t)ni->kind;
    rx->m->pt_index = (uint16_t)le->pt_index;
    rx->m->rank = ni->rank;
    rx->m->length = length;
    rx->m->match_bits = le->match.bits;
    rx->f.length = length;
    rx->f.held = FABRIC_HELD_NOTHING;
    if (ni_is_logical(ni)) {
        rx->initiator.rank = ni->rank;
    } else {
        rx->initiator.phys.nid = ni->nic->nid;
        rx->initiator.phys.pid = ni->nic->pid;
    }
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
    struct invocation *v = place ? calloc(1, sizeof(*v)) : NULL;
    uint8_t *copy = v != NULL ? aligned_alloc(64, (length / 64 + 1) * 64) : NULL;
    if (copy == NULL) {
        free(v);
        return PTL_NO_SPACE;
    }
    if (nic_copy(copy, data, length) != 0) {
        free(copy);
        free(v);
        return PTL_ARG_INVALID;
    }
    nic->invocations++;
    v->data = copy;
    describe(v, le, length);
    rx_adopt(&v->rx, le);
    list_push_back(&nic->invoked, &v->link);
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
    return PTL_OK;
}

static size_t packet_length(const struct invocation *v, uint64_t at)
{
    uint64_t rest = v->rx.f.length - at;
    size_t packet = v->host.nic->packet_size;
    return rest < packet ? rest : packet;
}

static bool step_header(struct invocation *v)
{
    struct fabric_rx *f = &v->rx.f;
    enum rx_step step = rx_header(&v->host, f);
    if (step == RX_FIRST) {
        f->first = v->data;
        f->first_length = packet_length(v, 0);
        step = rx_header(&v->host, f);
    }
    v->waiting = step == RX_WAIT;
    return step == RX_GO;
}

static bool step_payload(struct invocation *v)
{
    struct fabric_rx *f = &v->rx.f;
    if (f->sink == RX_DEPOSIT && nic_copy(f->base, v->data, f->room) != 0) {
        v->status = FABRIC_SEGV;
    }
    while (f->sink == RX_PACKETS && v->moved < f->length) {
        size_t n = packet_length(v, v->moved);
        v->waiting = rx_packet(&v->host, f, v->data + v->moved, v->moved, n) == RX_WAIT;
        if (v->waiting) {
            return false;
        }
        v->moved += n;
    }
    return true;
}

/* Takes it as far as it goes; true if that is its end. */
static bool step(struct invocation *v)
{
    if (v->phase == INVOKED_HEADER && step_header(v)) {
        v->phase = INVOKED_PAYLOAD;
    }
    if (v->phase == INVOKED_PAYLOAD && step_payload(v)) {
        v->phase = INVOKED_DONE;
    }
    if (v->phase != INVOKED_DONE) {
        return false;
    }
    v->waiting = rx_done(&v->host, &v->rx.f, v->status) == RX_WAIT;
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
        v->busy = true;
        bool ended = step(v);
        v->busy = false;
        moved |= ended || v->phase != phase;
        if (ended) {
            free_invocation(v);
        } else if (v->waiting && handlers_away(&v->rx)) {
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
    list_push_back(&v->host.nic->invoked, &v->link);
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
        if (!v->busy) {
            free_invocation(v);
        }
    }
}

void invoke_cut(struct ni *ni)
{
    cut(ni, &ni->nic->invoked);
    cut(ni, &ni->nic->invoked_away);
}
