/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of a schedule on simulated NICs: its memory, its events, its end; see nic.h. */
#include "state.h"

#include "sim/util/reserve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* What a NIC does not do; NULL: it does all. */
static const char *beyond(const struct goal_node *n)
{
    if (n->type == GOAL_DOES_PUT && n->size > NIC_PACKET) {
        return "a handler puts at most 4096 bytes of its own memory; hostput has no limit";
    }
    bool atomic = n->type >= GOAL_ATOMIC && n->type <= GOAL_CAS;
    if (atomic && n->size > NIC_ATOMIC_MOST) {
        return "an atomic operation has at most 4096 bytes";
    }
    return n->type == GOAL_CAS && n->size != 1 && n->size != 2 && n->size != 4 && n->size != 8
               ? "a compare-and-swap has 1, 2, 4 or 8 bytes"
               : NULL;
}

static int check_portals(const struct goal *g, char *error, size_t size)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        for (uint32_t i = 0; i < r.node_count; i++) {
            const char *why = beyond(&r.nodes[i]);
            if (why != NULL) {
                snprintf(error, size, "rank %" PRIu32 ", operation %" PRIu32 ": %s", rank, i, why);
                return -1;
            }
        }
    }
    return 0;
}

int sim_nic_check(const struct goal *g, char *error, size_t size)
{
    if (g->cpus > 1 || g->nics > 1) {
        snprintf(error, size,
                 "--nic: the schedule has %" PRIu32 " cpus and %" PRIu32
                 " nics; a host of a simulated NIC runs one thread, with one NIC",
                 g->cpus, g->nics);
        return -1;
    }
    return g->portals != 0 ? check_portals(g, error, size) : 0;
}

void nic_at(struct nic_run *r, uint64_t time, enum nic_event kind, uint32_t of)
{
    uint64_t last = kind == NIC_HOST ? UINT64_C(1) << 63 : 0;
    if (sim_queue_push(&r->queue, time, last | r->serial++, (uint64_t)kind << 32 | of) != 0) {
        r->memory_short = true;
    }
}

static void happen(struct nic_run *r, const struct sim_event *e)
{
    uint32_t of = (uint32_t)e->ref;
    r->now = e->time;
    switch ((enum nic_event)(e->ref >> 32)) {
    case NIC_LEAVE:
        nic_leave(r, of);
        break;
    case NIC_ARRIVE:
        nic_arrive(r, of);
        break;
    case NIC_READY:
        nic_ready(r, of);
        break;
    case NIC_DONE:
        nic_done(r, of);
        break;
    case NIC_TELL:
        nic_tell(r, of);
        break;
    case NIC_LOOK:
        nic_look(r, of);
        break;
    case NIC_GO:
        nic_go(r, of);
        break;
    default:
        nic_host(r, of);
    }
    if (r->fired_first != r->fired_count) {
        nic_fire(r);
    }
}

/* Lets all happen; false if memory or time is short. */
static bool go_on(struct nic_run *r)
{
    for (;;) {
        uint64_t net = UINT64_MAX;
        if (r->outgoing_count != 0 && (r->queue.count == 0 || r->queue.events[0].time > r->now)) {
            nic_enter(r);
        }
        bool any = net_next(r->net, &net);
        struct sim_event e;
        if (++r->out->events % SIM_PROGRESS == 0 && r->in->progress != NULL) {
            r->in->progress(r->in->context, r->out->operations + r->out->messages);
        }
        if (r->queue.count != 0 && (!any || r->queue.events[0].time <= net)) {
            (void)sim_queue_pop(&r->queue, &e);
            happen(r, &e);
        } else if (any) {
            if (net_step(r->net) != 0) {
                r->overflow = net_overflow(r->net);
                r->memory_short = !r->overflow;
            }
        } else {
            return true;
        }
        if (r->memory_short || r->overflow || r->crowded || r->misfit || r->misfit_once) {
            return false;
        }
    }
}

/* ---- what is left ---- */

struct remains {
    struct nic_run *run;
    uint32_t rank;
    bool failed;
};

static void left_recv(void *context, const struct match_entry *e)
{
    struct remains *x = context;
    x->failed |= sim_leave(x->run->out, x->rank, e->ref, SIM_LEFT_RECV) != 0;
}

static void left_message(void *context, const struct match_entry *e)
{
    struct remains *x = context;
    const struct nic_message *m = &x->run->messages[e->ref];
    x->failed |= sim_leave(x->run->out, m->from, m->node, SIM_LEFT_MESSAGE) != 0;
}

static void left_tests(struct remains *x)
{
    struct nic_counters *all = &x->run->counters;
    for (size_t i = 0; i < all->count; i++) {
        const struct nic_counter *c = &all->at[i];
        for (size_t k = 0; k < c->waiting.count; k++) {
            uint64_t ref = c->waiting.events[k].ref;
            x->failed |= (ref & NIC_TESTS) != 0 &&
                         sim_leave(x->run->out, c->rank, (uint32_t)ref, SIM_LEFT_TEST) != 0;
        }
    }
}

static enum sim_end end(struct nic_run *r)
{
    uint64_t done = 0;
    bool stuck = r->dropped != 0;
    struct remains x = {r, 0, false};
    left_tests(&x);
    for (; x.rank < r->in->goal->ranks; x.rank++) {
        struct nic_rank *k = &r->ranks[x.rank];
        done += k->done;
        stuck |= k->arrived.count != 0;
        match_each(&k->posted, &r->pool, left_recv, &x);
        match_each(&k->arrived, &r->pool, left_message, &x);
    }
    stuck |= done != r->in->goal->nodes - r->in->goal->parts;
    return x.failed ? sim_no_memory(r->out) : stuck ? SIM_STUCK : SIM_DONE;
}

static void count_traffic(struct nic_run *r)
{
    struct sim_traffic *t = &r->out->traffic;
    t->counts = *net_counts(r->net);
    for (uint32_t i = 0; i < r->in->network->graph->channels; i++) {
        uint64_t busy = net_busy(r->net, i);
        t->busy += busy;
        t->channels += busy != 0;
        if (busy > t->busiest_busy) {
            t->busiest_busy = busy;
            t->busiest = i;
        }
    }
}

/* Says why a run has not come to its end. */
static enum sim_end refuse(const struct nic_run *r)
{
    if (r->misfit) {
        return sim_fail(r->out,
                        "a get or an atomic operation finds an entry with handlers, which take "
                        "puts only");
    }
    if (r->misfit_once) {
        return sim_fail(r->out,
                        "an entry with \"use_once\" has handlers, which this model does not "
                        "know: without one of them it does");
    }
    if (r->crowded) {
        return sim_fail(
            r->out,
            "a NIC has %" PRIu32 " messages of handlers that wait to leave, or %" PRIu32
            " calls at an entry: what pinwheel sim loses, or has wait, is not known here; "
            "--nic FILE.toml may have a larger egress_queue or hpu_queue",
            r->m->egress_queue, r->m->hpu_queue);
    }
    return r->overflow ? sim_fail(r->out, "a time is beyond 2^63 - 1 ps") : sim_no_memory(r->out);
}

/* ---- the run ---- */

static bool open_run(struct nic_run *r)
{
    const struct goal *g = r->in->goal;
    struct net_hooks hooks = nic_hooks;
    struct net_config config = *r->in->network->config;
    hooks.context = r;
    config.byte = r->byte;
    r->ranks = calloc(g->ranks, sizeof(*r->ranks));
    r->net = net_open(r->in->network->graph, &config, &hooks);
    size_t nodes = (size_t)((g->spans[g->ranks - 1].end + sizeof(struct goal_node) - 1) /
                            sizeof(struct goal_node)) +
                   1;
    r->met = sim_reserve(nodes * sizeof(*r->met));
    r->next = sim_reserve(nodes * sizeof(*r->next));
    uint64_t entries = g->sends + g->recvs + g->portals + 1;
    return match_pool_init(&r->pool, entries < UINT32_MAX - 1 ? entries : UINT32_MAX - 1) == 0 &&
           r->ranks != NULL && r->net != NULL && r->met != NULL && r->next != NULL;
}

static void close_run(struct nic_run *r)
{
    const struct goal *g = r->in->goal;
    size_t nodes = (size_t)((g->spans[g->ranks - 1].end + sizeof(struct goal_node) - 1) /
                            sizeof(struct goal_node)) +
                   1;
    for (uint32_t i = 0; r->ranks != NULL && i < g->ranks; i++) {
        match_release(&r->ranks[i].posted, &r->pool);
        match_release(&r->ranks[i].arrived, &r->pool);
        match_release(&r->ranks[i].entries, &r->pool);
        sim_queue_free(&r->ranks[i].early);
        sim_queue_free(&r->ranks[i].passed);
    }
    match_pool_free(&r->pool);
    sim_unreserve(r->met, nodes * sizeof(*r->met));
    sim_unreserve(r->next, nodes * sizeof(*r->next));
    if (r->net != NULL) {
        net_close(r->net);
    }
    sim_queue_free(&r->queue);
    for (unsigned i = 0; i < NIC_CLASSES; i++) {
        nic_flows_free(&r->flows[i]);
    }
    nic_counters_free(&r->counters);
    free(r->fired);
    free(r->outgoing);
    free(r->calls);
    free(r->hpus);
    free(r->entries);
    free(r->packets);
    free(r->messages);
    free(r->ranks);
}

enum sim_end sim_nic_run(const struct sim_input *in, const struct nic_machine *m,
                         struct sim_output *out)
{
    const struct net_config *c = in->network->config;
    struct nic_run r = {.in = in,
                        .m = m,
                        .out = out,
                        .lookahead = 2 * c->cable + c->hop,
                        .byte = c->byte != 0 ? c->byte : m->byte,
                        .free_message = NIC_NONE,
                        .free_packet = NIC_NONE,
                        .free_call = NIC_NONE};
    *out = (struct sim_output){.ticks_per_ns = 1000};
    out->finish = calloc(in->goal->ranks, sizeof(*out->finish));
    bool open = open_run(&r) && out->finish != NULL;
    enum sim_end how = SIM_FAILED;
    for (uint32_t rank = 0; open && rank < in->goal->ranks; rank++) {
        nic_begin(&r, rank);
    }
    if (!open) {
        how = sim_no_memory(out);
    } else if (!go_on(&r)) {
        how = refuse(&r);
    } else {
        how = end(&r);
        count_traffic(&r);
    }
    close_run(&r);
    return how;
}
