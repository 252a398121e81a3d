/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of the LogGOPS model: what happens when an operation's dependencies are met, when a
 * recv is posted, and when a message arrives and meets its recv. docs/loggops-model.md has the
 * rules, in the same words. How operations take the CPU and the NIC of a rank, in which order, is
 * in loggops_claims.c.
 */
#include "loggops_base.h"
#include "loggops_net.h"

static void become_ready(struct worker *w, uint32_t rank, uint32_t op, uint8_t type, uint64_t time)
{
    static const uint8_t kinds[] = {
        [GOAL_SEND] = EVENT_SEND, [GOAL_RECV] = EVENT_POST, [GOAL_CALC] = EVENT_CALC};
    struct event e = {.time = time, .source = rank, .op = op, .rank = rank, .kind = kinds[type]};
    emit(w, &e);
}

void loggops_resolve(struct worker *w, struct rank *r, uint32_t rank, uint32_t first,
                     uint32_t count, uint64_t time)
{
    const goal_u32 *successors = (const goal_u32 *)(r->nodes + r->node_count) + first;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t op = successors[i];
        const struct goal_node *n = &r->nodes[op];
        uint64_t at = time;
        if (recording(w) && (n->depends == 1 || time >= w->s->ready_at[loggops_place(w->s, n)])) {
            loggops_record_ready(w, rank, op);
        }
        if (n->depends > 1) {
            size_t place = loggops_place(w->s, n);
            at = w->s->ready_at[place] = later(w->s->ready_at[place], time);
            if (++w->s->met[place] < n->depends) {
                continue;
            }
        }
        become_ready(w, rank, op, n->type, at);
    }
}

static inline uint64_t bytes_in(struct worker *w, const struct event *arrival)
{
    return arrival->size != EVENT_LARGE
               ? arrival->size
               : bytes_of(&loggops_rank(w->s, arrival->source)->nodes[arrival->op]);
}

/* Makes the TAKE event of a recv whose message has arrived and whose nic now takes the bytes in;
 * `e` is the event that happens now. With a network a message counts as arrived when its last byte
 * has come; its first byte came long before. */
static void bring_in(struct worker *w, struct rank *r, const struct event *e, uint32_t recv,
                     const struct event *message, uint64_t bytes)
{
    const struct charges *c = charges_of(w, bytes);
    const struct goal_node *n = &r->nodes[recv];
    uint64_t a = networked(w) ? loggops_net_came(w, message) : message->time;
    uint64_t *gr = next_gr(w, r, n->nic);
    uint64_t begin = later(a, *gr);
    struct event take = {.source = e->rank,
                         .op = recv,
                         .charge = c->cpu,
                         .rank = e->rank,
                         .number = n->cpu | (n->done_count > 0 ? TAKE_SUCCESSORS : 0),
                         .kind = EVENT_TAKE};
    *gr = add(w, &take, begin, c->nic);
    uint64_t handed = networked(w) ? message->time : add(w, &take, a, c->O);
    uint64_t last = later(add(w, &take, begin, c->G), handed);
    if (recording(w)) {
        loggops_record_in(w, e, recv, a, begin, begin + c->G, handed);
    }
    take.time = later(e->time, last);
    emit(w, &take);
}

/* Handles a match of a recv and a message; `e`, the event that happens now, is the arrival of the
 * message or the post of the recv. */
static void match(struct worker *w, struct rank *r, const struct event *e, uint32_t recv,
                  const struct event *message)
{
    uint64_t bytes = bytes_in(w, message);
    if (recording(w)) {
        loggops_record_match(w, e, recv, message);
    }
    if (bytes <= w->s->S) {
        bring_in(w, r, e, recv, message, bytes);
        return;
    }
    struct event reply = {.time = e->time,
                          .source = e->rank,
                          .op = recv,
                          .tag = message->op,
                          .size = message->source,
                          .rank = e->rank,
                          .kind = EVENT_REPLY};
    emit(w, &reply);
}

/* ---- Recvs that are posted at the start (struct roots) ---- */

enum { ROOTS_TRIED = 8 };

static inline const goal_u32 *roots_of(const struct rank *r)
{
    return (const goal_u32 *)r->nodes - r->roots.count;
}

/* Marks root number `next + i` as matched. */
static inline void drop_root(struct roots *o, uint32_t i)
{
    o->taken |= UINT32_C(1) << i;
    while (o->taken & 1) {
        o->taken >>= 1;
        o->next++;
    }
}

/* Takes the first root recv that fits a message, and returns its index, or MATCH_NONE. */
static uint32_t take_root(struct rank *r, uint32_t source, uint32_t tag)
{
    const goal_u32 *roots = roots_of(r);
    struct roots *o = &r->roots;
    uint32_t tried = 0;
    for (uint32_t i = 0; i < 32 && o->next + i < o->count && tried < ROOTS_TRIED; i++) {
        uint32_t op = roots[o->next + i];
        const struct goal_node *n = &r->nodes[op];
        if ((o->taken >> i & 1) != 0) {
            continue;
        }
        if (n->type != GOAL_RECV) {
            o->taken |= UINT32_C(1) << i; /* no recv: it became ready at the start */
            continue;
        }
        if ((n->peer == source || n->peer == GOAL_ANY) &&
            (n->tag == tag || n->tag == GOAL_ANY || tag == GOAL_ANY)) {
            drop_root(o, i);
            return op;
        }
        tried++;
    }
    return MATCH_NONE;
}

/* Returns how many recvs among the roots have not been matched. */
static uint32_t count_roots(const struct rank *r)
{
    const goal_u32 *roots = roots_of(r);
    const struct roots *o = &r->roots;
    uint32_t count = 0;
    for (uint32_t i = o->next, taken = o->taken; i < o->count; i++, taken >>= 1) {
        count += (taken & 1) == 0 && r->nodes[roots[i]].type == GOAL_RECV;
    }
    return count;
}

static void post_roots(struct worker *w, struct rank *r, uint32_t rank)
{
    const goal_u32 *roots = roots_of(r);
    struct roots *o = &r->roots;
    if (match_expect(&lists_of(w, r, rank)->posted, &w->pool, count_roots(r)) != 0) {
        w->short_of_memory = true;
        return;
    }
    for (; o->next < o->count; o->next++, o->taken >>= 1) {
        uint32_t op = roots[o->next];
        const struct goal_node *n = &r->nodes[op];
        if ((o->taken & 1) == 0 && n->type == GOAL_RECV &&
            match_add(&lists_of(w, r, rank)->posted, &w->pool, n->peer, n->tag, op) != 0) {
            w->short_of_memory = true;
            return;
        }
    }
}

/* Takes the first posted recv that fits a message, and returns its index; MATCH_NONE if there is
 * none. */
static uint32_t take_posted(struct worker *w, struct rank *r, const struct event *e)
{
    if (r->roots.next < r->roots.count) {
        uint32_t op = take_root(r, e->source, e->tag);
        if (op != MATCH_NONE) {
            return op;
        }
        post_roots(w, r, e->rank);
    }
    if (!r->has_lists) {
        if (counting(w)) {
            count_search(&w->queues->posted, 0, false);
        }
        return MATCH_NONE;
    }
    struct match_entry recv;
    struct match_side *posted = &w->s->lists[e->rank].posted;
    uint32_t length = posted->count;
    int found = match_take(posted, &w->pool, e->source, e->tag, &recv);
    if (counting(w)) {
        count_search(&w->queues->posted, length, found == 1);
    }
    w->short_of_memory |= found < 0;
    return found == 1 ? recv.ref : MATCH_NONE;
}

static void arrive_message(struct worker *w, struct rank *r, const struct event *e)
{
    uint32_t recv = take_posted(w, r, e);
    if (recv != MATCH_NONE) {
        match(w, r, e, recv, e);
        return;
    }
    struct match_side *arrived = &lists_of(w, r, e->rank)->arrived;
    if (match_add(arrived, &w->pool, e->source, e->tag, park(w, e)) != 0) {
        w->short_of_memory = true;
    }
    if (counting(w)) {
        count_length(&w->queues->unexpected, arrived->count, e->rank);
    }
}

/* Handles the arrival of a message. Not inlined, like post(), so that other events need not save
 * the registers that it uses. */
static __attribute__((noinline)) void arrive(struct worker *w, struct rank *r,
                                             const struct event *e)
{
    struct event data = {.time = e->time,
                         .source = e->rank,
                         .op = e->tag,
                         .tag = e->op,
                         .rank = e->rank,
                         .kind = EVENT_DATA};
    switch (e->arrival) {
    case ARRIVE_MESSAGE:
        arrive_message(w, r, e);
        break;
    case ARRIVE_REPLY:
        if (recording(w)) {
            loggops_record_reply(w, e);
        }
        emit(w, &data);
        break;
    default:
        bring_in(w, r, e, e->tag, e, bytes_in(w, e));
    }
}

static __attribute__((noinline)) void post(struct worker *w, struct rank *r, const struct event *e)
{
    const struct goal_node *n = &r->nodes[e->op];
    struct lists *lists = lists_of(w, r, e->rank);
    if (recording(w)) {
        loggops_record_post(w, e);
    }
    start(w, r, e, n);
    struct match_entry message;
    uint32_t length = lists->arrived.count;
    int found = match_take(&lists->arrived, &w->pool, n->peer, n->tag, &message);
    if (counting(w)) {
        count_search(&w->queues->unexpected, length, found == 1);
    }
    if (found == 1) {
        match(w, r, e, e->op, &w->parked[message.ref - 1]);
        unpark(w, message.ref);
        return;
    }
    if (r->roots.next < r->roots.count) {
        post_roots(w, r, e->rank);
    }
    if (found < 0 || match_add(&lists->posted, &w->pool, n->peer, n->tag, e->op) != 0) {
        w->short_of_memory = true;
    }
    if (counting(w)) {
        count_length(&w->queues->posted, lists->posted.count, e->rank);
    }
}

void loggops_handle(struct worker *w, const struct event *e)
{
    struct rank *r = loggops_rank(w->s, e->rank);
    switch (e->kind) {
    case EVENT_ARRIVE:
        arrive(w, r, e);
        break;
    case EVENT_FREE:
        loggops_free(w, r, e);
        break;
    case EVENT_POST:
        post(w, r, e);
        break;
    default:
        loggops_claim(w, r, e);
    }
}

void loggops_begin(struct worker *w, uint32_t rank)
{
    struct rank *r = loggops_rank(w->s, rank);
    struct goal_rank g = goal_rank(w->s->goal, rank);
    r->nodes = g.nodes;
    r->node_count = g.node_count;
    /* Root recvs are posted before all other operations, without an event, unless the start of one
     * makes other operations ready. If queues are counted they are posted one by one. */
    bool in_order = !counting(w);
    for (uint32_t i = 0; i < g.root_count && in_order; i++) {
        const struct goal_node *n = &g.nodes[g.roots[i]];
        in_order = n->type != GOAL_RECV || n->start_count == 0;
    }
    for (uint32_t i = 0; i < g.root_count; i++) {
        const struct goal_node *n = &g.nodes[g.roots[i]];
        if (n->type != GOAL_RECV || !in_order) {
            become_ready(w, rank, g.roots[i], n->type, 0);
        }
    }
    r->roots = (struct roots){.next = in_order ? 0 : g.root_count, .count = g.root_count};
}

void loggops_end(struct worker *w, uint32_t rank)
{
    post_roots(w, loggops_rank(w->s, rank), rank);
}
