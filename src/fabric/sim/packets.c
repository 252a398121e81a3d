/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come to a simulated NIC: when each is ready, the buffer that it takes, and its place
 * in its message.
 *
 *      sim_take_packet() ─► match or CAM ─► ready(): a buffer, a part of its arrival ─► receive.c
 *
 * With static routes packets of a sender are ready in the order in which they were sent. With
 * adaptive ones they come in any order: one that is ahead of the first packet of its message, or of
 * messages before it, has its buffer and waits there.
 */
#include "fabric/sim/packets.h"

#include "fabric/sim/lead.h"
#include "fabric/sim/note.h"
#include "fabric/sim/receive.h"

#include <stdlib.h>
#include <string.h>

/* A packet that has arrived, until it is ready. */
struct held {
    struct sim_fabric *fabric;
    struct sim_packet packet;
};

/* ---- the messages that they are of ---- */

static struct arrival *new_arrival(struct sim_peer *p, const struct sim_packet *packet,
                                   struct list *after)
{
    uint64_t size = packet->size != 0 ? packet->size : 1;
    uint32_t parts = packet->total > size ? (uint32_t)((packet->total + size - 1) / size) : 1;
    struct arrival *a = calloc(1, sizeof(*a) + parts * sizeof(a->part[0]));
    uint8_t *payload = aligned_alloc(64, (packet->total | 63) + 1);
    if (a == NULL || payload == NULL) {
        free(a);
        free(payload);
        return NULL;
    }
    a->peer = p;
    a->channel = &p->channel[packet->class];
    a->number = packet->number;
    a->length = packet->total;
    a->payload = payload;
    a->parts = parts;
    a->size = packet->size;
    a->come = 1;
    a->stop = UINT64_MAX;
    memcpy(a->header, packet->header, FABRIC_HEADER);
    list_insert_after(after, &a->link);
    return a;
}

/* The message of a packet; the channel has those of which something has come in order. NULL: it was
 * ended before, with its peer, or memory is short. */
static struct arrival *arrival_for(struct sim_peer *p, const struct sim_packet *packet)
{
    struct sim_channel *c = &p->channel[packet->class];
    struct list *after = c->arrivals.prev;
    while (after != &c->arrivals) {
        struct arrival *a = container_of(after, struct arrival, link);
        if (a->number == packet->number) {
            return a;
        }
        if (a->number < packet->number) {
            break;
        }
        after = after->prev;
    }
    return packet->number >= c->number ? new_arrival(p, packet, after) : NULL;
}

/* A packet takes a buffer, unless the NIC discards it. If there is none its bytes are there all the
 * same, since only handlers lose it, and whether the message has some may not be known yet. */
static void take_buffer(struct arrival *a, uint32_t part)
{
    struct sim_fabric *f = a->peer->fabric;
    bool discards = a->begun && a->m.phase != RX_HEADER && a->m.rx->sink == RX_DISCARD;
    if (a->overrun || discards) {
        return;
    }
    struct sim_slot *own = sim_slot_of(f->clock);
    uint64_t taken = sim_slots_sum(f->clock, offsetof(struct sim_slot, buffers));
    if (taken >= sim_machine(f->clock)->buffers) {
        a->overrun = true;
        a->lost = part;
        return;
    }
    a->packets++;
    own->buffers++;
    f->buffers_most = taken + 1 > f->buffers_most ? taken + 1 : f->buffers_most;
}

/* Counts the parts that may be looked at, now that the first packet is there. */
static void count_parts(struct arrival *a)
{
    while (a->headed && a->counted < a->come) {
        struct sim_part *p = &a->part[a->counted++];
        a->displaced |= p->offset != a->arrived;
        a->arrived += p->bytes;
        p->end = a->arrived;
    }
}

static void add_part(struct arrival *a, const struct sim_packet *packet)
{
    bool first = packet->offset == 0, failed = packet->status != FABRIC_OK;
    if (failed) {
        a->stop = packet->offset;
        a->stopped = (enum fabric_status)packet->status;
    }
    if (first ? a->headed : a->come == a->parts || packet->bytes == 0) {
        return; /* it brings but the end */
    }
    uint32_t part = first ? 0 : a->come++;
    memcpy(a->payload + packet->offset, packet->data, packet->bytes);
    a->part[part] = (struct sim_part){packet->offset, packet->bytes, 0};
    a->here += packet->bytes;
    a->headed |= first;
    count_parts(a);
    take_buffer(a, part);
}

/* A packet is ready: its bytes may be looked at. */
static void ready(void *held)
{
    struct held *h = held;
    struct sim_fabric *f = h->fabric;
    const struct sim_packet *packet = &h->packet;
    bool refused = packet->kind == SIM_REFUSED;
    struct sim_peer *p = refused ? sim_peer_known(f, packet->from, packet->from_life)
                                 : sim_peer_at(f, packet->from, packet->from_life);
    if (p != NULL && refused) {
        sim_end_peer(p);
    } else if (p != NULL) {
        struct arrival *a = arrival_for(p, packet);
        if (a != NULL) {
            add_part(a, packet);
            a->m.status = a->here == a->stop ? a->stopped : a->m.status;
            sim_take(a->channel);
        }
    }
    free(h);
}

/* ---- when they are ready ---- */

/* The message of a packet among those that the receiving side of a NIC takes; NULL: memory is
 * short. */
static struct sim_taking *taking_of(struct sim_fabric *f, struct sim_flow *flow,
                                    const struct sim_packet *p, uint64_t first)
{
    struct sim_taking *t = flow->taking;
    while (t != NULL && t->message != p->message) {
        t = t->next;
    }
    if (t == NULL && (t = malloc(sizeof(*t))) != NULL) {
        uint64_t byte = sim_machine(f->clock)->byte, *free = &f->clock->port->ingress_free;
        *t = (struct sim_taking){flow->taking, p->message, first > *free ? first : *free, 0};
        flow->taking = t;
        *free = t->begin + sim_machine(f->clock)->g +
                sim_bytes_ps(p->total != 0 ? p->total - 1 : 0, byte);
    }
    return t;
}

static void end_taking(struct sim_flow *flow, const struct sim_taking *t)
{
    struct sim_taking **link = &flow->taking;
    while (*link != t) {
        link = &(*link)->next;
    }
    *link = t->next;
    free((void *)t);
}

/* When the last byte of a packet is behind the receiving side of a NIC, which takes one message
 * after the other as the LogGOPS model has it: g, and G for each byte after the first. */
static uint64_t through_port(struct sim_fabric *f, struct sim_flow *flow,
                             const struct sim_packet *p)
{
    uint64_t byte = sim_machine(f->clock)->byte;
    uint64_t tail = sim_bytes_ps(p->bytes != 0 ? p->bytes - 1 : 0, byte);
    struct sim_taking *t = taking_of(f, flow, p, p->time - tail);
    if (t == NULL) {
        return p->time;
    }
    uint64_t at = t->begin + sim_bytes_ps(t->came, byte) + tail;
    t->came += p->bytes;
    if (t->came >= p->total || p->status != FABRIC_OK) {
        end_taking(flow, t);
    }
    return at > p->time ? at : p->time;
}

/* With static routes no packet is ready before those that its sender sent before it. */
void sim_take_packet(void *fabric, const struct sim_packet *p)
{
    struct sim_fabric *f = fabric;
    const struct sim_machine *m = sim_machine(f->clock);
    struct held *h = malloc(sizeof(*h));
    if (h != NULL) {
        struct sim_flow *flow = sim_flow_of(f, p->from, (enum fabric_class)p->class);
        uint64_t at = m->loggops != 0 ? through_port(f, flow, p) : p->time;
        at += p->offset == 0 ? m->match : m->cam;
        if (f->clock->segment->scattered == 0) {
            at = at > flow->ready ? at : flow->ready;
            flow->ready = at;
        }
        note_packet_in(f, p, at);
        lead_comes(f, p);
        h->fabric = f;
        memcpy(&h->packet, p, offsetof(struct sim_packet, data) + p->bytes);
        sim_clock_at(f->clock, at, ready, h, true);
    }
}

void sim_free_flows(struct sim_fabric *f)
{
    size_t flows = (size_t)sim_places(f->clock->segment) * FABRIC_CLASSES;
    for (size_t i = 0; i < flows; i++) {
        while (f->flow[i].taking != NULL) {
            end_taking(&f->flow[i], f->flow[i].taking);
        }
    }
    free(f->flow);
}
