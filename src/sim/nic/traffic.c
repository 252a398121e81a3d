/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way: the egress port, the network, matching. The rules are those of
 * src/fabric/sim (send.c, receive.c) and of tools/pinwheel/sim/traffic.c.
 */
#include "state.h"

#include "base/array.h"

/* ---- leaving ---- */

uint32_t nic_new(struct nic_run *r, const struct nic_message *m)
{
    uint32_t i = r->free_message, flow = nic_flow(&r->flows[m->class], m->from, m->to);
    if (i != NIC_NONE) {
        r->free_message = r->messages[i].next;
    } else if (ARRAY_ROOM(r->messages, r->message_count, r->message_room, 1024)) {
        i = (uint32_t)r->message_count++;
    }
    if (i == NIC_NONE || flow == NIC_NONE) {
        r->memory_short = true;
        return NIC_NONE;
    }
    r->messages[i] = *m;
    r->messages[i].flow = flow;
    r->messages[i].number = r->sent++;
    r->messages[i].begin = NIC_NEVER;
    r->messages[i].first = r->messages[i].last = NIC_NONE;
    return i;
}

void nic_free(struct nic_run *r, uint32_t message)
{
    r->messages[message].next = r->free_message;
    r->free_message = message;
}

/* The message that leaves next; NIC_NONE: none is to leave. */
static uint32_t next_departure(const struct nic_run *r, const struct nic_rank *k)
{
    uint32_t first = k->departures.first;
    if (k->leaving != NIC_NONE) {
        return k->leaving;
    }
    if (k->early.count == 0) {
        return first;
    }
    const struct sim_event *e = &k->early.events[0];
    const struct nic_message *m = first != NIC_NONE ? &r->messages[first] : NULL;
    bool early = m == NULL || e->time < m->ready || (e->time == m->ready && e->key < m->number);
    return early ? (uint32_t)e->ref : first;
}

/* Puts a message behind those of the same sender, receiver and class. */
static void join(struct nic_run *r, struct nic_flow *f, uint32_t message)
{
    r->messages[message].behind = NIC_NONE;
    *(f->last == NIC_NONE ? &f->first : &r->messages[f->last].behind) = message;
    f->last = message;
    f->unmatched = f->unmatched == NIC_NONE ? message : f->unmatched;
    f->frontier = f->frontier == NIC_NONE ? message : f->frontier;
}

/* Has the port look when the next message can leave, unless it does already. */
static void start_egress(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    uint32_t next = next_departure(r, k);
    if (next == NIC_NONE) {
        return;
    }
    uint64_t at = nic_later(nic_later(r->messages[next].ready, k->egress), r->now);
    if (at < k->leaves) {
        k->leaves = at;
        nic_at(r, at, NIC_LEAVE, rank);
    }
}

void nic_depart(struct nic_run *r, uint32_t message, uint64_t ready)
{
    struct nic_message *m = &r->messages[message];
    struct nic_flow *f = nic_flow_of(r, m);
    struct nic_rank *k = &r->ranks[m->from];
    f->leaves = nic_later(ready, f->leaves);
    m->ready = f->leaves;
    r->overflow |= m->ready > INT64_MAX;
    r->out->messages++;
    join(r, f, message);
    if (k->departures.last == NIC_NONE || r->messages[k->departures.last].ready <= m->ready) {
        nic_push(r, &k->departures, message);
    } else if (sim_queue_push(&k->early, m->ready, m->number, message) != 0) {
        r->memory_short = true;
    }
    start_egress(r, m->from);
}

static uint32_t new_packet(struct nic_run *r)
{
    uint32_t i = r->free_packet;
    if (i != NIC_NONE) {
        r->free_packet = r->packets[i].bytes;
    } else if (ARRAY_ROOM(r->packets, r->packet_count, r->packet_room, 1024)) {
        i = (uint32_t)r->packet_count++;
    } else {
        r->memory_short = true;
    }
    return i;
}

/* How long a packet of n bytes takes the port; of the LogGOPS model a message does. */
static uint64_t taken_by(const struct nic_machine *m, uint64_t n, bool last)
{
    if (m->loggops) {
        return last ? m->g + charges_product(n != 0 ? n - 1 : 0, m->byte)
                    : charges_product(n, m->byte);
    }
    return nic_later(m->g, charges_product(n, nic_later(m->byte, m->dma_byte)));
}

static void announce(struct nic_run *r, uint32_t packet, uint64_t time)
{
    nic_at(r, time, NIC_ARRIVE, packet);
}

/* Puts a packet into the network; one to its sender goes as far as to the next switch. */
static void enter(struct nic_run *r, uint32_t number)
{
    const struct nic_packet *p = &r->packets[number];
    const struct nic_message *m = &r->messages[p->message];
    if (m->to == m->from) {
        announce(r, number, r->now + r->lookahead + charges_product(p->bytes - 1, r->byte));
        return;
    }
    const struct net_message net = {.from = r->in->network->host[m->from],
                                    .to = r->in->network->host[m->to],
                                    .bytes = p->bytes,
                                    .time = r->now,
                                    .pace = r->byte,
                                    .ordered = true,
                                    .ref = number};
    if (net_send(r->net, &net) != 0) {
        r->overflow = net_overflow(r->net);
        r->memory_short = !r->overflow;
    }
}

static int by_rank(const void *a, const void *b, void *run)
{
    const struct nic_run *r = run;
    const struct nic_packet *x = &r->packets[*(const uint32_t *)a];
    const struct nic_packet *y = &r->packets[*(const uint32_t *)b];
    uint32_t from = r->messages[x->message].from, other = r->messages[y->message].from;
    return from < other ? -1 : from > other; /* a port has one packet at a time that takes it */
}

void nic_enter(struct nic_run *r)
{
    if (r->outgoing_count > 1) {
        qsort_r(r->outgoing, r->outgoing_count, sizeof(*r->outgoing), by_rank, r);
    }
    for (size_t i = 0; i < r->outgoing_count; i++) {
        enter(r, r->outgoing[i]);
    }
    r->outgoing_count = 0;
}

/* Takes the message that leaves next out of those that are to leave. */
static void take_out(struct nic_run *r, struct nic_rank *k, uint32_t message)
{
    if (k->departures.first == message) {
        (void)nic_take(r, &k->departures);
    } else {
        struct sim_event e;
        (void)sim_queue_pop(&k->early, &e);
    }
}

void nic_leave(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    if (k->leaves != r->now) {
        return; /* it looks at another time, since a message was ready before the one for which it
                   was to look */
    }
    uint32_t i = next_departure(r, k), number = new_packet(r);
    k->leaves = NIC_NEVER;
    if (number == NIC_NONE) {
        return;
    }
    struct nic_message *m = &r->messages[i];
    if (m->left == 0) {
        take_out(r, k, i);
        k->queued -= m->queued;
    }
    uint64_t n = m->bytes - m->left < NIC_PACKET ? m->bytes - m->left : NIC_PACKET;
    struct nic_packet *p = &r->packets[number];
    *p = (struct nic_packet){.message = i,
                             .bytes = n != 0 ? (uint32_t)n : 1,
                             .offset = m->left,
                             .first = m->left == 0,
                             .last = m->left + n == m->bytes};
    m->left += n;
    k->egress = r->now + taken_by(r->m, n, p->last);
    bool last = p->last;
    k->leaving = last ? NIC_NONE : i;
    uint32_t answers = last ? m->answers : NIC_NONE;
    if (ARRAY_ROOM(r->outgoing, r->outgoing_count, r->outgoing_room, 64)) {
        r->outgoing[r->outgoing_count++] = number;
    } else {
        r->memory_short = true;
    }
    start_egress(r, rank);
    if (answers != NIC_NONE) {
        nic_replied(r, answers);
    }
}

/* ---- the network ---- */

/* A packet takes a channel; the last one leads to its host. */
static void taken(void *run, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length)
{
    struct nic_run *r = run;
    if (channel < 2 * r->in->network->graph->hosts && channel % 2 == 1) {
        uint64_t tail = charges_product(r->packets[ref].bytes - 1, r->byte);
        announce(r, ref, now + r->in->network->config->cable + tail);
    }
}

static void left(void *run, uint32_t ref, uint64_t time, uint64_t waited)
{
}

static void delivered(void *run, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
}

const struct net_hooks nic_hooks = {.left = left, .deliver = delivered, .taken = taken};

/* ---- coming ---- */

/* When the last byte of a packet is behind the receiving side, which takes one message after the
 * other as the LogGOPS model has it. */
static uint64_t through_port(struct nic_run *r, struct nic_message *m, const struct nic_packet *p)
{
    struct nic_rank *k = &r->ranks[m->to];
    uint64_t tail = charges_product(p->bytes - 1, r->m->byte);
    if (m->begin == NIC_NEVER) {
        m->begin = nic_later(r->now - tail, k->ingress);
        k->ingress =
            m->begin + r->m->g + charges_product(m->bytes != 0 ? m->bytes - 1 : 0, r->m->byte);
    }
    uint64_t at = nic_later(r->now, m->begin + charges_product(m->came, r->m->byte) + tail);
    m->came += p->bytes;
    return at;
}

/* With static routes no packet is ready before those that its sender sent before it. */
void nic_arrive(struct nic_run *r, uint32_t packet)
{
    const struct nic_packet *p = &r->packets[packet];
    struct nic_message *m = &r->messages[p->message];
    uint64_t at = r->m->loggops ? through_port(r, m, p) : r->now;
    at += p->first ? r->m->match : r->m->cam;
    if (r->in->network->config->routing == NET_STATIC) {
        struct nic_flow *f = nic_flow_of(r, m);
        at = f->ready = nic_later(f->ready, at);
    }
    nic_at(r, at, NIC_READY, packet);
}
