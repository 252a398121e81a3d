/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes to a simulated NIC: messages as a source of the receive machine, and the DMA engine
 * that writes to host memory. Packets come by packets.c.
 */
#include "fabric/sim/receive.h"

#include "fabric/sim/dma.h"
#include "fabric/sim/note.h"
#include "fabric/sim/packets.h"
#include "fabric/sim/send.h"

#include <stdlib.h>
#include <string.h>

/* ---- the DMA engine ---- */

/* A transfer of the engine, and the bytes of an arrival's payload that are done with it. */
struct transfer {
    struct arrival *arrival;
    uint64_t bytes;
};

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
    uint64_t n = done < a->length ? a->freed : a->packets;
    while (n < a->packets && a->part[n].end <= done) {
        n++;
    }
    return n;
}

static void free_buffers(struct arrival *a)
{
    uint64_t done = done_with(a);
    if (done > a->freed) {
        sim_slot_of(a->peer->fabric->clock)->buffers -= done - a->freed;
        a->freed = done;
    }
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
    sim_take(a->channel);
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

/* The engine takes packets together that are there and follow each other in the message; returns
 * their bytes. */
static uint64_t row(struct arrival *a)
{
    const struct sim_part *first = &a->part[a->engine], *p = first;
    do {
        p++;
    } while (p < a->part + a->counted && p->offset == p[-1].offset + p[-1].bytes);
    a->engine = (uint32_t)(p - a->part);
    return p[-1].offset + p[-1].bytes - first->offset;
}

/* Has the engine write what has arrived; the end of a message that writes to host memory comes with
 * the last of it, that of another one with a transfer that tells of it. What handlers have written
 * is theirs to tell. */
static void deposit(struct arrival *a)
{
    bool writes = a->m.rx->sink == RX_DEPOSIT;
    while (writes && a->engine < a->counted) {
        uint64_t from = a->part[a->engine].offset, n = row(a);
        uint64_t bytes = fitting(a, from + n) - fitting(a, from);
        a->issued += n;
        if (bytes != 0) {
            issue(a, bytes, n);
        } else {
            a->deposited += n;
        }
    }
    a->handled |= a->m.rx->sink == RX_PACKETS;
    bool alone = !a->handled && (!writes || fitting(a, a->length) == 0);
    if (alone && !a->told && a->arrived == a->length) {
        a->told = true;
        issue(a, a->combines ? a->length : 1, 0);
    }
}

/* The next n bytes at most, which lie in one packet. The machine takes them for those that follow
 * the bytes before: so a handler is told where they are, and what is to be deposited is done here.
 */
static struct rx_span part_here(struct arrival *a, bool packets, uint64_t n)
{
    struct rx_machine *m = &a->m;
    while (a->at < a->counted && a->part[a->at].end <= m->moved) {
        a->at++;
    }
    if (n == 0 || a->at == a->counted) {
        return (struct rx_span){NULL, 0};
    }
    const struct sim_part *p = &a->part[a->at];
    uint64_t left = p->end - m->moved, at = p->offset + p->bytes - left;
    n = n < left ? n : left;
    m->rx->at = at;
    if (packets) {
        return (struct rx_span){a->payload + at, n};
    }
    rx_machine_place(m, at, a->payload + at, n);
    return (struct rx_span){NULL, n};
}

static struct rx_span sim_here(struct rx_machine *m, bool packets)
{
    struct arrival *a = arrival_of(m);
    bool deposits = a->deposits && m->rx->sink == RX_DEPOSIT;
    uint64_t n = (deposits ? a->deposited : a->arrived) - m->moved;
    if (m->status != FABRIC_OK && a->arrived == m->moved) {
        return (struct rx_span){NULL, a->length - m->moved};
    }
    if (m->rx->scattered && (packets || a->displaced)) {
        return part_here(a, packets, n);
    }
    if (packets && n < a->length - m->moved) {
        n -= n % m->source->packet_size;
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
    rx->scattered = p->fabric->clock->segment->scattered != 0;
    rx->wire = a->size;
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
    a->m.rx->lost = a->lost != 0 ? a->part[a->lost - 1].end : 0;
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

bool sim_take(struct sim_channel *c)
{
    bool moved = false, in_order = true;
    for (struct list *l = c->arrivals.next; l != &c->arrivals;) {
        struct arrival *a = container_of(l, struct arrival, link);
        if (!a->begun && (!a->headed || a->number != c->number)) {
            break; /* its header, or a message before it, is still to come */
        }
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
        moved |= sim_take(&p->channel[FABRIC_RESPONSE]);
        moved |= sim_take(&p->channel[FABRIC_ASK]);
        moved |= sim_take(&p->channel[FABRIC_REQUEST]);
        if (p->refused) {
            sim_end_peer(p); /* a handler of a message of it was suspended before */
        }
    }
    return moved;
}

/* ---- peers ---- */

void sim_begin_source(struct sim_fabric *f, struct sim_peer *p)
{
    f->up = *f->setup.up;
    f->up.rx_header = sim_header;
    p->source = (struct rx_source){&sim_source, &f->up, NULL, f->setup.packet_size};
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct sim_flow *flow = sim_flow_of(f, p->rank, (enum fabric_class)c);
        list_init(&p->channel[c].arrivals);
        p->channel[c].class = (enum fabric_class)c;
        p->channel[c].number = flow->life == p->life ? flow->number : 0;
    }
}

/* Ends what is left of a channel, in order; false: there are messages that have come whole, or wait
 * for a handler. What has come whole ends as it would have, unless it is behind one that has not,
 * or this NIC closes, and takes nothing any more. */
static bool cut(struct sim_channel *c)
{
    while (!list_empty(&c->arrivals)) {
        struct arrival *a = LIST_FIRST(struct arrival, &c->arrivals, link);
        bool next = a->begun || (a->headed && a->number == c->number);
        bool whole = next && a->arrived == a->length && a->m.status == FABRIC_OK;
        if (whole && !c->torn && a->peer->fabric->clock->take != NULL) {
            return false;
        }
        c->torn = true;
        c->number = a->number < c->number ? c->number : a->number + 1; /* the rest is too late */
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
    sim_drop_departures(f, p);
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        struct sim_flow *flow = sim_flow_of(f, p->rank, (enum fabric_class)c);
        flow->number = p->channel[c].number;
        flow->life = p->life;
        p->source.up->rx_free(p->source.np, p->channel[c].rx);
    }
    p->source.up->peer_down(f->setup.nic, p->source.np);
    list_remove(&p->link);
    free(p);
}
