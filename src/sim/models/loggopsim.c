/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model that gives LogGOPSim's finish times, to the nanosecond, for every schedule: those of a
 * LogGOPSim that takes operations which become ready at once in a stable order.
 * docs/loggops-model.md says where the default model differs.
 *
 * Events happen in the order of (time, stamp); the stamp is a count of operations and messages in
 * the order of their creation. Each rank has clocks, times at which a resource is free again:
 * next_o of a CPU, next_gs of a NIC to send, next_gr of a NIC to receive. Times are 64-bit
 * nanoseconds that wrap.
 *
 * LogGOPSim pushes an event whose clock is not free yet into its queue again and again. In this
 * model such an event waits in the heap of its class (rank, kind, cpu, nic), ordered by stamp. Only
 * the first event of the class, its deputy, is in the queue:
 *
 *   W1  of a class with waiters, a deputy stands in the queue with a stamp below
 *       all theirs, no later than the time at which the class's clocks are free.
 *   W2  a deputy that finds a clock taken goes to the time when it is free.
 *
 *   W3  no clock ever goes back, and nothing happens before what has happened.
 *
 * All events of a class wait for the same clocks. LogGOPSim would push each of them to the same
 * times as the deputy, and take them there in the order of stamps: so the result is the same, at a
 * cost that does not grow with the number of waiters. W3 is violated where a sum wraps, as for a
 * message of size 0 with g < G: then the run begins again and pushes events as LogGOPSim does.
 */
#include "engine.h"
#include "match.h"
#include "sim/goal/replay.h"
#include "sim/util/queue.h"
#include "sim/util/reserve.h"
#include "sim/util/waiters.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { KIND_CALC, KIND_SEND, KIND_MESSAGE, KINDS };

struct host {
    const struct goal_node *nodes;
    uint64_t first_node; /* index of the rank's first operation among all */
    uint32_t node_count;
    struct classes classes;
    struct match_side posted, unexpected;
};

struct ready {
    uint32_t *nodes;
    size_t count, capacity;
};

struct loggopsim {
    const struct sim_input *in;
    struct sim_output *out;
    const struct goal *goal;
    uint64_t L, o, g, G, O, S;
    uint32_t cpus, nics, clocks_per_host;
    struct host *hosts;
    uint64_t *clocks;   /* by host: next_o[cpus], next_gs[nics], next_gr[nics] */
    uint32_t *resolved; /* by node: dependencies that are met, modulo 2^32 */
    struct match_pool pool;
    struct sim_queue queue;
    /* operations that became ready: of the event's own rank, and of the rank at the other end of a
     * rendezvous */
    struct ready ready[2];
    uint32_t other; /* the rank of ready[1] */
    uint64_t stamp;
    bool short_of_memory;
    bool wrapped;  /* a time or a clock has become earlier: W3 does not hold */
    bool push_all; /* there are no waiters: an event that finds a clock taken is pushed again */
};

/* The event that is being handled. The operation of a message is its send. */
struct event {
    uint64_t time;
    uint64_t key; /* the stamp, and one bit below it that is set for a message */
    uint64_t ref; /* rank and index of the operation */
    uint32_t host;
    const struct goal_node *node;
    unsigned kind;
};

static uint64_t *next_o(struct loggopsim *s, uint32_t host, uint8_t cpu)
{
    return &s->clocks[(size_t)host * s->clocks_per_host + cpu];
}

static uint64_t *next_gs(struct loggopsim *s, uint32_t host, uint8_t nic)
{
    return &s->clocks[(size_t)host * s->clocks_per_host + s->cpus + nic];
}

static uint64_t *next_gr(struct loggopsim *s, uint32_t host, uint8_t nic)
{
    return &s->clocks[(size_t)host * s->clocks_per_host + s->cpus + s->nics + nic];
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void push(struct loggopsim *s, uint64_t time, uint64_t key, uint64_t ref)
{
    if (sim_queue_push(&s->queue, time, key, ref) != 0) {
        s->short_of_memory = true;
    }
}

/* Returns when all clocks that an event needs are free. */
static uint64_t free_at(struct loggopsim *s, uint32_t host, unsigned kind,
                        const struct goal_node *n)
{
    uint64_t cpu = *next_o(s, host, n->cpu);
    switch (kind) {
    case KIND_SEND:
        return later(cpu, *next_gs(s, host, n->nic));
    case KIND_MESSAGE:
        return later(cpu, *next_gr(s, host, n->nic));
    default:
        return cpu;
    }
}

static uint32_t class_of(const struct event *e)
{
    return e->kind == KIND_CALC ? e->node->cpu
                                : 256 + (e->node->nic * 256u + e->node->cpu) * KINDS + e->kind;
}

/* Lets an event wait until `until`, in the queue or as a waiter of its class. */
static void wait(struct loggopsim *s, const struct event *e, uint64_t until)
{
    if (s->push_all) {
        push(s, until, e->key, e->ref);
        return;
    }
    struct waiters *w = classes_make(&s->hosts[e->host].classes, class_of(e));
    if (w == NULL) {
        s->short_of_memory = true;
        return;
    }
    if (w->has_deputy && w->deputy < e->key) {
        s->short_of_memory |= waiters_add(w, (struct waiter){e->key, e->ref}) != 0;
        return;
    }
    /* The deputy that this event replaces stays in the queue, and becomes a waiter when it comes
     * up. */
    w->has_deputy = true;
    w->deputy = e->key;
    push(s, until, e->key, e->ref);
}

/* Makes the first waiter of an event's class the deputy, after the event has taken its clocks. */
static void step_forward(struct loggopsim *s, const struct event *e)
{
    struct waiters *w = classes_find(&s->hosts[e->host].classes, class_of(e));
    if (w == NULL || !w->has_deputy || w->deputy != e->key) {
        return;
    }
    w->has_deputy = w->count > 0;
    if (w->has_deputy) {
        struct waiter next = waiters_take(w);
        w->deputy = next.key;
        push(s, free_at(s, e->host, e->kind, e->node), next.key, next.ref);
    }
}

static void make_ready(struct loggopsim *s, struct ready *r, uint32_t node)
{
    if (!ARRAY_ROOM(r->nodes, r->count, r->capacity, 64)) {
        s->short_of_memory = true;
        return;
    }
    r->nodes[r->count++] = node;
}

static void resolve(struct loggopsim *s, uint32_t host, const goal_u32 *successors, uint32_t count,
                    struct ready *r)
{
    struct host *h = &s->hosts[host];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = successors[i];
        if (++s->resolved[h->first_node + node] == h->nodes[node].depends) {
            make_ready(s, r, node);
        }
    }
}

static const goal_u32 *successors_of(const struct host *h)
{
    return (const goal_u32 *)(h->nodes + h->node_count);
}

static void resolve_done(struct loggopsim *s, uint32_t host, const struct goal_node *n,
                         struct ready *r)
{
    resolve(s, host, successors_of(&s->hosts[host]) + n->done_first, n->done_count, r);
}

static void resolve_start(struct loggopsim *s, uint32_t host, const struct goal_node *n)
{
    resolve(s, host, successors_of(&s->hosts[host]) + n->start_first, n->start_count, &s->ready[0]);
}

/* Pushes the operations that became ready on a rank: first sends, then recvs, then calcs. */
static void drain(struct loggopsim *s, uint32_t host, struct ready *r)
{
    struct host *h = &s->hosts[host];
    for (uint8_t type = GOAL_SEND; type <= GOAL_CALC && r->count > 0; type++) {
        for (size_t i = 0; i < r->count; i++) {
            const struct goal_node *n = &h->nodes[r->nodes[i]];
            if (n->type == type) {
                push(s, free_at(s, host, type == GOAL_SEND ? KIND_SEND : KIND_CALC, n),
                     s->stamp++ << 1, (uint64_t)host << 32 | r->nodes[i]);
                s->out->operations++;
            }
        }
    }
    r->count = 0;
}

static void drain_both(struct loggopsim *s, uint32_t host)
{
    if (s->ready[1].count > 0 && s->other < host) {
        drain(s, s->other, &s->ready[1]);
    }
    drain(s, host, &s->ready[0]);
    if (s->ready[1].count > 0) {
        drain(s, s->other, &s->ready[1]);
    }
}

/* Ends the send at the other end of a rendezvous, whose recv has been matched. */
static void release_sender(struct loggopsim *s, const struct event *e, uint32_t rank, uint32_t node,
                           const struct goal_node *clocks)
{
    s->other = rank;
    resolve_done(s, rank, &s->hosts[rank].nodes[node], &s->ready[rank == e->host ? 0 : 1]);
    uint64_t *cpu = next_o(s, rank, clocks->cpu), *nic = next_gs(s, rank, clocks->nic);
    *cpu = later(*cpu, e->time);
    *nic = later(*nic, e->time);
}

/* Returns the time of the event plus `charge`, and notes if the sum wraps. */
static uint64_t after(struct loggopsim *s, const struct event *e, uint64_t charge)
{
    uint64_t time = e->time + charge;
    s->wrapped |= time < e->time;
    return time;
}

static void do_calc(struct loggopsim *s, const struct event *e)
{
    *next_o(s, e->host, e->node->cpu) = after(s, e, e->node->size);
    resolve_start(s, e->host, e->node);
    resolve_done(s, e->host, e->node, &s->ready[0]);
}

static void do_send(struct loggopsim *s, const struct event *e)
{
    const struct goal_node *n = e->node;
    uint64_t more = n->size - 1;
    resolve_start(s, e->host, n);
    *next_o(s, e->host, n->cpu) = after(s, e, s->o + more * s->O);
    *next_gs(s, e->host, n->nic) = after(s, e, s->g + more * s->G);
    push(s, after(s, e, s->o + s->L), s->stamp++ << 1 | 1, e->ref);
    s->out->messages++;
    if (n->size <= s->S) {
        resolve_done(s, e->host, n, &s->ready[0]);
    }
}

static void do_recv(struct loggopsim *s, const struct event *e)
{
    struct host *h = &s->hosts[e->host];
    const struct goal_node *n = e->node;
    resolve_start(s, e->host, n);
    struct match_entry m;
    switch (match_take(&h->unexpected, &s->pool, n->peer, n->tag, &m)) {
    case 1:
        if (n->size > s->S) {
            release_sender(s, e, m.source, m.ref, n);
        }
        resolve_done(s, e->host, n, &s->ready[0]);
        break;
    case 0:
        if (match_add(&h->posted, &s->pool, n->peer, n->tag, (uint32_t)e->ref) == 0) {
            break;
        }
        /* fall through */
    default:
        s->short_of_memory = true;
    }
}

static void do_message(struct loggopsim *s, const struct event *e)
{
    struct host *h = &s->hosts[e->host];
    const struct goal_node *n = e->node;
    uint64_t more = n->size - 1;
    uint32_t source = (uint32_t)(e->ref >> 32), node = (uint32_t)e->ref;
    *next_o(s, e->host, n->cpu) = after(s, e, s->o + later(more * s->O, more * s->G));
    *next_gr(s, e->host, n->nic) = after(s, e, s->g + more * s->G);
    struct match_entry m;
    switch (match_take(&h->posted, &s->pool, source, n->tag, &m)) {
    case 1:
        if (n->size > s->S) {
            release_sender(s, e, source, node, n);
        }
        resolve_done(s, e->host, &h->nodes[m.ref], &s->ready[0]);
        break;
    case 0:
        if (match_add(&h->unexpected, &s->pool, source, n->tag, node) == 0) {
            break;
        }
        /* fall through */
    default:
        s->short_of_memory = true;
    }
}

static void handle(struct loggopsim *s, const struct sim_event *q)
{
    struct event e = {.time = q->time, .key = q->key, .ref = q->ref};
    e.host = (uint32_t)(q->ref >> 32);
    e.node = &s->hosts[e.host].nodes[(uint32_t)q->ref];
    if (e.node->type == GOAL_RECV) {
        do_recv(s, &e);
        drain_both(s, e.host);
        return;
    }
    e.kind = e.node->type == GOAL_CALC ? KIND_CALC : KIND_SEND;
    if (q->key & 1) {
        e.kind = KIND_MESSAGE;
        e.host = e.node->peer;
    }
    uint64_t until = free_at(s, e.host, e.kind, e.node);
    if (until > e.time) {
        wait(s, &e, until);
        return;
    }
    switch (e.kind) {
    case KIND_CALC:
        do_calc(s, &e);
        break;
    case KIND_SEND:
        do_send(s, &e);
        break;
    default:
        do_message(s, &e);
    }
    step_forward(s, &e);
    drain_both(s, e.host);
}

struct leaving {
    struct loggopsim *s;
    uint32_t rank;
};

static void leave_recv(void *context, const struct match_entry *e)
{
    struct leaving *l = context;
    if (sim_leave(l->s->out, l->rank, e->ref, SIM_LEFT_RECV) != 0) {
        l->s->short_of_memory = true;
    }
}

static void leave_message(void *context, const struct match_entry *e)
{
    struct leaving *l = context;
    const struct goal_node *n = &l->s->hosts[e->source].nodes[e->ref];
    enum sim_left_kind kind = n->size > l->s->S ? SIM_LEFT_SEND : SIM_LEFT_MESSAGE;
    if (sim_leave(l->s->out, e->source, e->ref, kind) != 0) {
        l->s->short_of_memory = true;
    }
}

static enum sim_end finish(struct loggopsim *s)
{
    for (uint32_t rank = 0; rank < s->goal->ranks; rank++) {
        struct leaving l = {s, rank};
        match_each(&s->hosts[rank].posted, &s->pool, leave_recv, &l);
        match_each(&s->hosts[rank].unexpected, &s->pool, leave_message, &l);
        for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
            uint64_t *t = &s->out->finish[rank];
            *t = later(*t, *next_o(s, rank, (uint8_t)cpu));
        }
    }
    s->out->abandoned = s->goal->nodes - s->out->operations;
    if (s->short_of_memory) {
        return sim_no_memory(s->out);
    }
    if (s->out->left_count > 0) {
        return SIM_STUCK;
    }
    int cyclic = s->out->abandoned > 0 ? goal_cyclic(s->goal) : 0;
    if (cyclic < 0) {
        return sim_no_memory(s->out);
    }
    return cyclic ? SIM_STUCK : SIM_DONE;
}

static void set_parameters(struct loggopsim *s)
{
    const uint64_t *value = s->in->parameters->value;
    s->L = value[SIM_L] / SIM_AS_PER_NS;
    s->o = value[SIM_o] / SIM_AS_PER_NS;
    s->g = value[SIM_g] / SIM_AS_PER_NS;
    s->G = value[SIM_G] / SIM_AS_PER_NS;
    s->O = value[SIM_O] / SIM_AS_PER_NS;
    s->S = value[SIM_S];
}

static int set_up(struct loggopsim *s)
{
    const struct goal *g = s->goal;
    s->cpus = g->cpus;
    s->nics = g->nics;
    s->clocks_per_host = s->cpus + 2 * s->nics;
    s->hosts = calloc(g->ranks, sizeof(*s->hosts));
    s->clocks = calloc((size_t)g->ranks * s->clocks_per_host, sizeof(*s->clocks));
    s->resolved = sim_reserve(g->nodes * sizeof(*s->resolved));
    if (s->hosts == NULL || s->clocks == NULL || s->resolved == NULL ||
        match_pool_init(&s->pool, g->sends + g->recvs) != 0) {
        return -1;
    }
    uint64_t first = 0;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        s->hosts[rank].nodes = r.nodes;
        s->hosts[rank].node_count = r.node_count;
        s->hosts[rank].first_node = first;
        first += r.node_count;
        for (uint32_t i = 0; i < r.root_count; i++) {
            make_ready(s, &s->ready[0], r.roots[i]);
        }
        drain(s, rank, &s->ready[0]);
    }
    return s->short_of_memory ? -1 : 0;
}

static void tear_down(struct loggopsim *s)
{
    for (uint32_t rank = 0; s->hosts != NULL && rank < s->goal->ranks; rank++) {
        struct host *h = &s->hosts[rank];
        match_release(&h->posted, &s->pool);
        match_release(&h->unexpected, &s->pool);
        classes_free(&h->classes);
    }
    free(s->hosts);
    free(s->clocks);
    sim_unreserve(s->resolved, s->goal->nodes * sizeof(*s->resolved));
    match_pool_free(&s->pool);
    sim_queue_free(&s->queue);
    free(s->ready[0].nodes);
    free(s->ready[1].nodes);
}

static void run(struct loggopsim *s)
{
    const struct sim_input *in = s->in;
    struct sim_event e;
    for (uint64_t n = 1; !s->short_of_memory && (!s->wrapped || s->push_all); n++) {
        if (!sim_queue_pop(&s->queue, &e)) {
            break;
        }
        handle(s, &e);
        if (n % SIM_PROGRESS == 0 && in->progress != NULL) {
            in->progress(in->context, s->out->operations + s->out->messages);
        }
    }
}

enum sim_end loggopsim_run(const struct sim_input *in, struct sim_output *out)
{
    enum sim_end end = SIM_DONE;
    bool wrapped = false;
    for (int attempt = 0; attempt == 0 || (attempt == 1 && wrapped); attempt++) {
        struct loggopsim s = {.in = in, .out = out, .goal = in->goal, .push_all = wrapped};
        out->operations = out->messages = 0;
        set_parameters(&s);
        if (set_up(&s) != 0) {
            end = sim_no_memory(out);
        } else {
            run(&s);
            wrapped = s.wrapped;
            end = !wrapped || s.push_all ? finish(&s) : SIM_DONE;
        }
        tear_down(&s);
    }
    return end;
}
