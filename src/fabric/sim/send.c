/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves a simulated NIC: when it is ready, and the egress port. */
#include "fabric/sim/send.h"

#include "base/nic_copy.h"
#include "fabric/sim/lead.h"
#include "fabric/sim/note.h"

#include <stdlib.h>
#include <string.h>

static const struct sim_machine *machine(const struct sim_fabric *f)
{
    return sim_machine(f->clock);
}

/* When the first byte of a message that is sent now is at the egress port; a program that sends
 * uses time of its own for that. */
static uint64_t ready_at(struct sim_fabric *f, uint8_t from)
{
    const struct sim_machine *m = machine(f);
    switch (from) {
    case FABRIC_FROM_PROGRAM:
        note_host(f->clock, SIM_SPAN_CALL, m->o);
        f->clock->debt += m->o;
        f->setup.up->time_used(f->setup.nic);
        return f->clock->now + f->clock->debt + m->dma;
    case FABRIC_FROM_HOST:
        return f->clock->now + m->dma;
    case FABRIC_FROM_HANDLER_HOST:
        return f->clock->now + 2 * m->dma;
    default:
        return f->clock->now;
    }
}

static void egress(void *fabric);

/* How long a packet of n bytes takes the port. Of the LogGOPS model a message does, for g and its
 * bytes after the first. */
static uint64_t taken_by(const struct sim_machine *m, uint64_t n, bool last)
{
    if (m->loggops != 0) {
        return last ? m->g + sim_bytes_ps(n != 0 ? n - 1 : 0, m->byte) : sim_bytes_ps(n, m->byte);
    }
    uint64_t bytes = sim_bytes_ps(n, m->byte > m->dma_byte ? m->byte : m->dma_byte);
    return bytes > m->g ? bytes : m->g;
}

static uint64_t next_bytes(const struct sim_fabric *f, const struct departure *d)
{
    uint64_t left = d->length - d->moved;
    return left < f->setup.packet_size ? left : f->setup.packet_size;
}

/* ---- a port that ranks share ---- */

/* The others see when the next packet of this rank can leave: a message that has begun goes on. */
static void show_next(struct sim_fabric *f)
{
    struct sim_slot *own = sim_slot_of(f->clock);
    const struct departure *d = LIST_FIRST(struct departure, &f->departures, link);
    own->ready = d == NULL ? SIM_NEVER : d->moved != 0 ? 0 : d->ready;
    if (d != NULL) {
        uint64_t n = next_bytes(f, d);
        own->taken = taken_by(machine(f), n, d->moved + n == d->length);
    }
}

/* The slot of another rank whose packet leaves now, before this one's: the one that was ready
 * first, of several that of the lowest rank. Its event is due now, too. */
static const struct sim_slot *goes_before(const struct sim_fabric *f)
{
    const struct sim_clock *c = f->clock;
    uint32_t first = c->slot;
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t ready = c->port->slot[i].ready, least = c->port->slot[first].ready;
        if (ready <= c->now && (ready < least || (ready == least && i < first))) {
            first = i;
        }
    }
    return first != c->slot ? &c->port->slot[first] : NULL;
}

/* ---- departures ---- */

static void start_egress(struct sim_fabric *f)
{
    show_next(f);
    if (list_empty(&f->departures)) {
        return;
    }
    uint64_t at = LIST_FIRST(struct departure, &f->departures, link)->ready;
    at = at > f->clock->port->egress_free ? at : f->clock->port->egress_free;
    at = at > f->clock->now ? at : f->clock->now;
    if (at < f->egress_at && sim_clock_at(f->clock, at, egress, f, false)) {
        f->egress_at = at;
    }
}

/* Puts a departure behind those that are ready before it, and behind one that has begun. */
static void depart(struct sim_fabric *f, struct departure *d, uint8_t from)
{
    struct sim_channel *c = &d->peer->channel[d->class];
    uint64_t ready = ready_at(f, from);
    c->ready = ready > c->ready ? ready : c->ready;
    d->ready = c->ready;
    d->message = f->messages++;
    d->number = c->sent++;
    d->lead = f->clock->lead;
    note_waits(f);
    struct list *after = f->departures.prev;
    while (after != &f->departures) {
        const struct departure *before = container_of(after, struct departure, link);
        if (before->ready <= d->ready || before->moved != 0) {
            break;
        }
        after = after->prev;
    }
    list_insert_after(after, &d->link);
    start_egress(f);
}

static struct departure *new_departure(struct sim_peer *p, enum fabric_class class,
                                       const void *header, uint64_t length, bool copies)
{
    struct departure *d = malloc(sizeof(*d) + (copies ? length : 0));
    if (d != NULL) {
        *d = (struct departure){.peer = p, .class = class, .length = length};
        memcpy(d->header, header, FABRIC_HEADER);
    }
    return d;
}

static int read_payload(const struct fabric_tx *tx, struct vector_cursor *cursor, uint64_t at,
                        void *to, size_t n)
{
    if (tx->fault != FABRIC_OK) {
        return -EFAULT;
    }
    return tx->vector != NULL ? vector_gather(to, tx->vector, cursor, tx->skip + at, n)
                              : nic_copy(to, (const void *)((uintptr_t)tx->base + at), n);
}

/* Whether nothing may be sent to a peer any more. Answers to what has come of it may: they leave
 * for nowhere, or end as undeliverable, with the message that they are for (sim_end_peer()). */
static bool takes_nothing(const struct sim_peer *p, enum fabric_class class)
{
    return p->refused && class != FABRIC_RESPONSE;
}

enum fabric_send sim_send(struct fabric_peer *peer, enum fabric_class class, struct fabric_tx *tx)
{
    struct sim_peer *p = sim_peer_of(peer);
    if (takes_nothing(p, class)) {
        return FABRIC_FULL;
    }
    struct departure *d = new_departure(p, class, tx->header, tx->length, tx->at_once);
    if (d == NULL) {
        return FABRIC_FULL;
    }
    d->tx = tx->at_once ? NULL : tx;
    if (tx->at_once && read_payload(tx, &d->cursor, 0, d->own, tx->length) != 0) {
        tx->fault = FABRIC_SEGV;
        d->length = 0;
    }
    d->queued = tx->from == FABRIC_FROM_HANDLER && class != FABRIC_RESPONSE;
    sim_slot_of(p->fabric->clock)->queued += d->queued;
    depart(p->fabric, d, tx->from);
    return tx->at_once ? FABRIC_SENT : FABRIC_QUEUED;
}

enum fabric_short sim_send_short(struct fabric_peer *peer, enum fabric_class class,
                                 const void *header, const void *payload, size_t length)
{
    struct sim_peer *p = sim_peer_of(peer);
    struct departure *d =
        takes_nothing(p, class) ? NULL : new_departure(p, class, header, length, true);
    if (d == NULL) {
        return SHORT_FULL;
    }
    bool sound = nic_copy(d->own, payload, length) == 0;
    d->length = sound ? length : 0;
    depart(p->fabric, d, FABRIC_FROM_HANDLER);
    return sound ? SHORT_SENT : SHORT_UNREADABLE;
}

/* ---- the egress port ---- */

/* Makes the next packet of a departure, which is not sent yet; returns how it ends. */
static enum fabric_status make_packet(struct sim_fabric *f, struct departure *d)
{
    struct sim_packet *p = sim_clock_packet(f->clock);
    size_t n = next_bytes(f, d);
    int rc = d->tx != NULL ? read_payload(d->tx, &d->cursor, d->moved, p->data, n) : 0;
    if (d->tx == NULL) {
        memcpy(p->data, d->own + d->moved, n);
    }
    p->time = f->clock->now;
    p->from = f->clock->rank;
    p->to = d->peer->rank;
    p->from_life = f->clock->me->address.life;
    p->to_life = d->peer->life;
    p->class = d->class;
    p->message = d->message;
    p->number = d->number;
    p->size = (uint32_t)f->setup.packet_size;
    p->total = d->length;
    p->offset = d->moved;
    p->bytes = rc == 0 ? (uint32_t)n : 0;
    p->status = rc == 0 ? FABRIC_OK : FABRIC_SEGV;
    memcpy(p->header, d->header, FABRIC_HEADER);
    d->moved = rc == 0 ? d->moved + n : d->length;
    enum fabric_status fault = d->tx != NULL ? d->tx->fault : FABRIC_OK;
    return rc == 0 ? FABRIC_OK : fault != FABRIC_OK ? fault : FABRIC_SEGV;
}

/* A message of a handler no longer waits in the egress queue. */
static void leave_queue(struct sim_fabric *f, struct departure *d)
{
    sim_slot_of(f->clock)->queued -= d->queued;
    d->queued = false;
}

bool sim_egress_room(struct fabric *fabric)
{
    const struct sim_fabric *f = sim_of(fabric);
    return sim_slots_sum(f->clock, offsetof(struct sim_slot, queued)) < machine(f)->egress_queue;
}

static void end_departure(struct departure *d, enum fabric_status status)
{
    struct sim_peer *p = d->peer;
    struct fabric_tx *tx = d->tx;
    list_remove(&d->link);
    free(d);
    if (tx != NULL) {
        p->source.up->sent(p->source.np, tx, status);
    }
}

static void egress(void *fabric)
{
    struct sim_fabric *f = fabric;
    if (f->egress_at != f->clock->now) {
        return; /* something was ready before what this was for */
    }
    f->egress_at = SIM_NEVER;
    struct departure *d = LIST_FIRST(struct departure, &f->departures, link);
    if (d == NULL) {
        return;
    }
    struct sim_port *port = f->clock->port;
    if (d->ready > f->clock->now || port->egress_free > f->clock->now) {
        start_egress(f); /* the one that this was for has gone, or another rank was first */
        return;
    }
    const struct sim_slot *before_it = goes_before(f);
    if (before_it != NULL) {
        uint64_t at = f->clock->now + before_it->taken;
        f->egress_at = sim_clock_at(f->clock, at, egress, f, false) ? at : SIM_NEVER;
        return;
    }
    const struct sim_machine *m = machine(f);
    struct sim_counts *counts = &f->clock->figures.counts;
    uint64_t before = d->moved;
    enum fabric_status status = make_packet(f, d);
    uint64_t n = d->moved - before, taken = taken_by(m, n, d->moved == d->length);
    port->egress_free = f->clock->now + taken;
    struct sim_packet *p = &f->clock->shared->out[f->clock->me->out_count];
    lead_leaves(f, p, d->ready, d->lead, taken);
    sim_clock_sent(f->clock, p);
    note_packet_out(f, p, taken);
    counts->egress += taken;
    counts->packets++;
    counts->bytes += n;
    if (before == 0) {
        note_begun(f, d->ready);
    }
    leave_queue(f, d);
    if (d->moved == d->length) {
        counts->messages++;
        end_departure(d, status);
    }
    start_egress(f);
}

bool sim_unsent(struct fabric_peer *peer)
{
    const struct sim_peer *p = sim_peer_of(peer);
    LIST_EACH(const struct departure, d, &p->fabric->departures, link) {
        if (d->peer == p) {
            return true;
        }
    }
    return false;
}

void sim_drop_departures(struct sim_fabric *f, struct sim_peer *p)
{
    for (struct list *l = f->departures.next, *next; l != &f->departures; l = next) {
        struct departure *d = container_of(l, struct departure, link);
        next = l->next;
        if (d->peer == p) {
            leave_queue(f, d);
            f->waiting -= d->moved == 0;
            end_departure(d, FABRIC_UNDELIVERABLE);
        }
    }
    show_next(f);
}
