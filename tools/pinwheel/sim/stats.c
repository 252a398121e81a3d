/* SPDX-License-Identifier: BSD-3-Clause */
/* What a simulated job has taken: read, added up, compared. */
#include "stats.h"

#include "shared.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* What a rank has computed until its end. */
static uint64_t host_until(const struct sim_counts *n, uint64_t end)
{
    uint64_t since = end > n->ahead_at ? end - n->ahead_at : 0;
    uint64_t ahead = n->ahead > since ? n->ahead - since : 0;
    return n->host > ahead ? n->host - ahead : 0;
}

struct sim_stats *stats_take(struct coordinator *c)
{
    uint32_t ranks = places(c); /* children have rows behind those of ranks */
    struct sim_stats *s = calloc(1, sizeof(*s) + ranks * sizeof(s->rank[0]));
    if (s == NULL) {
        return NULL;
    }
    s->ranks = ranks;
    s->per_host = c->setup.per_host;
    s->hpus = c->setup.machine.hpus;
    s->clock_mhz = c->setup.machine.clock_mhz;
    for (uint32_t i = 0; i < ranks; i++) {
        struct rank_stats *to = &s->rank[i];
        struct sim_figures f;
        shared_figures(c, i, &f);
        to->rank = sim_host(&c->layout, i);
        to->process = i < c->setup.ranks ? 0 : i - sim_child(&c->layout, to->rank) + 1;
        to->counts = f.counts;
        to->now = rank_of(c, i)->now;
        to->counts.host = host_until(&f.counts, to->now);
        to->lead = rank_of(c, i)->lead < to->now ? rank_of(c, i)->lead : to->now;
        stats_take_phases(to, &f, to->now);
        to->requests = f.requests;
        to->dropped = f.dropped;
        to->lost = f.lost;
        to->lost_bytes = f.lost_bytes;
        to->disabled = f.disabled;
        to->buffers_most = f.buffers_most;
        to->matched = f.requests > f.dropped ? f.requests - f.dropped : 0;
        if (i < c->setup.ranks && i % s->per_host == 0) { /* the first rank has its host's cable */
            to->link_out = net_busy(c->net, 2 * (i / s->per_host));
            to->link_in = net_busy(c->net, 2 * (i / s->per_host) + 1);
        }
        s->end = to->now > s->end ? to->now : s->end;
    }
    for (uint32_t i = 2 * c->graph.hosts; i < c->graph.channels; i++) {
        if (net_busy(c->net, i) > s->inner) {
            s->inner = net_busy(c->net, i);
            s->inner_number = i;
        }
    }
    return s;
}

/* ---- adding up ---- */

static void add_queue(struct sim_queue *to, const struct sim_queue *q)
{
    to->waited += q->waited;
    to->most = q->most > to->most ? q->most : to->most;
}

static void add_handler(struct sim_counts *to, const struct sim_handler *h)
{
    unsigned i = 0;
    while (i < SIM_HANDLERS - 1 && to->handler[i].function != 0 &&
           strcmp(to->handler[i].name, h->name) != 0) {
        i++;
    }
    struct sim_handler *sum = &to->handler[i];
    if (sum->function == 0) {
        *sum = *h;
        return;
    }
    sum->calls += h->calls;
    sum->taken += h->taken;
    sum->waited += h->waited;
    sum->wait = h->wait > sum->wait ? h->wait : sum->wait;
}

static void add_rank(struct rank_stats *to, const struct rank_stats *r)
{
    struct sim_counts *sum = &to->counts;
    const struct sim_counts *n = &r->counts;
    sum->messages += n->messages;
    sum->packets += n->packets;
    sum->bytes += n->bytes;
    sum->host += n->host;
    sum->memory += n->memory;
    sum->egress += n->egress;
    sum->dma += n->dma;
    sum->handlers += n->handlers;
    sum->skipped += n->skipped;
    sum->looks += n->looks;
    sum->shortage += n->shortage;
    add_queue(&sum->egress_queue, &n->egress_queue);
    add_queue(&sum->dma_queue, &n->dma_queue);
    add_queue(&sum->hpu_queue, &n->hpu_queue);
    for (unsigned k = 0; k < SIM_HPUS; k++) {
        sum->hpu[k] += n->hpu[k];
    }
    for (unsigned k = 0; k < SIM_HANDLERS && n->handler[k].function != 0; k++) {
        add_handler(sum, &n->handler[k]);
    }
    stats_add_phases(to, r);
    to->now = r->now > to->now ? r->now : to->now;
    to->link_out += r->link_out;
    to->link_in += r->link_in;
    to->requests += r->requests;
    to->matched += r->matched;
    to->dropped += r->dropped;
    to->lost += r->lost;
    to->lost_bytes += r->lost_bytes;
    to->disabled += r->disabled;
    to->buffers_most = r->buffers_most > to->buffers_most ? r->buffers_most : to->buffers_most;
}

void stats_sum(const struct sim_stats *s, struct rank_stats *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < s->ranks; i++) {
        add_rank(sum, &s->rank[i]);
    }
}

/* ---- what limits ---- */

const char *stats_resource(enum stats_resource r)
{
    static const char *const names[] = {
        [STATS_LINK] = "link", [STATS_EGRESS] = "egress", [STATS_HPUS] = "HPUs",
        [STATS_DMA] = "DMA",   [STATS_HOST] = "host",     [STATS_MEMORY] = "host memory"};
    return names[r];
}

static void more(struct stats_use *use, double taken, double time, uint32_t rank, bool inner)
{
    double part = time > 0 ? taken / time : 0;
    if (part > use->part) {
        *use = (struct stats_use){part, rank, inner};
    }
}

void stats_use(const struct sim_stats *s, struct stats_use use[STATS_RESOURCES])
{
    double end = (double)s->end, egress = 0, memory = 0, dma = 0, hpus = 0; /* of a NIC */
    memset(use, 0, STATS_RESOURCES * sizeof(use[0]));
    for (uint32_t i = 0; i < s->ranks; i++) {
        const struct rank_stats *r = &s->rank[i];
        more(&use[STATS_LINK], (double)r->link_out, end, i / s->per_host, false);
        more(&use[STATS_LINK], (double)r->link_in, end, i / s->per_host, false);
        bool shares = s->per_host > 1 && r->process == 0, goes_on = shares && i % s->per_host != 0;
        uint32_t whose = shares ? i / s->per_host : r->rank;
        egress = (goes_on ? egress : 0) + (double)r->counts.egress;
        memory = (goes_on ? memory : 0) + (double)r->counts.memory;
        dma = (goes_on ? dma : 0) + (double)r->counts.dma;
        hpus = (goes_on ? hpus : 0) + (double)sim_hpus_taken(&r->counts);
        more(&use[STATS_EGRESS], egress, end, whose, false);
        more(&use[STATS_HOST], (double)r->counts.host, end, r->rank, false);
        more(&use[STATS_MEMORY], memory, end, whose, false);
        more(&use[STATS_DMA], dma, end, whose, false);
        more(&use[STATS_HPUS], hpus, end * s->hpus, whose, false);
    }
    more(&use[STATS_LINK], (double)s->inner, end, s->inner_number, true);
}

uint64_t stats_gain(const struct sim_stats *s)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < s->ranks; i++) {
        uint64_t sooner = s->rank[i].now - s->rank[i].lead;
        end = sooner > end ? sooner : end;
    }
    return stats_shortage(s) != 0 ? s->end - end : 0;
}

uint64_t stats_shortage(const struct sim_stats *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->ranks; i++) {
        sum += s->rank[i].counts.shortage;
    }
    return sum < s->end ? sum : s->end;
}
