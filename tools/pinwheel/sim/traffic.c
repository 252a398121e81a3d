/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets on their way: from what a rank has sent into the network, and from the network to the
 * rank that they come to.
 */
#include "traffic.h"

#include "base/array.h"
#include "base/heap.h"
#include "shared.h"
#include "sim/util/random.h"
#include "turns.h"

#include <stdlib.h>
#include <string.h>

enum { SHUFFLE_PS = 1000000 };

static bool coming_before(const struct coming *a, const struct coming *b, const void *of)
{
    return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

HEAP_OF(coming, struct coming, 4, coming_before)

/* ---- into the network ---- */

/* How much later a packet comes that is shuffled: it depends on nothing but the seed, and on which
 * packet of its sender it is. */
static uint64_t shuffled(const struct coordinator *c, const struct sim_packet *p)
{
    uint64_t key = goal_random(goal_random(c->setup.shuffle, p->from), p->message);
    return c->setup.shuffled ? goal_scale(goal_random(key, p->offset), SHUFFLE_PS) : 0;
}

/* A packet comes to its rank at a time. */
static void announce(struct coordinator *c, struct sim_packet *p, uint64_t time)
{
    struct player *to = &c->players[p->to];
    p->time = time;
    if (!ARRAY_ROOM(to->coming, to->count, to->capacity, 16)) {
        c->memory_short = true;
        free(p);
        return;
    }
    struct coming item = {time, c->serial++, p};
    coming_rise(to->coming, to->count++, &item, NULL);
    turns_due(c, p->to);
}

/* The network: a packet takes a channel. The last one leads to its host. */
static void taken(void *coordinator, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length)
{
    struct coordinator *c = coordinator;
    if (channel < 2 * c->graph.hosts && channel % 2 == 1) {
        struct sim_packet *p = c->sent[ref];
        uint64_t tail = sim_bytes_ps(p->bytes > 1 ? p->bytes - 1 : 0, c->setup.net.byte);
        c->sent[ref] = NULL;
        c->travelling--;
        announce(c, p, now + c->setup.net.cable + tail + shuffled(c, p));
    }
}

static void left(void *coordinator, uint32_t ref, uint64_t time, uint64_t waited)
{
}

static void delivered(void *coordinator, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
    struct coordinator *c = coordinator;
    if (ARRAY_ROOM(c->free, c->free_count, c->free_capacity, 64)) {
        c->free[c->free_count++] = ref;
    }
}

static bool keep(struct coordinator *c, struct sim_packet *p, uint32_t *ref)
{
    if (c->free_count != 0) {
        *ref = c->free[--c->free_count];
    } else if (ARRAY_ROOM(c->sent, c->sent_count, c->sent_capacity, 64)) {
        *ref = (uint32_t)c->sent_count++;
    } else {
        return false;
    }
    c->sent[*ref] = p;
    return true;
}

/* Returns when the first byte of a packet leaves its host for the time that succeeds. With
 * `--fault drop` the cable loses packets: the host's end of the cable learns of a loss after the
 * way there and back, and sends the packet again, while those behind it wait. */
static uint64_t get_through(struct coordinator *c, const struct sim_packet *p)
{
    uint32_t host = sim_node(&c->layout, p->from);
    struct player *from = &c->players[host];
    if (c->setup.faults.drop <= 0) {
        return p->time;
    }
    uint64_t losses = fault_losses(&c->setup.faults, host, from->entered++);
    uint64_t time = p->time > from->link_free ? p->time : from->link_free;
    uint64_t taken = sim_bytes_ps(p->bytes != 0 ? p->bytes : 1, c->setup.net.byte);
    c->result.resent += losses;
    from->link_free = time + losses * (taken + 2 * c->setup.net.cable);
    return from->link_free;
}

/* Puts a packet into the network; one to the same host goes as far as to the next switch. */
static void enter(struct coordinator *c, struct sim_packet *p)
{
    uint64_t bytes = p->bytes != 0 ? p->bytes : 1;
    uint32_t ref;
    uint32_t from = sim_node(&c->layout, p->from), to = sim_node(&c->layout, p->to);
    if (from == to) {
        announce(c, p,
                 p->time + c->layout.lookahead + sim_bytes_ps(bytes - 1, c->setup.net.byte) +
                     shuffled(c, p));
        return;
    }
    uint64_t time = get_through(c, p);
    if (!keep(c, p, &ref)) {
        c->memory_short = true;
        free(p);
        return;
    }
    struct net_message m = {.from = from,
                            .to = to,
                            .bytes = bytes,
                            .time = time,
                            .pace = c->setup.net.byte,
                            .ordered = true,
                            .ref = ref};
    c->travelling++;
    c->memory_short |= net_send(c->net, &m) != 0;
}

const struct net_hooks traffic_hooks = {.left = left, .deliver = delivered, .taken = taken};

static int by_time(const void *a, const void *b)
{
    const struct departing *x = a, *y = b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Takes what an idle rank has sent. */
static void take_sent(struct coordinator *c, uint32_t rank)
{
    struct sim_record *r = rank_of(c, rank);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->out_count && !c->spoiled; i++) {
        struct sim_packet *p = shared_packet(c, rank, i, &sum);
        if (p == NULL || !ARRAY_ROOM(c->departing, c->departing_count, c->departing_capacity, 64)) {
            c->memory_short |= !c->spoiled;
            free(p);
            return;
        }
        c->departing[c->departing_count++] = (struct departing){p->time, rank, i, p};
    }
    if (sum != r->out_sum) {
        shared_spoil(c, rank, "the packets that it sends");
    }
    r->out_count = 0;
    r->out_sum = 0;
}

void traffic_collect(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->back.count; i++) {
        take_sent(c, c->back.rank[i]);
    }
    if (c->departing_count != 0) {
        qsort(c->departing, c->departing_count, sizeof(*c->departing), by_time);
    }
    for (size_t i = 0; i < c->departing_count; i++) {
        if (c->spoiled) {
            free(c->departing[i].packet);
        } else {
            enter(c, c->departing[i].packet);
        }
    }
    c->departing_count = 0;
}

/* ---- to the ranks ---- */

/* When a rank that has ended is to get something: its sender is told instead. */
static void refuse(struct coordinator *c, struct sim_packet *p)
{
    c->result.refused += p->kind == SIM_DATA;
    if (p->kind == SIM_REFUSED || c->players[p->from].gone) {
        free(p);
        return;
    }
    uint32_t to = p->from, life = p->from_life;
    p->kind = SIM_REFUSED;
    p->from = p->to;
    p->from_life = p->to_life;
    p->to = to;
    p->to_life = life;
    announce(c, p, p->time + c->layout.lookahead);
}

static struct sim_packet *pop(struct player *p)
{
    struct sim_packet *first = p->coming[0].packet;
    if (--p->count != 0) {
        struct coming last = p->coming[p->count];
        coming_sink(p->coming, p->count, &last, NULL);
    }
    return first;
}

uint64_t traffic_hand_over(struct coordinator *c, uint32_t rank, uint64_t until)
{
    struct sim_record *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    while (p->count != 0 && p->coming[0].time < until) {
        if (r->in_count == SIM_PACKETS) {
            return p->coming[0].time;
        }
        struct sim_packet *packet = pop(p);
        if (p->gone || packet->time >= r->address.closed || packet->to_life != r->address.life) {
            refuse(c, packet);
            continue;
        }
        memcpy(&shared_of(c, rank)->in[r->in_count++], packet,
               offsetof(struct sim_packet, data) + packet->bytes);
        r->in_sum = sim_sum_packet(r->in_sum, packet);
        free(packet);
    }
    return until;
}
