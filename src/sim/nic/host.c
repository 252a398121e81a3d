/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of hosts: which operation is next, and which recv a message meets; see nic.h. */
#include "state.h"

#include "sim/util/charges.h"

static void push(struct nic_run *r, struct nic_rank *k, uint32_t node)
{
    const struct goal_node *n = &k->goal.nodes[node];
    r->next[nic_place(r, n)] = NIC_NONE;
    *(k->ready_last == NIC_NONE ? &k->ready_first
                                : &r->next[nic_place(r, &k->goal.nodes[k->ready_last])]) = node;
    k->ready_last = node;
}

static void release(struct nic_run *r, struct nic_rank *k, const goal_u32 *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct goal_node *n = &k->goal.nodes[list[i]];
        if (++r->met[nic_place(r, n)] == n->depends) {
            push(r, k, list[i]);
        }
    }
}

static void begin(struct nic_run *r, struct nic_rank *k, uint32_t node)
{
    const struct goal_node *n = &k->goal.nodes[node];
    release(r, k, goal_start(&k->goal, n), n->start_count);
    r->out->operations++;
}

void nic_complete(struct nic_run *r, uint32_t rank, uint32_t node)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    k->done++;
    r->out->finish[rank] = r->now;
    release(r, k, goal_done(&k->goal, n), n->done_count);
}

/* How long a calc takes; UINT64_MAX: longer than there is time. */
static uint64_t ps_of(const struct nic_run *r, const struct goal_node *calc)
{
    uint64_t scale = r->in->calc_in_ps ? 1 : 1000;
    return calc->size > (uint64_t)INT64_MAX / scale ? UINT64_MAX : scale * calc->size;
}

void nic_take_time(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ps)
{
    struct nic_rank *k = &r->ranks[rank];
    r->overflow |= ps > (uint64_t)INT64_MAX - r->now;
    k->running = node;
    k->busy = r->now + ps;
    nic_at(r, k->busy, NIC_HOST, rank);
}

/* A recv has got its message: it is over when the program has copied that, if it does. False: it
 * takes time. */
static bool receive(struct nic_run *r, uint32_t rank, uint32_t node, uint32_t message, bool late)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct nic_machine *m = r->m;
    uint64_t bytes = r->messages[message].bytes;
    if (r->messages[message].kind == NIC_ANNOUNCE) {
        const struct nic_message announcement = r->messages[message];
        nic_free(r, message);
        nic_pull(r, &announcement, node, r->now + m->o + m->dma);
        nic_take_time(r, rank, NIC_NONE, m->o); /* the recv is over when its data are there */
        return false;
    }
    bool copies = m->copies == NIC_COPIES_ALL || (m->copies == NIC_COPIES_LATE && late);
    nic_free(r, message);
    if (!copies || bytes == 0 || bytes > m->eager) {
        nic_complete(r, rank, node);
        return true;
    }
    uint64_t begin = r->now > k->memory ? r->now : k->memory;
    uint64_t taken = charges_product(bytes, m->host_byte);
    k->memory = begin + taken;
    nic_take_time(r, rank, node, begin + m->host + taken - r->now);
    return false;
}

/* Posts a recv; it is over if its message is there, and false if it takes time. */
static bool post(struct nic_run *r, uint32_t rank, uint32_t node)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    struct match_entry found;
    int any = match_take(&k->arrived, &r->pool, n->peer, n->tag, &found);
    if (any == 1) {
        return receive(r, rank, node, found.ref, true);
    }
    r->memory_short |= any < 0 || match_add(&k->posted, &r->pool, n->peer, n->tag, node) != 0;
    return true;
}

/* False: what it has matched takes the program's time. */
static bool match(struct nic_run *r, uint32_t rank, uint32_t message)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct nic_message *m = &r->messages[message];
    struct match_entry found;
    if (m->kind == NIC_PULL || m->recv != NIC_NONE) { /* data have left, or are where they belong */
        uint32_t node = m->kind == NIC_PULL ? m->node : m->recv;
        nic_free(r, message);
        nic_complete(r, rank, node);
        return true;
    }
    nic_flow_of(r, m)->for_program--;
    int any = match_take(&k->posted, &r->pool, m->from, m->tag, &found);
    if (any == 1) {
        /* where NICs match, what the program has to match came before its recv */
        return receive(r, rank, found.ref, message, r->m->rendezvous);
    }
    r->memory_short |= any < 0 || match_add(&k->arrived, &r->pool, m->from, m->tag, message) != 0;
    return true;
}

/* Begins an operation; false: it takes no time. */
static bool start(struct nic_run *r, uint32_t rank, uint32_t node)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    begin(r, k, node);
    if (n->type == GOAL_RECV) {
        return !post(r, rank, node);
    }
    if (n->type != GOAL_CALC) {
        return nic_portals(r, rank, node);
    }
    if (n->size == 0) {
        nic_complete(r, rank, node);
        return false;
    }
    nic_take_time(r, rank, node, ps_of(r, n));
    return true;
}

void nic_begin(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    k->goal = goal_rank(r->in->goal, rank);
    k->ready_first = k->ready_last = k->running = k->leaving = NIC_NONE;
    k->leaves = NIC_NEVER;
    k->hpus = k->turn_first = k->turn_last = NIC_NONE;
    k->departures = k->events = (struct nic_list){NIC_NONE, NIC_NONE};
    for (uint32_t i = 0; i < k->goal.root_count; i++) {
        push(r, k, k->goal.roots[i]);
    }
    nic_at(r, 0, NIC_HOST, rank);
}

/* What the program waits for when nothing may begin: the event of a message, or that a test is
 * over, which PtlCTPoll() finds in this order. */
static bool has_news(const struct nic_rank *k)
{
    return k->events.first != NIC_NONE || k->passed.count != 0;
}

/* While it has tests the program looks before it waits, and what it finds at once takes a look.
 * True: time passes, for a look or until there is news. */
static bool waits(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    bool looks = has_news(k) && k->tests != 0 && !k->looked;
    if (has_news(k) && !looks) {
        k->looked = false;
        return false;
    }
    if (looks) {
        k->looked = true;
        k->busy = r->now + r->m->look;
        nic_at(r, k->busy, NIC_HOST, rank);
    } else {
        k->waits = true;
    }
    return true;
}

/* Takes what it has waited for; false: that takes time. */
static bool take_news(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    struct sim_event e = {0};
    uint32_t message = nic_take(r, &k->events);
    if (message != NIC_NONE) {
        return match(r, rank, message);
    }
    (void)sim_queue_pop(&k->passed, &e);
    k->tests--;
    nic_complete(r, rank, (uint32_t)e.ref);
    return true;
}

void nic_host(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    if (k->busy > r->now) {
        nic_at(r, k->busy, NIC_HOST, rank); /* messages have taken its time, too */
        return;
    }
    if (k->running != NIC_NONE) {
        uint32_t node = k->running;
        k->running = NIC_NONE;
        nic_complete(r, rank, node);
    }
    while (!r->memory_short && !r->overflow) {
        uint32_t node = k->ready_first;
        if (node != NIC_NONE) {
            k->ready_first = r->next[nic_place(r, &k->goal.nodes[node])];
            k->ready_last = k->ready_first == NIC_NONE ? NIC_NONE : k->ready_last;
            if (start(r, rank, node)) {
                return;
            }
        } else if (waits(r, rank) || !take_news(r, rank)) {
            return;
        }
    }
}

void nic_takes_host(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    k->busy = nic_later(k->busy, r->now) + r->m->o_receive;
}

/* Has a program that waits go on: it has news, for which it need not look. */
static void wake(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    if (k->waits) {
        k->waits = false;
        k->looked = true;
        nic_at(r, nic_later(k->busy, r->now), NIC_HOST, rank);
    }
}

void nic_told(struct nic_run *r, uint32_t message)
{
    uint32_t rank = r->messages[message].to;
    nic_push(r, &r->ranks[rank].events, message);
    wake(r, rank);
}

void nic_passed(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t began)
{
    if (sim_queue_push(&r->ranks[rank].passed, began, 0, node) != 0) {
        r->memory_short = true;
    }
    wake(r, rank);
}
