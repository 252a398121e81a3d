/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of a network: packets enter switches, channels choose the packets that they carry,
 * messages are delivered; see state.h.
 */
#include "state.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static void add_event(struct net *n, uint64_t time, enum net_event_kind kind, uint32_t number,
                      uint32_t ref)
{
    if (net_events_add(&n->events, time, (uint64_t)kind << 32 | number, ref) != 0) {
        n->short_of_memory = true;
    }
}

/* Makes sure that a channel looks for a packet to carry at `time`, or earlier. */
static void look(struct net *n, uint32_t channel, uint64_t time)
{
    struct net_channel *ch = &n->channels[channel];
    if (time < ch->look) {
        ch->look = time;
        add_event(n, time, NET_LOOK, channel, channel);
    }
}

/* ---- Credit ---- */

static void give_back(struct net *n, uint32_t channel, uint32_t vc, uint64_t time, uint32_t bytes)
{
    struct net_vc *l = net_vc(n, channel, vc);
    uint32_t i = n->credits_free;
    if (i != 0) {
        n->credits_free = n->credits[i - 1].next;
    } else {
        if (!ARRAY_ROOM(n->credits, n->credits_used, n->credits_capacity, 256)) {
            n->short_of_memory = true;
            return;
        }
        i = ++n->credits_used;
    }
    struct net_credit *c = n->credits;
    uint32_t before = l->last != 0 && c[l->last - 1].time <= time ? l->last : 0;
    for (uint32_t k = before == 0 ? l->first : 0; k != 0 && c[k - 1].time <= time;
         k = c[k - 1].next) {
        before = k;
    }
    uint32_t *link = before != 0 ? &c[before - 1].next : &l->first;
    c[i - 1] = (struct net_credit){.time = time, .bytes = bytes, .next = *link};
    *link = i;
    if (c[i - 1].next == 0) {
        l->last = i;
    }
    if (l->starved) {
        look(n, channel, time);
    }
}

static void collect(struct net *n, struct net_vc *l)
{
    while (l->first != 0 && n->credits[l->first - 1].time <= n->now) {
        uint32_t i = l->first;
        l->free += n->credits[i - 1].bytes;
        l->first = n->credits[i - 1].next;
        n->credits[i - 1].next = n->credits_free;
        n->credits_free = i;
    }
    if (l->first == 0) {
        l->last = 0;
    }
}

/* Returns when a virtual channel will have `bytes` bytes of credit, as far as known. */
static uint64_t enough_at(const struct net *n, const struct net_vc *l, uint32_t bytes)
{
    uint64_t sum = l->free;
    for (uint32_t i = l->first; i != 0; i = n->credits[i - 1].next) {
        sum += n->credits[i - 1].bytes;
        if (sum >= bytes) {
            return n->credits[i - 1].time;
        }
    }
    return NET_NEVER;
}

/* ---- Messages ---- */

static uint32_t next_bytes(const struct net *n, const struct net_transfer *t)
{
    uint64_t left = t->m.bytes - t->sent;
    return left < n->c.packet ? (uint32_t)left : n->c.packet;
}

/* Returns when the next packet of a message may leave its host at the earliest: so that the host
 * hands over each byte before the channel needs it. */
static uint64_t next_age(struct net *n, const struct net_transfer *t)
{
    uint64_t age = net_add(n, t->m.time, charges_product(t->sent, t->m.pace));
    if (t->m.pace > n->c.byte) {
        age = net_add(n, age, charges_product(next_bytes(n, t) - 1, t->m.pace - n->c.byte));
    }
    return age;
}

static void deliver(struct net *n, uint32_t transfer)
{
    for (uint32_t i = transfer + 1, next; i != 0; i = next) {
        struct net_transfer *t = &n->transfers[i - 1];
        if (t->behind) {
            t->here = true;
            return;
        }
        next = t->m.ordered ? net_pair_leave(n, i - 1) : 0;
        uint32_t ref = t->m.ref;
        struct net_arrival arrival = t->arrival;
        t->m.bytes = 0;
        t->next = n->transfers_free;
        n->transfers_free = i;
        n->hooks.deliver(n->hooks.context, ref, &arrival, n->now);
        next = next != 0 && n->transfers[next - 1].here ? next : 0;
    }
}

static uint32_t new_transfer(struct net *n)
{
    uint32_t i = n->transfers_free;
    if (i != 0) {
        n->transfers_free = n->transfers[i - 1].next;
        return i - 1;
    }
    if (!ARRAY_ROOM(n->transfers, n->transfers_used, n->transfers_capacity, 256)) {
        n->short_of_memory = true;
        return NET_NONE;
    }
    return n->transfers_used++;
}

/* A message of a host to itself uses no channel. */
static void send_to_itself(struct net *n, uint32_t transfer)
{
    struct net_transfer *t = &n->transfers[transfer];
    t->sent = t->came = t->m.bytes;
    uint64_t serial = charges_product(t->m.bytes - 1, t->m.pace);
    t->arrival = (struct net_arrival){
        .first = t->m.time, .last = net_add(n, t->m.time, serial), .last_way = {.serial = serial}};
    add_event(n, t->arrival.last, NET_DELIVER, transfer, transfer);
    n->hooks.left(n->hooks.context, t->m.ref, t->arrival.last, 0);
}

int net_send(struct net *n, const struct net_message *m)
{
    uint32_t i = new_transfer(n);
    if (i == NET_NONE) {
        return -1;
    }
    struct net_transfer *t = &n->transfers[i];
    *t = (struct net_transfer){.m = *m, .arrival = {.first = NET_NEVER}, .serial = n->serial++};
    n->at = i;
    n->counts.messages++;
    if (m->ordered && net_pair_join(n, i) != 0) {
        n->short_of_memory = true;
        return -1;
    }
    if (m->from == m->to) {
        send_to_itself(n, i);
    } else {
        uint32_t channel = 2 * m->from;
        struct net_wait w = {
            .age = next_age(n, t), .serial = t->serial, .ref = i, .bytes = next_bytes(n, t)};
        n->short_of_memory |= net_wait_push(net_vc(n, channel, 0), &w) != 0;
        n->channels[channel].waiting++;
        uint64_t free = n->channels[channel].busy_until;
        look(n, channel, w.age > free ? w.age : free);
    }
    return n->short_of_memory || n->overflow ? -1 : 0;
}

/* ---- Packets ---- */

static uint32_t new_packet(struct net *n)
{
    uint32_t i = n->packets_free;
    if (i != 0) {
        n->packets_free = n->packets[i - 1].to;
    } else {
        if (n->packets_used == n->packets_capacity) {
            uint32_t capacity = n->packets_capacity > 0 ? 2 * n->packets_capacity : 1024;
            struct net_packet *more = aligned_alloc(64, capacity * sizeof(*more));
            if (more == NULL) {
                n->short_of_memory = true;
                return NET_NONE;
            }
            if (n->packets != NULL) {
                memcpy(more, n->packets, n->packets_capacity * sizeof(*more));
                free(n->packets);
            }
            n->packets = more;
            n->packets_capacity = capacity;
        }
        i = ++n->packets_used;
    }
    n->packets_live++;
    if (n->packets_live > n->counts.most_packets) {
        n->counts.most_packets = n->packets_live;
    }
    return i - 1;
}

/* Returns how long after the message's time a packet could leave its host if the network were
 * empty: the bytes before it must have been handed over and sent, and its own last byte must be
 * handed over before the channel needs it. */
static uint64_t handed_after(const struct net *n, const struct net_transfer *t,
                             const struct net_packet *p)
{
    uint64_t pace = t->m.pace, byte = n->c.byte, before = p->number * (uint64_t)n->c.packet;
    return pace > byte ? charges_product(before, pace) + charges_product(p->bytes - 1, pace - byte)
                       : charges_product(before, byte);
}

/* Returns how long a packet that leaves now has waited at its host, but for the time of
 * handed_after(). By rounding it may leave slightly before that time. */
static uint64_t waited_at_host(const struct net *n, const struct net_transfer *t,
                               const struct net_packet *p)
{
    uint64_t handed = handed_after(n, t, p), since = n->now - t->m.time;
    return since > handed ? since - handed : 0;
}

/* Cuts the next packet off the message that is first in the queue of a host's channel. */
static uint32_t cut_packet(struct net *n, struct net_vc *l, struct net_channel *ch)
{
    uint32_t i = new_packet(n), transfer = l->heap[0].ref;
    if (i == NET_NONE) {
        return NET_NONE;
    }
    struct net_transfer *t = &n->transfers[transfer];
    uint32_t bytes = next_bytes(n, t);
    n->at = transfer;
    n->packets[i] = (struct net_packet){
        .age = l->heap[0].age,
        .ready = l->heap[0].age,
        .serial = n->serial++,
        .message = transfer,
        .from = t->m.from,
        .to = t->m.to,
        .bytes = bytes,
        .number = (uint32_t)(t->sent / n->c.packet),
        .dimension = UINT8_MAX,
        .via = NET_NONE,
    };
    n->counts.packets++;
    t->sent += bytes;
    if (t->sent < t->m.bytes) {
        l->heap[0].age = next_age(n, t);
        l->heap[0].bytes = next_bytes(n, t);
        net_wait_sink(l);
    } else {
        net_wait_drop(l);
        ch->waiting--;
        n->hooks.left(n->hooks.context, t->m.ref, net_add(n, n->now, net_tail_of(n, bytes)),
                      waited_at_host(n, t, &n->packets[i]));
    }
    return i;
}

static void count_wait(struct net *n, uint64_t waited)
{
    n->counts.waits += waited > 0;
    n->counts.waited += waited;
    n->counts.longest = waited > n->counts.longest ? waited : n->counts.longest;
}

/* Ends a packet that has entered the last channel, to its host: from now on the time of its arrival
 * is known. */
static void eject(struct net *n, uint32_t packet, uint64_t head)
{
    struct net_packet *p = &n->packets[packet];
    struct net_transfer *t = &n->transfers[p->message];
    struct net_arrival *a = &t->arrival;
    uint64_t length = net_tail_of(n, p->bytes), tail = net_add(n, head, length);
    uint64_t switches = p->channels - UINT64_C(1);
    uint64_t path = switches * n->c.hop + p->channels * n->c.cable;
    uint64_t serial = handed_after(n, t, p) + (n->c.store_and_forward ? switches * length : 0);
    /* smaller than `serial` only if products were rounded */
    uint64_t most = head - t->m.time - path;
    struct net_way way = {.path = path, .serial = serial < most ? serial : most};
    t->came += p->bytes;
    if (head < a->first) {
        a->first = head;
        a->first_way = way;
    }
    if (tail > a->last) {
        a->last = tail;
        way.serial += length;
        a->last_way = way;
    }
    n->counts.delivered++;
    n->counts.bytes += p->bytes;
    if (t->came == t->m.bytes) {
        add_event(n, a->last, NET_DELIVER, p->message, p->message);
    }
    p->channel = NET_NONE;
    p->to = n->packets_free;
    n->packets_free = packet + 1;
    n->packets_live--;
}

/* Sends the first packet of a virtual channel's queue along its channel, now. */
static void transmit(struct net *n, uint32_t channel, uint32_t vc)
{
    struct net_channel *ch = &n->channels[channel];
    struct net_vc *l = net_vc(n, channel, vc);
    uint32_t i;
    if (net_from_host(n, channel)) {
        i = cut_packet(n, l, ch);
        if (i == NET_NONE) {
            return;
        }
    } else {
        i = l->heap[0].ref;
        struct net_packet *p = &n->packets[i];
        n->at = p->message;
        net_wait_drop(l);
        ch->waiting--;
        uint64_t busy = net_busy_of(n, p->bytes);
        ch->queued -= busy;
        give_back(n, p->channel, p->vc, net_add(n, net_add(n, n->now, busy), n->c.cable), p->bytes);
    }
    struct net_packet *p = &n->packets[i];
    count_wait(n, n->now - p->ready);
    n->counts.hops++;
    uint64_t busy = net_busy_of(n, p->bytes);
    ch->busy += busy;
    ch->busy_until = net_add(n, n->now, busy);
    p->channels++;
    if (n->hooks.taken != NULL) {
        n->hooks.taken(n->hooks.context, n->transfers[p->message].m.ref, channel, n->now, busy);
    }
    uint64_t head = net_add(n, n->now, n->c.cable);
    if (net_to_host(n, channel)) {
        eject(n, i, head);
        return;
    }
    l->free -= p->bytes;
    p->channel = channel;
    p->vc = (uint8_t)vc;
    p->ready = net_add(n, net_add(n, head, n->c.store_and_forward ? net_tail_of(n, p->bytes) : 0),
                       n->c.hop);
    add_event(n, p->ready, NET_ENTER, channel, i);
}

/* Queues a packet that has passed through a switch at the channel by which it will leave. */
static void enter(struct net *n, uint32_t packet)
{
    struct net_packet *p = &n->packets[packet];
    uint32_t channel = net_route(n, p, n->g->links[p->channel].to - n->g->hosts);
    struct net_channel *ch = &n->channels[channel];
    struct net_wait w = {.age = p->age, .serial = p->serial, .ref = packet, .bytes = p->bytes};
    n->short_of_memory |= net_wait_push(net_vc(n, channel, p->next), &w) != 0;
    ch->waiting++;
    ch->queued += net_busy_of(n, p->bytes);
    look(n, channel, ch->busy_until > n->now ? ch->busy_until : n->now);
}

/* ---- How a channel chooses ---- */

/* Returns the virtual channel, among those whose first packet can leave now, that has the oldest
 * first packet, or NET_NONE; *later gets the time at which the channel must look again. */
static uint32_t choose(struct net *n, uint32_t channel, uint64_t *later)
{
    bool host = net_from_host(n, channel), last = net_to_host(n, channel);
    uint32_t vcs = channel < 2 * n->g->hosts ? 1 : n->vcs, best = NET_NONE;
    *later = NET_NEVER;
    for (uint32_t i = 0; i < vcs; i++) {
        struct net_vc *l = net_vc(n, channel, i);
        l->starved = false;
        if (l->count == 0) {
            continue;
        }
        uint64_t at = host && l->heap[0].age > n->now ? l->heap[0].age : n->now;
        if (!last && at == n->now) {
            uint32_t bytes = l->heap[0].bytes;
            collect(n, l);
            l->starved = l->free < bytes;
            at = l->starved ? enough_at(n, l, bytes) : at;
        }
        if (at > n->now) {
            *later = at < *later ? at : *later;
        } else if (best == NET_NONE ||
                   net_wait_before(&l->heap[0], &net_vc(n, channel, best)->heap[0])) {
            best = i;
        }
    }
    return best;
}

static void look_now(struct net *n, uint32_t channel)
{
    struct net_channel *ch = &n->channels[channel];
    uint64_t later;
    if (ch->look != n->now) {
        return; /* an earlier time for the look has replaced this event */
    }
    ch->look = NET_NEVER;
    if (ch->busy_until > n->now) {
        look(n, channel, ch->busy_until);
        return;
    }
    if (n->c.downs != 0 && net_up_at(n, channel) > n->now) {
        look(n, channel, net_up_at(n, channel));
        return;
    }
    uint32_t vc = choose(n, channel, &later);
    if (vc != NET_NONE) {
        transmit(n, channel, vc);
        later = ch->waiting > 0 ? ch->busy_until : NET_NEVER;
    }
    if (later != NET_NEVER) {
        look(n, channel, later);
    }
}

bool net_next(struct net *n, uint64_t *time)
{
    struct sim_event e;
    int found = net_events_peek(&n->events, &e);
    n->short_of_memory |= found < 0;
    *time = found > 0 ? e.time : n->now;
    return found != 0;
}

/* Prefetches the data of events that happen soon, in steps, each of which reads what the step
 * before has prefetched. */
static void fetch_ahead(const struct net *n)
{
    enum { SOON = 2, LATER = 5 };
    const struct sim_event *e = net_events_ahead(&n->events, LATER);
    if (e != NULL && e->key >> 32 == NET_ENTER) {
        __builtin_prefetch(&n->packets[e->ref]);
    } else if (e != NULL && e->key >> 32 == NET_LOOK) {
        __builtin_prefetch(&n->channels[e->ref]);
        for (uint32_t i = 0; i < n->vcs && i < 2; i++) {
            __builtin_prefetch(net_vc(n, (uint32_t)e->ref, i));
        }
    }
    e = net_events_ahead(&n->events, SOON);
    if (e != NULL && e->key >> 32 == NET_LOOK) {
        for (uint32_t i = 0; i < n->vcs && i < 2; i++) {
            const struct net_vc *l = net_vc(n, (uint32_t)e->ref, i);
            __builtin_prefetch(l->heap);
        }
    }
}

int net_step(struct net *n)
{
    struct sim_event e;
    if (net_events_peek(&n->events, &e) != 1) {
        n->short_of_memory = true;
        return -1;
    }
    net_events_pop(&n->events);
    n->now = e.time;
    fetch_ahead(n);
    switch (e.key >> 32) {
    case NET_ENTER:
        enter(n, (uint32_t)e.ref);
        break;
    case NET_LOOK:
        look_now(n, (uint32_t)e.ref);
        break;
    default:
        deliver(n, (uint32_t)e.ref);
    }
    return n->short_of_memory || n->overflow ? -1 : 0;
}
