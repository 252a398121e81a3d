/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invocations: messages with handlers that are in no channel. The host starts some, for an entry
 * that it names; others have left their channel to let the next message pass (detach.c). They go
 * through the same stages as others, driven by the same machine (fabric/rx_machine.h): this file
 * takes the part of a fabric.
 *
 * The payload is a copy, so handlers may overwrite it. The memory of an invocation that has ended
 * is kept for the next one. Several invocations may be in progress; `busy` keeps other threads away
 * from one whose handler runs without the lock. An invocation that waits for an HPU that is a
 * thread, for an earlier message, or for its reply to leave, is in nic->invoked_away, where no
 * thread looks at it, until invoke_stir() moves it back.
 */
#include "nic/spin/invoke.h"

#include "base/nic_copy.h"
#include "nic/peer.h"
#include "nic/receive.h"
#include "nic/spin/detach.h"
#include "nic/spin_calls.h"

#include <stdlib.h>
#include <string.h>

#define SPARES 64        /* invocations that have ended and are kept, with their memory */
#define SPARE_ROOM 65536 /* the largest payload memory that is kept with one */

static void free_parts(struct invocation *v)
{
    handlers_free(&v->rx);
    free(v->rx.before);
    free(v->data);
    free(v);
}

void invocation_drop(struct invocation *v)
{
    struct nic *nic = v->rx.peer->nic;
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
    v->rx.peer->nic->invocations -= !v->rx.detached;
    if (v->timer != NULL) {
        v->timer->busy = NULL;
    }
    if (v->rx.detached) {
        detach_end(v);
    }
    list_remove(&v->link);
    invocation_drop(v);
}

/* Fills in the header of a message that the host starts, as if it came from this NIC. */
static void describe(struct invocation *v, struct le *le, const struct invoke_what *what)
{
    struct ni *ni = le->ni;
    struct rx *rx = &v->rx;
    rx->m->type = MESSAGE_PUT;
    rx->m->ni = (uint8_t)ni->kind;
    rx->m->pt_index = (uint16_t)le->pt_index;
    rx->m->rank = ni->rank;
    rx->m->length = what->length;
    rx->m->hdr_data = what->hdr_data;
    rx->tick = what->timer != NULL;
    rx->m->match_bits = le->match.bits;
    if (ni_is_logical(ni)) {
        rx->at.initiator.rank = ni->rank;
    } else {
        rx->at.initiator.phys.nid = ni->nic->nid;
        rx->at.initiator.phys.pid = ni->nic->pid;
    }
}

/* Returns memory for an invocation with room for its payload: that of one that has ended, not
 * cleared, or zeroed memory. */
static struct invocation *find_memory(struct nic *nic, size_t room)
{
    struct invocation *v = LIST_POP(struct invocation, &nic->spare_invocations, link);
    nic->spares -= v != NULL;
    v = v != NULL ? v : calloc(1, sizeof(*v));
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

struct invocation *invocation_new(struct nic *nic, uint64_t length)
{
    struct invocation *v = find_memory(nic, (length / 64 + 1) * 64);
    if (v == NULL) {
        return NULL;
    }
    uint8_t *data = v->data;
    size_t room = v->room;
    struct handler_run *run = v->rx.run;
    uint8_t *before = v->rx.before;
    memset(v, 0, sizeof(*v));
    v->data = data;
    v->room = room;
    v->rx.run = run;
    v->rx.before = before;
    v->rx.peer = &nic->host;
    v->rx.away = true;
    v->rx.class = FABRIC_REQUEST;
    v->rx.m = (struct message *)v->rx.f.header;
    v->rx.f.length = length;
    rx_whole_init(&v->whole, (struct rx_source){NULL, &nic_upcalls, &nic->host, nic->packet_size},
                  &v->rx.f, v->data);
    rx_machine_begin(&v->whole.m);
    return v;
}

void invocation_begin(struct invocation *v)
{
    struct nic *nic = v->rx.peer->nic;
    list_push_back(&nic->invoked, &v->link);
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
}

int invoke(struct le *le, const struct invoke_what *what)
{
    struct nic *nic = le->ni->nic;
    uint64_t length = what->length;
    if (length > (uint64_t)le->ni->limits.max_msg_size) {
        return PTL_ARG_INVALID;
    }
    if (what->timer == NULL && le->handlers->taken) {
        return PTL_IN_USE;
    }
    bool place = nic->invocations < (uint64_t)nic->process->options.number[OPT_HPU_QUEUE];
    struct invocation *v = place ? invocation_new(nic, length) : NULL;
    if (v == NULL) {
        return PTL_NO_SPACE;
    }
    if (nic_copy(v->data, what->data, length) != 0) {
        invocation_drop(v);
        return PTL_ARG_INVALID;
    }
    nic->invocations++;
    describe(v, le, what);
    rx_adopt(&v->rx, le);
    v->timer = what->timer != NULL && what->timer->period != 0 ? what->timer : NULL;
    if (v->timer != NULL) {
        v->timer->busy = v;
    }
    invocation_begin(v);
    return PTL_OK;
}

/* Drives an invocation through its stages as far as possible; returns whether it has ended. */
static bool step(struct invocation *v)
{
    struct rx_machine *m = &v->whole.m;
    v->behind = m->phase == RX_HEADER && !v->rx.header_begun && detach_behind_entry(&v->rx);
    if (v->behind) {
        m->waiting = true;
        return false;
    }
    rx_machine_go_on(m);
    v->behind = m->phase == RX_DONE && !handlers_away(&v->rx) && detach_behind_answer(&v->rx);
    return m->phase == RX_IDLE;
}

/* Whether its reply has begun to leave, and not all of it has left. */
static bool replies(const struct invocation *v)
{
    return v->rx.reply_started && !v->rx.reply_left;
}

bool invoke_advance_all(struct nic *nic)
{
    bool moved = false;
    /* Each invocation moves to the end of the list before its turn, as the list may change while a
     * handler runs and the lock is free. */
    for (unsigned n = list_count(&nic->invoked); n != 0 && !list_empty(&nic->invoked); n--) {
        struct invocation *v = LIST_POP(struct invocation, &nic->invoked, link);
        list_push_back(&nic->invoked, &v->link);
        if (v->whole.m.busy) {
            continue;
        }
        uint8_t phase = v->whole.m.phase;
        const struct le *le = v->rx.at.le;
        v->whole.m.busy = true;
        bool ended = step(v);
        v->whole.m.busy = false;
        bool left = le != NULL && v->rx.at.le == NULL;
        moved |= ended || left || v->whole.m.phase != phase;
        if (left && v->rx.detached) {
            detach_left(v, le);
        }
        if (ended) {
            end_invocation(v);
        } else if (v->whole.m.waiting && (v->behind || handlers_away(&v->rx) || replies(v))) {
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
    list_push_back(&v->rx.peer->nic->invoked, &v->link);
}

bool invoke_waits(const struct nic *nic)
{
    LIST_EACH(const struct invocation, v, &nic->invoked, link) {
        if (!v->whole.m.busy) {
            return true;
        }
    }
    return false;
}

static bool any_of(struct list *all, const struct ni *ni, bool (*ask)(struct rx *rx))
{
    bool any = false;
    LIST_EACH(struct invocation, v, all, link) {
        any |= v->rx.at.ni == ni && ask(&v->rx);
    }
    return any;
}

bool invoke_any(struct ni *ni, bool (*ask)(struct rx *rx))
{
    bool any = any_of(&ni->nic->invoked, ni, ask);
    return any_of(&ni->nic->invoked_away, ni, ask) || any;
}

/* Cuts off an invocation of an NI that is being closed. If its sender wants a response, it stays to
 * tell it of the loss; else it ends. */
static void cut(struct invocation *v)
{
    rx_abandon(&v->rx);
    if (!v->whole.m.busy && v->rx.at.response_due) {
        v->whole.m.phase = RX_DONE;
        invoke_stir(&v->rx);
        atomic_store_explicit(&v->rx.peer->nic->attention, true, memory_order_relaxed);
    } else if (!v->whole.m.busy) {
        end_invocation(v);
    }
}

void invoke_cut(struct ni *ni)
{
    struct list *all = &ni->nic->invoked;
    list_move_all(all, &ni->nic->invoked_away);
    for (struct list *l = all->next, *next; l != all; l = next) {
        next = l->next;
        struct invocation *v = container_of(l, struct invocation, link);
        if (v->rx.at.ni == ni) {
            cut(v);
        }
    }
}

void invoke_free(struct nic *nic)
{
    list_move_all(&nic->invoked, &nic->invoked_away);
    struct invocation *v;
    while ((v = LIST_FIRST(struct invocation, &nic->invoked, link)) != NULL) {
        end_invocation(v);
    }
    while ((v = LIST_POP(struct invocation, &nic->spare_invocations, link)) != NULL) {
        free_parts(v);
    }
    nic->spares = 0;
}
