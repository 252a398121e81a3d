/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way: the egress port, the network, matching, the DMA engine. The rules are
 * those of src/fabric/sim (send.c, receive.c, dma.c) and of tools/pinwheel/sim/traffic.c.
 */
#include "state.h"

#include "base/array.h"
#include "sim/util/charges.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- leaving ---- */

/* Puts a message behind those of the same sender and receiver. */
static void join_pair(struct nic_run *r, uint32_t message)
{
    const struct nic_message *m = &r->messages[message];
    struct nic_pair *pair = nic_pair(&r->pairs, m->from, m->to);
    if (pair == NULL) {
        r->memory_short = true;
        return;
    }
    if (!pair->waits) {
        pair->first = message;
    } else {
        r->messages[pair->last].behind = message;
    }
    pair->last = message;
    pair->waits = true;
}

void nic_send(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ready)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    uint32_t i = r->free_message;
    if (i != NIC_NONE) {
        r->free_message = r->messages[i].next;
    } else if (ARRAY_ROOM(r->messages, r->message_count, r->message_room, 1024)) {
        i = (uint32_t)r->message_count++;
    } else {
        r->memory_short = true;
        return;
    }
    r->messages[i] = (struct nic_message){.from = rank,
                                          .to = n->peer,
                                          .node = node,
                                          .tag = n->tag,
                                          .ready = ready,
                                          .bytes = n->size,
                                          .begin = NIC_NEVER,
                                          .behind = NIC_NONE,
                                          .first = NIC_NONE,
                                          .last = NIC_NONE};
    join_pair(r, i);
    bool idle = k->departures.first == NIC_NONE;
    nic_append(r, &k->departures, i);
    r->out->messages++;
    if (idle) {
        nic_at(r, later(ready, k->egress), NIC_LEAVE, rank);
    }
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
    return later(m->g, charges_product(n, later(m->byte, m->dma_byte)));
}

void nic_leave(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    uint32_t i = k->departures.first, number = new_packet(r);
    if (number == NIC_NONE) {
        return;
    }
    struct nic_message *m = &r->messages[i];
    uint64_t n = m->bytes - m->left < NIC_PACKET ? m->bytes - m->left : NIC_PACKET;
    struct nic_packet *p = &r->packets[number];
    *p = (struct nic_packet){.message = i,
                             .bytes = n != 0 ? (uint32_t)n : 1,
                             .offset = m->left,
                             .first = m->left == 0,
                             .last = m->left + n == m->bytes};
    m->left += n;
    k->egress = r->now + taken_by(r->m, n, p->last);
    if (p->last) {
        (void)nic_take(r, &k->departures);
    }
    if (k->departures.first != NIC_NONE) {
        nic_at(r, later(k->egress, r->messages[k->departures.first].ready), NIC_LEAVE, rank);
    }
    if (m->to == rank) {
        nic_announce(r, number, r->now + r->lookahead + charges_product(p->bytes - 1, r->byte));
        return;
    }
    const struct net_message net = {.from = r->in->network->host[rank],
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

/* ---- the network ---- */

/* A packet takes a channel; the last one leads to its host. */
static void taken(void *run, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length)
{
    struct nic_run *r = run;
    if (channel < 2 * r->in->network->graph->hosts && channel % 2 == 1) {
        uint64_t tail = charges_product(r->packets[ref].bytes - 1, r->byte);
        nic_announce(r, ref, now + r->in->network->config->cable + tail);
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

void nic_announce(struct nic_run *r, uint32_t packet, uint64_t time)
{
    nic_at(r, time, NIC_ARRIVE, packet);
}

/* When the last byte of a packet is behind the receiving side, which takes one message after the
 * other as the LogGOPS model has it. */
static uint64_t through_port(struct nic_run *r, struct nic_message *m, const struct nic_packet *p)
{
    struct nic_rank *k = &r->ranks[m->to];
    uint64_t tail = charges_product(p->bytes - 1, r->m->byte);
    if (m->begin == NIC_NEVER) {
        m->begin = later(r->now - tail, k->ingress);
        k->ingress =
            m->begin + r->m->g + charges_product(m->bytes != 0 ? m->bytes - 1 : 0, r->m->byte);
    }
    uint64_t at = later(r->now, m->begin + charges_product(m->came, r->m->byte) + tail);
    m->came += p->bytes;
    return at;
}

/* With static routes no packet is ready before those that its sender sent before it. */
void nic_arrive(struct nic_run *r, uint32_t packet)
{
    struct nic_packet *p = &r->packets[packet];
    struct nic_message *m = &r->messages[p->message];
    struct nic_pair *pair = nic_pair(&r->pairs, m->from, m->to);
    if (pair == NULL) {
        r->memory_short = true;
        return;
    }
    uint64_t at = r->m->loggops ? through_port(r, m, p) : r->now;
    at += p->first ? r->m->match : r->m->cam;
    if (r->in->network->config->routing == NET_STATIC) {
        at = pair->ready = later(pair->ready, at);
    }
    nic_at(r, at, NIC_READY, packet);
}

/* The deposit of packets that are ready and follow each other in their message, from the first one
 * on: it takes the engine and host memory, and is there after the latency. */
static void deposit(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    struct nic_rank *k = &r->ranks[m->to];
    uint64_t bytes = 0, end = r->packets[m->first].offset;
    while (m->first != NIC_NONE && r->packets[m->first].offset == end) {
        uint32_t i = m->first;
        struct nic_packet *p = &r->packets[i];
        bytes += p->bytes;
        end += p->bytes;
        m->first = p->next;
        p->bytes = r->free_packet;
        r->free_packet = i;
    }
    uint64_t begin = later(later(r->now, k->dma), k->memory);
    k->memory = begin + charges_product(bytes, r->m->host_byte);
    k->dma = begin + charges_product(bytes, r->m->dma_byte);
    m->deposited += bytes;
    if (m->deposited >= m->bytes) {
        nic_at(r, begin + r->m->dma, NIC_TOLD, message);
    }
}

/* A message is written when its first packet is ready, and those before it of the same sender are
 * with the engine. */
void nic_ready(struct nic_run *r, uint32_t packet)
{
    struct nic_packet *p = &r->packets[packet];
    struct nic_message *m = &r->messages[p->message];
    struct nic_pair *pair = nic_pair(&r->pairs, m->from, m->to);
    p->next = p->first ? m->first : NIC_NONE;
    if (p->first || m->first == NIC_NONE) {
        m->first = packet;
    } else {
        r->packets[m->last].next = packet;
    }
    m->last = p->next == NIC_NONE ? packet : m->last;
    m->headed |= p->first;
    while (pair != NULL && pair->waits && r->messages[pair->first].headed) {
        struct nic_message *first = &r->messages[pair->first];
        while (first->first != NIC_NONE) {
            deposit(r, pair->first);
        }
        if (first->deposited < first->bytes) {
            break;
        }
        pair->waits = first->behind != NIC_NONE;
        pair->first = first->behind;
    }
}
