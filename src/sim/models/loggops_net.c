/* SPDX-License-Identifier: BSD-3-Clause */
/* The pinwheel model on a packet network; see loggops_net.h. */
#include "loggops_net.h"

#include "loggops_base.h"
#include "sim/util/reserve.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>

#define NET_FLIGHT_NONE UINT32_MAX

/* Returns the send whose bytes a message or data consist of. */
static const struct goal_node *send_of(const struct worker *w, const struct event *arrival)
{
    return &loggops_rank(w->s, arrival->source)->nodes[arrival->op];
}

uint64_t loggops_net_came(const struct worker *w, const struct event *message)
{
    return w->s->net->came[loggops_place(w->s, send_of(w, message))];
}

/* ---- Calls from the network ---- */

static void left(void *context, uint32_t ref, uint64_t time, uint64_t waited)
{
    struct loggops_net *n = context;
    struct worker *w = n->w;
    const struct flight *f = &n->flights[ref];
    if (f->arrival.arrival != ARRIVE_DATA) {
        return;
    }
    struct event data = {
        .time = time, .op = f->arrival.op, .rank = f->arrival.source, .kind = EVENT_DATA};
    struct rank *r = loggops_rank(w->s, data.rank);
    struct lists *lists = lists_of(w, r, data.rank);
    lists->data_end = later(lists->data_end, time);
    if (recording(w)) {
        loggops_record_left(w, &f->arrival, time, waited);
    }
    complete(w, r, &data, &r->nodes[data.op], later(f->free, time));
}

static void deliver(void *context, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
    struct loggops_net *n = context;
    struct worker *w = n->w;
    struct event e = n->flights[ref].arrival;
    n->flights[ref].next = n->free;
    n->free = ref + 1;
    if (e.arrival != ARRIVE_REPLY) {
        n->came[loggops_place(w->s, send_of(w, &e))] = a->first;
    }
    if (recording(w)) {
        loggops_record_way(w, &e, a, now);
    }
    e.time = now;
    emit(w, &e);
}

static void taken(void *context, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length)
{
    struct loggops_net *n = context;
    loggops_record_taken(n->w, &n->flights[ref].arrival, channel, now, length);
}

/* ---- Sending ---- */

static uint32_t new_flight(struct loggops_net *n)
{
    uint32_t i = n->free;
    if (i != 0) {
        n->free = n->flights[i - 1].next;
        return i - 1;
    }
    return ARRAY_ROOM(n->flights, n->used, n->capacity, 256) ? n->used++ : NET_FLIGHT_NONE;
}

void loggops_net_send(struct worker *w, const struct event *arrival, uint64_t bytes, uint64_t free)
{
    struct loggops_net *n = w->s->net;
    uint32_t i = new_flight(n);
    if (i == NET_FLIGHT_NONE) {
        w->short_of_memory = true;
        return;
    }
    n->flights[i] = (struct flight){.arrival = *arrival, .free = free};
    struct net_message m = {.from = n->host[arrival->source],
                            .to = n->host[arrival->rank],
                            .bytes = bytes,
                            .time = arrival->time,
                            .pace = n->pace,
                            .ordered = arrival->arrival == ARRIVE_MESSAGE,
                            .ref = i};
    if (net_send(n->net, &m) != 0 && !net_overflow(n->net)) {
        w->short_of_memory = true;
    }
}

/* ---- Running ---- */

int loggops_net_open(struct loggops_net *n, struct loggops *s)
{
    const struct sim_network *network = s->in->network;
    *n = (struct loggops_net){.w = &s->worker[0],
                              .config = *network->config,
                              .host = network->host,
                              .pace = later(s->G, s->O)};
    if (n->config.byte == 0) {
        n->config.byte = s->G;
    }
    bool channels = s->record != NULL && s->record->taken_most > 0;
    struct net_hooks hooks = {left, deliver, channels ? taken : NULL, n};
    n->came = sim_reserve(s->node_room * sizeof(*n->came));
    n->net = net_open(network->graph, &n->config, &hooks);
    s->net = n;
    return n->came != NULL && n->net != NULL ? 0 : -1;
}

void loggops_net_close(struct loggops_net *n)
{
    if (n->w != NULL) {
        sim_unreserve(n->came, n->w->s->node_room * sizeof(*n->came));
    }
    net_close(n->net);
    free(n->flights);
}

/* Handles the next event, of the network or of a rank; false: there is none left. */
static bool run_next(struct loggops_net *n)
{
    struct worker *w = n->w;
    const struct event *first = agenda_first(&w->agenda);
    struct event e;
    uint64_t time;
    if (net_next(n->net, &time) && (first == NULL || time <= first->time)) {
        if (net_step(n->net) != 0 && !net_overflow(n->net)) {
            w->short_of_memory = true;
        }
        return true;
    }
    if (!agenda_pop(&w->agenda, &e)) {
        return false;
    }
    loggops_handle(w, &e);
    return true;
}

void loggops_net_run(struct loggops_net *n)
{
    struct worker *w = n->w;
    w->end = UINT64_MAX; /* one window: all events are in one agenda */
    for (uint32_t rank = 0; rank < w->s->goal->ranks; rank++) {
        loggops_begin(w, rank);
    }
    while (!w->short_of_memory && !w->overflow && !net_overflow(n->net) && run_next(n)) {
        loggops_tell_progress(w);
    }
}

enum sim_end loggops_net_end(const struct loggops_net *n, struct sim_output *out)
{
    const struct net_counts *c = net_counts(n->net);
    const struct net_graph *g = n->w->s->in->network->graph;
    if (net_overflow(n->net)) {
        const struct event *e = &n->flights[net_culprit(n->net)].arrival;
        out->has_culprit = true;
        out->culprit_rank = e->source;
        out->culprit_node = e->op;
        return sim_fail(out, "the time of a packet of its message would pass 2^63 - 1 ps, which is "
                             "106 days");
    }
    if (!n->w->short_of_memory && !n->w->overflow && c->delivered != c->packets) {
        return sim_fail(out, "the network stands still with %" PRIu64 " packets in it",
                        c->packets - c->delivered);
    }
    out->traffic.counts = *c;
    for (uint32_t i = 0; i < g->channels; i++) {
        uint64_t busy = net_busy(n->net, i);
        out->traffic.busy += busy;
        out->traffic.channels += busy > 0;
        if (busy > out->traffic.busiest_busy) {
            out->traffic.busiest_busy = busy;
            out->traffic.busiest = i;
        }
    }
    return SIM_DONE;
}
