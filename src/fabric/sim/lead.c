/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lead: how much sooner what happens now would happen if each NIC had one HPU more.
 *
 *      call ─► HPU ─► packet ─► egress port ─► link ─► HPU of a peer ─► ... ─► end of the job
 *
 * An event has the lead of what made it happen, a packet that of the event that sent it, a thread
 * that of the event that it waited for, a fence the least of those who come. Where two things must
 * have happened, both are looked at: a call begins when it is queued and an HPU is free, in a
 * replay with one HPU more (`free`); a packet leaves when it is ready and the port has done its
 * work, and so with links and transfers; a thread goes on when it waits and has something to go on
 * with.
 *
 * What is not known is the way of other events to one that waits for several of them, and the
 * queues inside of the network: there the lead is that of the event that was the last one.
 */
#include "fabric/sim/lead.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of the HPUs of the replay that run nothing, the one that is free first; one is, since there is
 * one more than there are. */
static unsigned first_free(const struct sim_lead *l, unsigned hpus)
{
    unsigned best = hpus;
    for (unsigned k = 0; k <= hpus; k++) {
        bool sooner = l->taken[best] || l->free[k] < l->free[best];
        best = !l->taken[k] && sooner ? k : best;
    }
    return best;
}

void lead_begins(struct sim_fabric *f, const struct fabric_begins *b)
{
    struct sim_clock *c = f->clock;
    struct sim_lead *l = &f->lead;
    unsigned k = first_free(l, sim_machine(c)->hpus);
    uint64_t begin = most(b->queued - least(b->lead, b->queued), l->free[k]);
    c->lead = c->now - least(begin, c->now);
    l->taken[k] = true;
    l->at[b->hpu % SIM_HPUS] = (uint8_t)k;
}

void lead_ends(struct sim_fabric *f, const struct fabric_took *t)
{
    struct sim_clock *c = f->clock;
    struct sim_lead *l = &f->lead;
    unsigned k = l->at[t->hpu % SIM_HPUS];
    l->free[k] = c->now - least(c->lead, c->now);
    l->taken[k] = false;
    /* What follows the calls of a message follows the last one of them. */
    *t->calls = most(l->free[k], *t->calls);
    c->lead = c->now - least(*t->calls, c->now);
}

/* Something takes a resource from `start` on that could have done so at `sooner`, had it been free.
 * Returns when it would take it: whatever the order of those who do, it is not before the work is
 * done that was there since the last one with nothing gained. */
static uint64_t take(struct sim_work *w, uint64_t sooner, uint64_t start, uint64_t taken)
{
    if (sooner >= start) {
        *w = (struct sim_work){start, 0};
    }
    uint64_t begin = least(most(sooner, w->begin + w->work), start);
    w->work += taken;
    return begin;
}

void lead_leaves(struct sim_fabric *f, struct sim_packet *p, uint64_t ready, uint64_t lead,
                 uint64_t taken)
{
    uint64_t sooner = ready - least(lead, ready);
    p->lead = p->time - take(&f->lead.egress, sooner, p->time, taken);
}

void lead_comes(struct sim_fabric *f, const struct sim_packet *p)
{
    uint64_t taken = sim_bytes_ps(p->bytes, sim_machine(f->clock)->byte);
    uint64_t sooner = p->time - least(p->lead, p->time);
    f->clock->lead = p->time - take(&f->lead.in, sooner, p->time, taken);
}

void lead_transfer(struct sim_fabric *f, uint64_t start, uint64_t taken)
{
    struct sim_clock *c = f->clock;
    uint64_t begin = take(&f->lead.dma, c->now - least(c->lead, c->now), start, taken);
    c->lead = least(c->lead, start - begin);
}
