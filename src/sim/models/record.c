/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of runs; see record.h. */
#include "record.h"

#include "base/array.h"
#include "sim/util/reserve.h"

#include <stdlib.h>

static size_t holders(const struct goal *g)
{
    return (size_t)g->ranks * (g->cpus + 2 * g->nics);
}

int record_open(struct sim_record *r, const struct goal *goal,
                const struct sim_parameters *parameters, const struct sim_noise *noise,
                bool calc_in_ps)
{
    *r = (struct sim_record){
        .goal = goal, .parameters = parameters, .noise = noise, .calc_in_ps = calc_in_ps};
    r->first = calloc(goal->ranks + (size_t)1, sizeof(*r->first));
    r->steps = sim_reserve(goal->nodes * RECORD_SLOTS * sizeof(*r->steps));
    r->partner = sim_reserve(goal->nodes * sizeof(*r->partner));
    r->holder = sim_reserve(holders(goal) * sizeof(*r->holder));
    if (r->first == NULL || r->steps == NULL || r->partner == NULL || r->holder == NULL) {
        return -1;
    }
    for (uint32_t rank = 0; rank < goal->ranks; rank++) {
        r->first[rank + 1] = r->first[rank] + goal_rank(goal, rank).node_count;
    }
    return 0;
}

int record_add_network(struct sim_record *r, uint64_t most)
{
    r->ways = sim_reserve(2 * r->goal->nodes * sizeof(*r->ways));
    r->taken = most > 0 ? sim_reserve(most * sizeof(*r->taken)) : NULL;
    r->taken_most = most;
    return r->ways != NULL && (most == 0 || r->taken != NULL) ? 0 : -1;
}

void record_close(struct sim_record *r)
{
    sim_unreserve(r->ways, 2 * r->goal->nodes * sizeof(*r->ways));
    sim_unreserve(r->taken, r->taken_most * sizeof(*r->taken));
    free(r->first);
    sim_unreserve(r->steps, r->goal->nodes * RECORD_SLOTS * sizeof(*r->steps));
    sim_unreserve(r->partner, r->goal->nodes * sizeof(*r->partner));
    sim_unreserve(r->holder, holders(r->goal) * sizeof(*r->holder));
}

void record_find(const struct sim_record *r, uint64_t operation, uint32_t *rank, uint32_t *op)
{
    *rank = (uint32_t)ARRAY_FIRST(i, r->goal->ranks, r->first[i] > operation) - 1;
    *op = (uint32_t)(operation - r->first[*rank]);
}

const struct goal_node *record_node(const struct sim_record *r, uint64_t operation)
{
    uint32_t rank, op;
    record_find(r, operation, &rank, &op);
    const struct goal_node *nodes = goal_rank(r->goal, rank).nodes;
    return nodes + op;
}

bool record_charges(const struct sim_record *r, uint64_t operation, struct charges *c)
{
    const struct goal_node *n = record_node(r, operation);
    if (n->type == GOAL_RECV) {
        n = record_node(r, r->partner[operation]);
    }
    charges_compute(c, r->parameters, n->size > 0 ? n->size : 1);
    return c->size > r->parameters->value[SIM_S];
}

uint64_t record_work(const struct sim_record *r, uint64_t operation, enum record_slot slot)
{
    const struct goal_node *n = record_node(r, operation);
    struct charges c;
    if (n->type == GOAL_CALC) {
        return n->size * (r->calc_in_ps ? 1 : 1000);
    }
    bool rendezvous = record_charges(r, operation, &c);
    bool reply = n->type == GOAL_RECV && slot == RECORD_ANSWER;
    bool request = n->type == GOAL_SEND && slot == RECORD_BEGIN && rendezvous;
    return reply || request ? r->parameters->value[SIM_o] / SIM_AS_PER_PS : c.cpu;
}

uint64_t record_work_until(const struct sim_record *r, uint64_t operation, uint64_t begin,
                           uint64_t work)
{
    uint32_t rank, op;
    if (r->noise == NULL || work == 0) {
        return begin + work;
    }
    record_find(r, operation, &rank, &op);
    return sim_noise_end(r->noise, rank, begin, work);
}

uint64_t record_handed(const struct sim_record *r, uint64_t operation, enum record_slot slot)
{
    return record_work_until(r, operation, r->steps[operation * RECORD_SLOTS + slot].time,
                             r->parameters->value[SIM_o] / SIM_AS_PER_PS);
}

uint64_t record_data_left(const struct sim_record *r, uint64_t operation)
{
    struct charges c;
    if (r->ways != NULL) {
        return r->ways[record_way(operation, RECORD_ANSWER)].left;
    }
    record_charges(r, operation, &c);
    return record_handed(r, operation, RECORD_ANSWER) + (c.G > c.O ? c.G : c.O);
}

uint64_t record_free(const struct sim_record *r, uint64_t operation, enum record_slot slot)
{
    return record_work_until(r, operation, r->steps[operation * RECORD_SLOTS + slot].time,
                             record_work(r, operation, slot));
}

uint64_t record_end(const struct sim_record *r, uint64_t operation)
{
    const struct goal_node *n = record_node(r, operation);
    struct charges c;
    if (n->type == GOAL_RECV) {
        return record_free(r, operation, RECORD_TAKE);
    }
    if (n->type == GOAL_CALC || !record_charges(r, operation, &c)) {
        return record_free(r, operation, RECORD_BEGIN);
    }
    uint64_t free = record_free(r, operation, RECORD_ANSWER);
    uint64_t left = record_data_left(r, operation);
    return left > free ? left : free;
}
