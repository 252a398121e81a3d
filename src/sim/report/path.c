/* SPDX-License-Identifier: BSD-3-Clause */
/* Critical paths; see path.h. */
#include "path.h"

#include "base/array.h"

#include <stdlib.h>

static uint64_t ps(const struct sim_record *r, enum sim_parameter which)
{
    return r->parameters->value[which] / SIM_AS_PER_PS;
}

/* Divides the time that a message spent in the network: on the path, for its bytes, and, as the
 * rest, waiting in queues. */
static void split_way(struct path_parts *parts, const struct net_way *way, uint64_t length)
{
    parts->path += way->path;
    parts->serial += way->serial;
    parts->queue += length - way->path - way->serial;
}

/* Divides the time from a step to the moment at which it hands its message to the NIC: o, and the
 * time that noise added to it. Returns the sum. */
static uint64_t split_handing(struct path_parts *parts, const struct sim_record *r,
                              const struct path_step *from)
{
    uint64_t o = ps(r, SIM_o), all = record_handed(r, from->operation, from->slot) - from->time;
    parts->o += o;
    parts->noise += all - o;
    return all;
}

/* Divides the time `length` from a step to the arrival of its message, or, if `first`, of the
 * message's first byte. */
static void split_message(struct path_parts *parts, const struct sim_record *r,
                          const struct path_step *from, bool first, uint64_t length)
{
    uint64_t rest = length - split_handing(parts, r, from);
    if (r->ways == NULL) {
        parts->L += ps(r, SIM_L);
        parts->O += rest - ps(r, SIM_L);
        return;
    }
    const struct net_arrival *a = &r->ways[record_way(from->operation, from->slot)].arrival;
    split_way(parts, first ? &a->first_way : &a->last_way, rest);
}

/* Divides the time `length` in which a step held its cpu: o or calc, the time that noise added, and
 * O. */
static void split_work(struct path_parts *parts, const struct sim_record *r,
                       const struct path_step *from, uint64_t length)
{
    uint64_t work = record_work(r, from->operation, from->slot);
    parts->noise += length - work;
    if (record_node(r, from->operation)->type == GOAL_CALC) {
        parts->calc += work;
        return;
    }
    parts->o += ps(r, SIM_o);
    parts->O += work - ps(r, SIM_o);
}

/* Divides the time `length` from a step to the end of its operation. A send of data ends when both
 * the cpu and the nic (or the network) are done with the data. */
static void split_end(struct path_parts *parts, const struct sim_record *r,
                      const struct path_step *from, uint64_t length)
{
    uint64_t free = record_free(r, from->operation, from->slot);
    struct charges c;
    if (from->slot != RECORD_ANSWER || record_data_left(r, from->operation) <= free) {
        split_work(parts, r, from, length);
        return;
    }
    uint64_t rest = length - split_handing(parts, r, from);
    if (r->ways != NULL) {
        uint64_t waited = r->ways[record_way(from->operation, from->slot)].left_waited;
        parts->queue += waited;
        parts->serial += rest - waited;
        return;
    }
    record_charges(r, from->operation, &c);
    *(c.G > c.O ? &parts->G : &parts->O) += rest;
}

/* Divides the time `length` from step `from` to the step that it caused; `why` and `slot` belong to
 * the latter. */
static void split(struct path_parts *parts, const struct sim_record *r,
                  const struct path_step *from, enum record_why why, enum record_slot slot,
                  uint64_t length)
{
    switch (why) {
    case RECORD_AFTER_END:
        split_end(parts, r, from, length);
        break;
    case RECORD_CPU:
        split_work(parts, r, from, length);
        parts->wait += length;
        break;
    case RECORD_NIC:
    case RECORD_NIC_IN:
        parts->g += ps(r, SIM_g);
        parts->G += length - ps(r, SIM_g);
        parts->wait += length;
        break;
    case RECORD_MESSAGE:
    case RECORD_HANDED_OVER:
        split_message(parts, r, from, slot == RECORD_IN, length);
        break;
    case RECORD_LAST_BYTE:
        parts->G += length;
        break;
    case RECORD_AT_ONCE:
    case RECORD_AFTER_START:
    case RECORD_POSTED:
        break;
    }
}

static void add_parts(struct path_parts *sum, const struct path_parts *more)
{
    sum->o += more->o;
    sum->g += more->g;
    sum->G += more->G;
    sum->L += more->L;
    sum->O += more->O;
    sum->calc += more->calc;
    sum->noise += more->noise;
    sum->path += more->path;
    sum->serial += more->serial;
    sum->queue += more->queue;
    sum->wait += more->wait;
}

static struct path_step *append(struct path *p)
{
    if (!ARRAY_ROOM(p->steps, p->count, p->room, 16)) {
        return NULL;
    }
    p->steps[p->count] = (struct path_step){0};
    return &p->steps[p->count++];
}

/* Returns the last step of the first operation of the rank that ends at `finish`. */
static uint64_t last_step(const struct sim_record *r, uint32_t rank, uint64_t finish)
{
    uint64_t operation = r->first[rank];
    while (record_end(r, operation) != finish && operation + 1 < r->first[rank + 1]) {
        operation++;
    }
    struct charges c;
    switch (record_node(r, operation)->type) {
    case GOAL_RECV:
        return operation * RECORD_SLOTS + RECORD_TAKE;
    case GOAL_SEND:
        return operation * RECORD_SLOTS +
               (record_charges(r, operation, &c) ? RECORD_ANSWER : RECORD_BEGIN);
    default:
        return operation * RECORD_SLOTS + RECORD_BEGIN;
    }
}

static void reverse(struct path *p)
{
    for (size_t i = 0, k = p->count; i + 1 < k; i++) {
        struct path_step step = p->steps[--k];
        p->steps[k] = p->steps[i];
        p->steps[i] = step;
    }
}

int path_find(struct path *p, const struct sim_record *r, uint32_t last, uint64_t finish)
{
    *p = (struct path){.end = finish};
    if (goal_rank(r->goal, last).node_count == 0) {
        return 0; /* all ranks without operations finish at 0 */
    }
    uint64_t number = last_step(r, last, finish), until = finish;
    enum record_why why = RECORD_AFTER_END;
    /* slot of the step that was found last: the cause of it is looked for */
    enum record_slot slot = RECORD_BEGIN;
    for (;;) {
        struct path_step *step = append(p);
        if (step == NULL) {
            return -1;
        }
        const struct record_step *from = &r->steps[number];
        step->time = from->time;
        step->operation = number / RECORD_SLOTS;
        step->slot = (enum record_slot)(number % RECORD_SLOTS);
        step->why = (enum record_why)from->why;
        split(&step->parts, r, step, why, slot, until - from->time);
        add_parts(&p->sum, &step->parts);
        if (step->why == RECORD_AT_ONCE) {
            break;
        }
        why = step->why;
        slot = step->slot;
        until = from->time;
        number = from->cause;
    }
    reverse(p);
    return 0;
}

void path_free(struct path *p)
{
    free(p->steps);
}
