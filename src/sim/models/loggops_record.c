/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a record; see loggops_record.h. */
#include "loggops_record.h"

#include "loggops_base.h"

static void note(struct sim_record *r, uint64_t step, enum record_why why, uint64_t cause)
{
    r->steps[step].why = why;
    r->steps[step].cause = cause;
}

static enum record_slot slot_of(const struct event *e)
{
    switch (e->kind) {
    case EVENT_REPLY:
    case EVENT_DATA:
        return RECORD_ANSWER;
    case EVENT_TAKE:
        return RECORD_TAKE;
    default:
        return RECORD_BEGIN;
    }
}

static uint64_t step_of(const struct sim_record *r, const struct event *e)
{
    return record_number(r, e->rank, e->op, slot_of(e));
}

/* Returns the place of the record that has the holder of a clock (struct rank) of a rank. */
static uint64_t *holder(struct worker *w, uint32_t rank, uint32_t clock)
{
    const struct loggops *s = w->s;
    return &s->record->holder[(size_t)rank * (s->cpus + 2 * s->nics) + clock];
}

void loggops_record_start(struct worker *w, const struct rank *r, const struct event *e,
                          bool waited)
{
    struct sim_record *rec = w->s->record;
    const struct goal_node *n = &r->nodes[e->op];
    uint64_t step = step_of(rec, e);
    uint32_t cpu = n->cpu, gs = w->s->cpus + n->nic;
    bool nic = e->kind == EVENT_DATA || (e->kind == EVENT_SEND && bytes_of(n) <= w->s->S);
    if (waited && r->clocks[cpu] == e->time) {
        note(rec, step, RECORD_CPU, *holder(w, e->rank, cpu));
    } else if (waited) {
        note(rec, step, RECORD_NIC, *holder(w, e->rank, gs));
    }
    rec->steps[step].time = e->time;
    *holder(w, e->rank, cpu) = step;
    if (nic) {
        *holder(w, e->rank, gs) = step;
    }
}

void loggops_record_cause(struct worker *w, const struct event *e, enum record_why why)
{
    w->why = why;
    w->cause = step_of(w->s->record, e);
}

void loggops_record_ready(struct worker *w, uint32_t rank, uint32_t op)
{
    struct sim_record *rec = w->s->record;
    note(rec, record_number(rec, rank, op, RECORD_BEGIN), w->why, w->cause);
}

void loggops_record_post(struct worker *w, const struct event *e)
{
    w->s->record->steps[step_of(w->s->record, e)].time = e->time;
}

void loggops_record_match(struct worker *w, const struct event *e, uint32_t recv,
                          const struct event *message)
{
    struct sim_record *rec = w->s->record;
    uint64_t operation = record_operation(rec, e->rank, recv);
    uint64_t send = record_operation(rec, message->source, message->op);
    uint64_t first = operation * RECORD_SLOTS;
    rec->partner[operation] = send;
    if (e->kind == EVENT_POST) {
        note(rec, first + RECORD_ANSWER, RECORD_POSTED, first + RECORD_BEGIN);
    } else {
        note(rec, first + RECORD_ANSWER, RECORD_MESSAGE, send * RECORD_SLOTS + RECORD_BEGIN);
    }
}

void loggops_record_reply(struct worker *w, const struct event *e)
{
    struct sim_record *rec = w->s->record;
    note(rec, record_number(rec, e->rank, e->tag, RECORD_ANSWER), RECORD_MESSAGE,
         record_number(rec, e->source, e->op, RECORD_ANSWER));
}

void loggops_record_in(struct worker *w, const struct event *e, uint32_t recv, uint64_t arrived,
                       uint64_t begin, uint64_t by_nic, uint64_t by_cpu)
{
    struct sim_record *rec = w->s->record;
    uint64_t operation = record_operation(rec, e->rank, recv), first = operation * RECORD_SLOTS;
    const struct goal_node *n = &loggops_rank(w->s, e->rank)->nodes[recv];
    bool data = e->kind == EVENT_ARRIVE && e->arrival == ARRIVE_DATA;
    uint64_t sent = rec->partner[operation] * RECORD_SLOTS + (data ? RECORD_ANSWER : RECORD_BEGIN);
    uint64_t *gr = holder(w, e->rank, w->s->cpus + w->s->nics + n->nic);
    if (begin > arrived) {
        note(rec, first + RECORD_IN, RECORD_NIC_IN, *gr);
    } else {
        note(rec, first + RECORD_IN, RECORD_MESSAGE, sent);
    }
    rec->steps[first + RECORD_IN].time = begin;
    *gr = first + RECORD_IN;
    if (e->time > later(by_nic, by_cpu)) {
        note(rec, first + RECORD_TAKE, RECORD_POSTED, first + RECORD_BEGIN);
    } else if (by_nic >= by_cpu) {
        note(rec, first + RECORD_TAKE, RECORD_LAST_BYTE, first + RECORD_IN);
    } else {
        note(rec, first + RECORD_TAKE, RECORD_HANDED_OVER, sent);
    }
}

/* Returns the way of a message that will arrive: replies and data belong to the step
 * RECORD_ANSWER. */
static uint64_t way_of(const struct sim_record *r, const struct event *arrival)
{
    return record_way(record_operation(r, arrival->source, arrival->op),
                      arrival->arrival == ARRIVE_MESSAGE ? RECORD_BEGIN : RECORD_ANSWER);
}

void loggops_record_way(struct worker *w, const struct event *arrival, const struct net_arrival *a,
                        uint64_t now)
{
    struct sim_record *rec = w->s->record;
    struct record_way *way = &rec->ways[way_of(rec, arrival)];
    way->arrival = *a;
    way->last = now;
}

void loggops_record_left(struct worker *w, const struct event *arrival, uint64_t time,
                         uint64_t waited)
{
    struct sim_record *rec = w->s->record;
    struct record_way *way = &rec->ways[way_of(rec, arrival)];
    way->left = time;
    way->left_waited = waited;
}

void loggops_record_taken(struct worker *w, const struct event *arrival, uint32_t channel,
                          uint64_t now, uint64_t length)
{
    struct sim_record *rec = w->s->record;
    if (rec->taken_count == rec->taken_most) {
        rec->taken_missed++;
        return;
    }
    rec->taken[rec->taken_count++] = (struct record_taken){
        .time = now, .length = length, .way = way_of(rec, arrival), .channel = channel};
}
