/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims of the pinwheel model: operations start when their cpu and nic are free, and wait in
 * queues until then.
 *
 * FREE events exist only for queues in which a claim waits. Such a queue is armed: there is a FREE
 * event at the time when its cpu and its nic will be free, as far as known. When another claim
 * takes one of these for longer, the queue is armed again, for the later time.
 *
 * While ranks are simulated one by one, the next FREE of the rank that is simulated is not an event
 * but the time w->free_at, the earliest of those of its queues. If it lies behind the end of the
 * window, it becomes an event then.
 */
#include "loggops_base.h"
#include "loggops_net.h"

#include <stdlib.h>

/* Sends `bytes` bytes from the rank to the rank of the event `arrival`. */
static inline void leave(struct worker *w, const struct event *arrival, uint64_t bytes,
                         uint64_t free)
{
    if (networked(w)) {
        loggops_net_send(w, arrival, bytes, free);
    } else {
        send_out(w, arrival);
    }
}

static void start_send(struct worker *w, struct rank *r, const struct event *e,
                       const struct goal_node *n)
{
    uint64_t x = e->time, bytes = bytes_of(n);
    start(w, r, e, n);
    if (bytes <= w->s->S) {
        const struct charges *c = charges_of(w, bytes);
        uint64_t end = work_until(w, e, x, c->cpu);
        *next_o(r, n->cpu) = end;
        *next_gs(w, r, n->nic) = add(w, e, x, c->nic);
        complete(w, r, e, n, end);
    } else {
        *next_o(r, n->cpu) = work_until(w, e, x, w->s->o);
    }
    w->messages++;
    struct event message = {.time = add(w, e, work_until(w, e, x, w->s->o), w->s->L),
                            .source = e->rank,
                            .op = e->op,
                            .tag = n->tag,
                            .size = short_size(bytes),
                            .rank = n->peer,
                            .number = r->sent++ % EVENT_NUMBERS,
                            .kind = EVENT_ARRIVE,
                            .arrival = ARRIVE_MESSAGE};
    leave(w, &message, bytes <= w->s->S ? bytes : 1, 0);
}

static void start_reply(struct worker *w, struct rank *r, const struct event *e,
                        const struct goal_node *n)
{
    uint64_t end = *next_o(r, n->cpu) = work_until(w, e, e->time, w->s->o);
    struct event reply = {.time = add(w, e, end, w->s->L),
                          .source = e->rank,
                          .op = e->op,
                          .tag = e->tag,
                          .rank = e->size,
                          .number = r->sent++ % EVENT_NUMBERS,
                          .kind = EVENT_ARRIVE,
                          .arrival = ARRIVE_REPLY};
    leave(w, &reply, 1, 0);
}

static void start_data(struct worker *w, struct rank *r, const struct event *e,
                       const struct goal_node *n)
{
    uint64_t x = e->time, bytes = bytes_of(n);
    const struct charges *c = charges_of(w, bytes);
    uint64_t free = work_until(w, e, x, c->cpu);
    uint64_t first = work_until(w, e, x, w->s->o);
    uint64_t left = add(w, e, first, later(c->G, c->O));
    *next_o(r, n->cpu) = free;
    *next_gs(w, r, n->nic) = add(w, e, x, c->nic);
    struct event data = {.time = add(w, e, first, w->s->L),
                         .source = e->rank,
                         .op = e->op,
                         .tag = e->tag,
                         .size = short_size(bytes),
                         .rank = n->peer,
                         .number = r->sent++ % EVENT_NUMBERS,
                         .kind = EVENT_ARRIVE,
                         .arrival = ARRIVE_DATA};
    leave(w, &data, bytes, free);
    if (networked(w)) {
        return; /* the send completes when the network has taken its last byte */
    }
    struct lists *lists = lists_of(w, r, e->rank);
    lists->data_end = later(lists->data_end, left);
    complete(w, r, e, n, later(free, left));
}

static void start_calc(struct worker *w, struct rank *r, const struct event *e,
                       const struct goal_node *n)
{
    uint64_t unit = w->s->in->calc_in_ps ? 1 : 1000;
    uint64_t length = n->size <= LOGGOPS_LAST / unit ? n->size * unit : LOGGOPS_LAST + 1;
    uint64_t end = work_until(w, e, e->time, length);
    *next_o(r, n->cpu) = end;
    start(w, r, e, n);
    complete(w, r, e, n, end);
}

static void start_take(struct worker *w, struct rank *r, const struct event *e)
{
    uint64_t end = work_until(w, e, e->time, e->charge);
    *next_o(r, e->number & TAKE_CPU) = end;
    if (e->number & TAKE_SUCCESSORS) {
        complete(w, r, e, &r->nodes[e->op], end);
    } else {
        w->completed++;
    }
}

/* Starts a claim at e->time, when its cpu and nic are free; `waited`: it has been in a queue. */
static void start_claim(struct worker *w, struct rank *r, const struct event *e, bool waited)
{
    const struct goal_node *n = &r->nodes[e->op];
    if (recording(w)) {
        loggops_record_start(w, r, e, waited);
    }
    switch (e->kind) {
    case EVENT_SEND:
        start_send(w, r, e, n);
        break;
    case EVENT_REPLY:
        start_reply(w, r, e, n);
        break;
    case EVENT_DATA:
        start_data(w, r, e, n);
        break;
    case EVENT_TAKE:
        start_take(w, r, e);
        break;
    default:
        start_calc(w, r, e, n);
    }
}

static inline bool needs_nic(struct worker *w, const struct event *e, const struct goal_node *n)
{
    return e->kind == EVENT_DATA || (e->kind == EVENT_SEND && bytes_of(n) <= w->s->S);
}

/* Makes sure that there is a FREE at the time when the claims of a queue may start. */
static void arm(struct worker *w, struct rank *r, uint32_t rank, struct waits *waits,
                struct claims *q)
{
    uint64_t at = *next_o(r, q->cpu);
    if (q->nic != CLAIMS_NO_NIC) {
        at = later(at, *next_gs(w, r, q->nic));
    }
    if (w->apart) {
        w->free_at = at < w->free_at ? at : w->free_at;
        return;
    }
    if (q->armed != at && waits->armed != at) {
        struct event e = {.time = at, .source = rank, .rank = rank, .kind = EVENT_FREE};
        emit(w, &e);
    }
    q->armed = waits->armed = at;
}

void loggops_emit_free(struct worker *w, uint32_t rank)
{
    struct waits *waits = w->s->lists[rank].waits;
    if (w->free_at != waits->armed) {
        struct event e = {.time = w->free_at, .source = rank, .rank = rank, .kind = EVENT_FREE};
        emit(w, &e);
    }
    waits->armed = w->free_at;
}

/* Arms all queues of a rank again, after a claim has taken a cpu or a nic. */
static void arm_all(struct worker *w, struct rank *r, uint32_t rank)
{
    struct waits *waits = w->s->lists[rank].waits;
    w->free_at = NO_FREE;
    for (uint32_t i = 0; i < waits->queues; i++) {
        if (claims_first(&waits->queue[i], w->parked) != 0) {
            arm(w, r, rank, waits, &waits->queue[i]);
        }
    }
}

/* Finds the queue for a cpu and a nic in *all, or adds it; NULL if memory is short. */
static struct claims *find_queue(struct waits **all, uint32_t cpu, uint32_t nic)
{
    struct waits *waits = *all;
    uint32_t queues = waits != NULL ? waits->queues : 0;
    for (uint32_t i = 0; i < queues; i++) {
        if (waits->queue[i].cpu == cpu && waits->queue[i].nic == nic) {
            return &waits->queue[i];
        }
    }
    waits = realloc(waits, sizeof(*waits) + (queues + 1) * sizeof(waits->queue[0]));
    if (waits == NULL) {
        return NULL;
    }
    if (queues == 0) {
        *waits = (struct waits){0};
    }
    *all = waits;
    waits->queue[queues] = (struct claims){.cpu = (uint16_t)cpu, .nic = (uint16_t)nic};
    return &waits->queue[waits->queues++];
}

static void wait_for(struct worker *w, struct rank *r, const struct event *e, uint32_t cpu,
                     uint32_t nic)
{
    struct lists *lists = lists_of(w, r, e->rank);
    struct claims *q = find_queue(&lists->waits, cpu, nic);
    if (q == NULL) {
        w->short_of_memory = true;
        return;
    }
    uint32_t i = park(w, e);
    bool first = claims_first(q, w->parked) == 0;
    if (claims_add(q, w->parked, i) != 0) {
        w->short_of_memory = true;
        return;
    }
    r->waiting++;
    if (first) {
        arm(w, r, e->rank, lists->waits, q);
    }
}

void loggops_claim(struct worker *w, struct rank *r, const struct event *e)
{
    const struct goal_node *n = &r->nodes[e->op];
    uint32_t cpu = e->kind == EVENT_TAKE ? e->number & TAKE_CPU : n->cpu;
    uint32_t nic = needs_nic(w, e, n) ? n->nic : CLAIMS_NO_NIC;
    if (*next_o(r, cpu) > e->time || (nic != CLAIMS_NO_NIC && *next_gs(w, r, nic) > e->time)) {
        wait_for(w, r, e, cpu, nic);
        return;
    }
    start_claim(w, r, e, false);
    if (r->waiting > 0) {
        arm_all(w, r, e->rank);
    }
}

/* Returns the queue whose first claim has the least key among the first claims that can start now;
 * the claim is in *least. NULL if none can. */
static struct claims *next_claims(struct worker *w, struct rank *r, struct waits *waits,
                                  uint64_t now, uint32_t *least)
{
    struct claims *best = NULL;
    for (uint32_t i = 0; i < waits->queues; i++) {
        struct claims *q = &waits->queue[i];
        uint32_t first = claims_first(q, w->parked);
        if (first == 0 || *next_o(r, q->cpu) > now ||
            (q->nic != CLAIMS_NO_NIC && *next_gs(w, r, q->nic) > now)) {
            continue;
        }
        if (best == NULL || event_before(&w->parked[first - 1], &w->parked[*least - 1])) {
            best = q;
            *least = first;
        }
    }
    return best;
}

void loggops_free(struct worker *w, struct rank *r, const struct event *e)
{
    struct waits *waits = w->s->lists[e->rank].waits;
    bool one_cpu = w->s->cpus == 1;
    struct claims *q;
    uint32_t i;
    while (r->waiting > 0 && !(one_cpu && *next_o(r, 0) > e->time) &&
           (q = next_claims(w, r, waits, e->time, &i)) != NULL) {
        struct event first = w->parked[i - 1];
        claims_drop(q, w->parked);
        if (q->head != 0) {
            __builtin_prefetch(&w->parked[q->head - 1]);
        }
        unpark(w, i);
        r->waiting--;
        first.rank = e->rank;
        /* so far `time` was the key by which the claim was queued; now it is the time of the
         * start */
        first.time = e->time;
        start_claim(w, r, &first, true);
    }
    arm_all(w, r, e->rank);
}
