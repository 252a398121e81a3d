/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes to a simulated NIC: packets that are ready after matching, messages as a source of the
 * receive machine, and the DMA engine that writes to host memory.
 */
#include "fabric/sim/receive.h"

#include "fabric/sim/dma.h"
#include "fabric/sim/lead.h"
#include "fabric/sim/note.h"
#include "fabric/sim/send.h"

#include <stdlib.h>
#include <string.h>

/* ---- the DMA engine ---- */

/* A transfer of the engine, and the bytes of an arrival's payload that are done with it. */
struct transfer {
    struct arrival *arrival;
    uint64_t bytes;
};

static bool take(struct sim_channel *c);

/* ---- packet buffers ---- */

/* How many packets of a message the NIC is done with: they are in host memory, or their handlers
 * have ended. */
static uint64_t done_with(const struct arrival *a)
{
    if (a->over) {
        return a->packets;
    }
    if (!a->begun || a->m.phase == RX_HEADER) {
        return 0;
    }
    uint64_t held = a->m.rx->held, moved = a->m.moved < held ? a->m.moved : held;
    uint64_t done = a->deposits && a->m.rx->sink == RX_DEPOSIT ? a->deposited : moved;
    uint64_t n = done < a->length ? done / a->m.source->packet_size : a->packets;
    return n < a->packets ? n : a->packets;
}

static void free_buffers(struct arrival *a)
{
    uint64_t done = done_with(a);
    if (done > a->freed) {
        a->peer->fabric->buffers -= done - a->freed;
        a->freed = done;
    }
}

/* A packet takes a buffer, unless the NIC discards it. If there is none its bytes are there all the
 * same, since only handlers lose it, and whether the message has some may not be known yet. */
static void take_buffer(struct arrival *a, uint64_t offset)
{
    struct sim_fabric *f = a->peer->fabric;
    bool discards = a->begun && a->m.phase != RX_HEADER && a->m.rx->sink == RX_DISCARD;
    if (a->overrun || discards) {
        return;
    }
    if (f->buffers >= sim_machine(f->clock)->buffers) {
        a->overrun = true;
        a->lost = offset;
        return;
    }
    a->packets++;
    f->buffers++;
    f->buffers_most = f->buffers > f->buffers_most ? f->buffers : f->buffers_most;
}

/* Frees a message that is over; the transfers that are under way still name it. */
static void free_arrival(struct arrival *a)
{
    a->over = true;
    free_buffers(a);
    if (a->transfers == 0) {
        free(a->payload);
        free(a);
    }
}

static void transferred(void *transfer)
{
    struct transfer t = *(struct transfer *)transfer;
    struct arrival *a = t.arrival;
    free(transfer);
    a->transfers--;
    if (a->over) {
        free_arrival(a);
        return;
    }
    a->deposited += t.bytes;
    take(a->channel);
}

/* The engine is taken for as long as the bytes take it; the transfer itself runs with the arrival,
 * and is done after the latency. With it `covered` bytes of the message are deposited. */
static void issue(struct arrival *a, uint64_t bytes, uint64_t covered)
{
    struct sim_fabric *f = a->peer->fabric;
    struct transfer *t = malloc(sizeof(*t));
    uint64_t taken, start = sim_dma_take(f, bytes, &taken);
    if (t != NULL) {
        *t = (struct transfer){a, covered};
    }
    if (t != NULL &&
        sim_clock_at(f->clock, start + sim_machine(f->clock)->dma, transferred, t, true)) {
        a->transfers++;
        return;
    }
    free(t);
    a->deposited += covered; /* at once, since memory is short: nothing is lost but time */
}

/* ---- a source of the receive machine ---- */

static struct arrival *arrival_of(struct rx_machine *m)
{
    return container_of(m, struct arrival, m);
}

/* How many of the first n bytes there is room for. */
static uint64_t fitting(const struct arrival *a, uint64_t n)
{
    return n < a->m.rx->room ? n : a->m.rx->room;
}

/* Has the engine write what has arrived; the end of a message that writes to host memory comes with
 * the last of it, that of another one with a transfer that tells of it. What handlers have written
 * is theirs to tell. */
static void deposit(struct arrival *a)
{
    bool writes = a->m.rx->sink == RX_DEPOSIT;
    if (writes && a->arrived > a->issued) {
        uint64_t from = a->issued, bytes = fitting(a, a->arrived) - fitting(a, from);
        a->issued = a->arrived;
        if (bytes != 0) {
            issue(a, bytes, a->arrived - from);
        } else {
            a->deposited += a->arrived - from;
        }
    }
    a->handled |= a->m.rx->sink == RX_PACKETS;
    bool alone = !a->handled && (!writes || fitting(a, a->length) == 0);
    if (alone && !a->told && a->arrived == a->length) {
        a->told = true;
        issue(a, a->combines ? a->length : 1, 0);
    }
}

static struct rx_span sim_here(struct rx_machine *m, bool packets)
{
    struct arrival *a = arrival_of(m);
    bool deposits = a->deposits && m->rx->sink == RX_DEPOSIT;
    uint64_t n = (deposits ? a->deposited : a->arrived) - m->moved;
    if (packets && n < a->length - m->moved) {
        n -= n % m->source->packet_size;
    }
    if (m->status != FABRIC_OK && a->arrived == m->moved) {
        return (struct rx_span){NULL, a->length - m->moved};
    }
    return (struct rx_span){n != 0 ? a->payload + m->moved : NULL, n};
}

static void sim_pass(struct rx_machine *m, uint64_t n, bool kept)
{
}

static bool sim_settle(struct rx_machine *m)
{
    return false;
}

static void leave_channel(struct arrival *a)
{
    struct sim_channel *c = a->channel;
    c->lent &= a->m.rx != c->rx;
    if (a->begun && a->m.rx != c->rx) {
        a->peer->source.up->rx_free(a->peer->source.np, a->m.rx);
    }
    list_remove(&a->link);
    list_init(&a->link);
}

/* What has come takes the host's time, before the program can go on with it. */
static void host_takes(const struct arrival *a)
{
    struct sim_fabric *f = a->peer->fabric;
    uint64_t o = sim_machine(f->clock)->o_receive;
    if (a->channel->class == FABRIC_REQUEST && a->deposits && o != 0) {
        note_host(f->clock, SIM_SPAN_CALL, o);
        f->clock->debt += o;
        f->setup.up->time_used(f->setup.nic);
    }
}

static void sim_over(struct rx_machine *m)
{
    struct arrival *a = arrival_of(m);
    host_takes(a);
    leave_channel(a);
}

static const struct rx_source_ops sim_source = {sim_here, sim_pass, sim_settle, sim_over};

/* The arrival whose machine goes on; the NIC's lock is held all the time. */
static struct arrival *current;

/* Whether the DMA engine, which takes transfers in order, keeps a message behind this one: all that
 * this one writes was given to it. */
static bool engine_has_all(const struct arrival *a)
{
    return a->begun && a->deposits && a->m.rx->sink == RX_DEPOSIT && a->m.status == FABRIC_OK &&
           a->issued == a->length;
}

/* The NIC's rx_header(): a message that writes to host memory ends behind its last transfer. It
 * need not wait with writing for those before it, if the engine keeps them in order. */
static enum rx_step sim_header(struct nic_peer *np, struct fabric_rx *rx)
{
    struct arrival *a = current;
    rx->in_order = a->in_order;
    enum rx_step step = a->peer->fabric->setup.up->rx_header(np, rx);
    a->handled |= step == RX_WAIT;
    if (step == RX_GO && a->m.status == FABRIC_OK) {
        a->combines = rx->tells && !a->handled && rx->sink == RX_DISCARD;
        a->deposits = rx->sink == RX_DEPOSIT || a->combines || a->channel->class == FABRIC_RESPONSE;
        if (a->deposits) {
            deposit(a);
        }
        rx->behind |= a->transfers != 0;
    }
    return step;
}

/* ---- messages ---- */

/* Begins with a message; its header is there. */
static void begin(struct arrival *a)
{
    struct sim_channel *c = a->channel;
    struct sim_peer *p = a->peer;
    struct fabric_rx *rx = c->lent ? p->source.up->rx_new(p->source.np, c->class) : c->rx;
    a->m = (struct rx_machine){.source = &p->source, .status = a->m.status, .rx = rx};
    a->begun = c->lent = true;
    rx->number = c->number++;
    rx->last = rx->tells = rx->overrun = false;
    rx->length = a->length;
    memcpy(rx->header, a->header, FABRIC_HEADER);
    rx_machine_begin(&a->m);
}

/* Whether a message that has come may end before all that came before it. */
static bool passes(const struct arrival *a)
{
    const struct fabric_upcalls *up = a->peer->source.up;
    const struct list *l = a->channel->arrivals.next;
    while (l != &a->link && up->rx_passes(a->m.rx, container_of(l, struct arrival, link)->m.rx)) {
        l = l->next;
    }
    return l == &a->link;
}

/* Whether the NIC has said RX_TURN, and nothing has changed that this can be due to. */
static bool keeps_waiting(const struct arrival *a, bool in_order)
{
    return a->m.turn && a->asked == a->channel->turns && a->in_order == in_order;
}

/* Goes on with a message; true if that is its end. `in_order`: the DMA engine has all that the
 * messages before it write. */
static bool go_on(struct arrival *a, bool first, bool in_order, bool *moved)
{
    if (a->begun && keeps_waiting(a, in_order)) {
        return false;
    }
    a->asked = a->channel->turns;
    a->in_order = in_order;
    if (!a->begun) {
        begin(a);
        *moved = true;
    }
    a->m.rx->overrun = a->overrun;
    a->m.rx->lost = a->lost;
    if (a->deposits) {
        deposit(a);
    }
    bool behind = !first && !(a->m.phase == RX_DONE && passes(a));
    a->m.rx->behind = behind || a->transfers != 0;
    current = a;
    *moved |= rx_machine_go_on(&a->m);
    if (behind && a->m.phase == RX_DONE && a->m.status == FABRIC_OK) {
        a->peer->source.up->rx_early(a->peer->source.np, a->m.rx);
    }
    bool over = a->m.phase == RX_IDLE;
    if (over || (a->m.rx->tells && !a->tells)) {
        a->tells = true;
        a->channel->turns++;
    }
    return over;
}

/* Goes on with the messages of a channel, as far as they have arrived. */
static bool take(struct sim_channel *c)
{
    bool moved = false, in_order = true;
    for (struct list *l = c->arrivals.next; l != &c->arrivals;) {
        struct arrival *a = container_of(l, struct arrival, link);
        bool over = go_on(a, l == c->arrivals.next, in_order, &moved);
        bool matched = !over && a->m.rx->matched;
        if (over) {
            free_arrival(a);
        } else {
            free_buffers(a);
        }
        if (!over && !matched) {
            break;
        }
        if (!over) {
            in_order = in_order && engine_has_all(a);
        }
        l = over ? c->arrivals.next : l->next;
    }
    return moved;
}

bool sim_advance(struct sim_fabric *f)
{
    bool moved = false;
    for (struct list *l = f->peers.next, *next; l != &f->peers; l = next) {
        struct sim_peer *p = container_of(l, struct sim_peer, link);
        next = l->next;
        moved |= take(&p->channel[FABRIC_RESPONSE]);
        moved |= take(&p->channel[FABRIC_ASK]);
        moved |= take(&p->channel[FABRIC_REQUEST]);
        if (p->refused) {
            sim_end_peer(p); /* a handler of a message of it was suspended before */
        }
    }
    return moved;
}

/* ---- packets ---- */

/* A packet that has arrived, until it is ready. */
struct held {
    struct sim_fabric *fabric;
    struct sim_packet packet;
};

static struct arrival *find_arrival(struct sim_channel *c, uint64_t message)
{
    for (struct list *l = c->arrivals.prev; l != &c->arrivals; l = l->prev) {
        struct arrival *a = container_of(l, struct arrival, link);
        if (a->message == message) {
            return a;
        }
    }
    return NULL;
}

static struct arrival *new_arrival(struct sim_peer *p, const struct sim_packet *packet)
{
    struct arrival *a = calloc(1, sizeof(*a));
    uint8_t *payload = aligned_alloc(64, (packet->total | 63) + 1);
    if (a == NULL || payload == NULL) {
        free(a);
        free(payload);
        return NULL;
    }
    a->peer = p;
    a->channel = &p->channel[packet->class];
    a->message = packet->message;
    a->length = packet->total;
    a->payload = payload;
    memcpy(a->header, packet->header, FABRIC_HEADER);
    list_push_back(&a->channel->arrivals, &a->link);
    return a;
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
        struct sim_channel *c = &p->channel[packet->class];
        struct arrival *a =
            packet->offset == 0 ? new_arrival(p, packet) : find_arrival(c, packet->message);
        if (a != NULL) {
            memcpy(a->payload + packet->offset, packet->data, packet->bytes);
            a->arrived = packet->offset + packet->bytes;
            take_buffer(a, packet->offset);
            a->m.status =
                packet->status != FABRIC_OK ? (enum fabric_status)packet->status : a->m.status;
            take(c);
        }
    }
    free(h);
}

/* When the last byte of a packet is behind the receiving side of a NIC, which takes one message
 * after the other as the LogGOPS model has it: g, and G for each byte after the first. */
static uint64_t through_port(struct sim_fabric *f, const struct sim_packet *p)
{
    const struct sim_machine *m = sim_machine(f->clock);
    struct sim_taking *t = &f->taking[p->from * FABRIC_CLASSES + p->class];
    uint64_t tail = sim_bytes_ps(p->bytes != 0 ? p->bytes - 1 : 0, m->byte);
    if (!t->any || t->message != p->message) {
        uint64_t first = p->time - tail;
        *t = (struct sim_taking){true, p->message,
                                 first > f->ingress_free ? first : f->ingress_free};
        f->ingress_free = t->begin + m->g + sim_bytes_ps(p->total != 0 ? p->total - 1 : 0, m->byte);
    }
    uint64_t at = t->begin + sim_bytes_ps(p->offset, m->byte) + tail;
    return at > p->time ? at : p->time;
}

/* No packet is ready before those that its sender sent before it. */
void sim_take_packet(void *fabric, const struct sim_packet *p)
{
    struct sim_fabric *f = fabric;
    const struct sim_machine *m = sim_machine(f->clock);
    struct held *h = malloc(sizeof(*h));
    if (h != NULL) {
        uint64_t *last = &f->ready[p->from * FABRIC_CLASSES + p->class];
        uint64_t at =
            (m->loggops != 0 ? through_port(f, p) : p->time) + (p->offset == 0 ? m->match : m->cam);
        *last = at > *last ? at : *last;
        note_packet_in(f, p, *last);
        lead_comes(f, p);
        h->fabric = f;
        memcpy(&h->packet, p, offsetof(struct sim_packet, data) + p->bytes);
        sim_clock_at(f->clock, *last, ready, h, true);
    }
}

/* ---- peers ---- */

void sim_begin_source(struct sim_fabric *f, struct sim_peer *p)
{
    f->up = *f->setup.up;
    f->up.rx_header = sim_header;
    p->source = (struct rx_source){&sim_source, &f->up, NULL, f->setup.packet_size};
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        list_init(&p->channel[c].arrivals);
        p->channel[c].class = (enum fabric_class)c;
    }
}

/* Ends what has begun of a channel, in order; false: a message waits for a handler. */
static bool cut(struct sim_channel *c)
{
    while (!list_empty(&c->arrivals)) {
        struct arrival *a = LIST_FIRST(struct arrival, &c->arrivals, link);
        current = a;
        if (!a->begun) {
            list_remove(&a->link);
        } else if (!rx_machine_cut(&a->m)) {
            return false;
        }
        free_arrival(a);
    }
    return true;
}

/* The peer has no NIC any more: nothing comes from it, and nothing that is sent to it arrives. */
void sim_end_peer(struct sim_peer *p)
{
    struct sim_fabric *f = p->fabric;
    p->refused = true;
    sim_drop_departures(f, p);
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        if (!cut(&p->channel[c])) {
            return; /* sim_advance() comes back */
        }
    }
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        p->source.up->rx_free(p->source.np, p->channel[c].rx);
    }
    p->source.up->peer_down(f->setup.nic, p->source.np);
    list_remove(&p->link);
    free(p);
}
