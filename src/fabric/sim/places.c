/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NIC is at which place, by NID and PID; peers are made when they are first met. */
#include "fabric/sim/places.h"

#include "base/reason.h"
#include "fabric/sim/receive.h"

#include <stdlib.h>

enum { FIRST_PID = 1 };

/* The NIC of a place; of others, as it was when this turn began: news travel with packets. */
static const struct sim_address *address_of(const struct sim_fabric *f, uint32_t place)
{
    const struct sim_clock *c = f->clock;
    return place == c->rank ? &c->me->address : &c->segment->address[place];
}

uint32_t sim_nid_of(const struct sim_clock *c)
{
    return sim_node(c->segment, c->rank) + 1;
}

struct sim_peer *sim_peer_known(struct sim_fabric *f, uint32_t rank, uint32_t life)
{
    LIST_EACH(struct sim_peer, known, &f->peers, link) {
        if (known->rank == rank && known->life == life) {
            return known;
        }
    }
    return NULL;
}

struct sim_peer *sim_peer_at(struct sim_fabric *f, uint32_t rank, uint32_t life)
{
    struct sim_peer *p = sim_peer_known(f, rank, life);
    if (p != NULL || (p = calloc(1, sizeof(*p))) == NULL) {
        return p;
    }
    const struct sim_address *other = address_of(f, rank);
    if (other->life != life) { /* it has ended, and another process has its place */
        free(p);
        return NULL;
    }
    struct fabric_address a = {other->nid, other->pid, other->incarnation,
                               other->uid, false,      &fabric_sim};
    p->fabric = f;
    p->rank = rank;
    p->life = life;
    sim_begin_source(f, p);
    list_push_back(&f->peers, &p->link);
    p->source.np = f->setup.up->peer_up(f->setup.nic, &a, (struct fabric_peer *)p);
    for (unsigned c = 0; p->source.np != NULL && c < FABRIC_CLASSES; c++) {
        p->channel[c].rx = f->setup.up->rx_new(p->source.np, (enum fabric_class)c);
    }
    if (p->source.np == NULL) {
        list_remove(&p->link);
        free(p);
        return NULL;
    }
    return p;
}

/* Whether a rank has a NIC, as far as this one can know: news travel with the packets, but among
 * processes of a rank, which run one at a time. */
static bool is_open(const struct sim_fabric *f, uint32_t rank)
{
    const struct sim_segment *s = f->clock->segment;
    const struct sim_address *a = address_of(f, rank);
    uint64_t now = f->clock->now;
    if (a->opened == SIM_NEVER) {
        return false;
    }
    if (sim_node(s, rank) == sim_node(s, f->clock->rank)) {
        return a->closed == SIM_NEVER;
    }
    return a->opened + s->lookahead <= now &&
           (a->closed == SIM_NEVER || a->closed + s->lookahead > now);
}

/* The place of a NIC; none: UINT32_MAX. */
static uint32_t place_at(const struct sim_fabric *f, uint32_t nid, uint32_t pid)
{
    const struct sim_segment *s = f->clock->segment;
    uint32_t first = (nid - 1) * s->per_host, used = atomic_load(&s->used);
    for (uint32_t rank = first; rank < first + s->per_host && rank < s->ranks; rank++) {
        if (is_open(f, rank) && address_of(f, rank)->pid == pid) {
            return rank;
        }
        uint32_t child = sim_child(s, rank);
        for (uint32_t i = child; i < child + s->processes && i < used; i++) {
            if (is_open(f, i) && address_of(f, i)->pid == pid) {
                return i;
            }
        }
    }
    return UINT32_MAX;
}

enum fabric_connect sim_connect(struct fabric *fabric, uint32_t nid, uint32_t pid,
                                struct reason *why)
{
    struct sim_fabric *f = sim_of(fabric);
    uint32_t nodes = sim_nodes(f->clock->segment);
    if (nid == 0 || nid > nodes) {
        return reason_say(why, FABRIC_NEVER,
                          "NID %u is none of the simulated job, whose ranks are at 1 to %u", nid,
                          nodes);
    }
    uint32_t place = place_at(f, nid, pid);
    if (place == UINT32_MAX) {
        return FABRIC_LATER;
    }
    return sim_peer_at(f, place, address_of(f, place)->life) != NULL ? FABRIC_UP : FABRIC_LATER;
}

uint32_t sim_free_pid(const struct sim_fabric *f, uint32_t wanted)
{
    uint32_t nid = sim_nid_of(f->clock);
    uint32_t pid = wanted != 0 ? wanted : FIRST_PID;
    while (place_at(f, nid, pid) != UINT32_MAX) {
        if (wanted != 0) {
            return 0;
        }
        pid++;
    }
    return pid;
}
