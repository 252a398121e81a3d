/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic patterns that are no collectives: all to one, one to all, permutations, and exchanges
 * with the neighbours in one to four dimensions. */
#include "gen.h"
#include "order.h"

void gen_incast(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    if (m->rank != c->root) {
        for (uint32_t i = 0; i < c->iterations && !m->builder->failed; i++) {
            goal_make_send(m, c->root, c->size, 0, GOAL_NONE);
        }
        return;
    }
    uint64_t count = (uint64_t)c->iterations * (c->ranks - 1);
    struct goal_permutation shuffle = goal_permutation(count, goal_random(c->seed, m->rank));
    uint32_t late = c->late > 0 ? goal_make_calc(m, c->late, GOAL_NONE) : GOAL_NONE;
    for (uint64_t i = 0; i < count && !m->builder->failed; i++) {
        uint32_t from = (uint32_t)(gen_in_order(c, &shuffle, i, count) % (c->ranks - 1));
        from += from >= c->root;
        goal_make_recv(m, c->any_source ? GOAL_ANY : from, c->size, 0, late);
    }
}

void gen_outcast(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    for (uint32_t i = 0; i < c->iterations && !m->builder->failed; i++) {
        if (m->rank != c->root) {
            goal_make_recv(m, c->root, c->size, 0, GOAL_NONE);
        }
        for (uint32_t to = 0; m->rank == c->root && to < c->ranks && !m->builder->failed; to++) {
            if (to != c->root) {
                goal_make_send(m, to, c->size, 0, GOAL_NONE);
            }
        }
    }
}

/* A rank that the permutation maps to itself sends nothing in that iteration. */
void gen_random_permutation(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint32_t recv = GOAL_NONE;
    for (uint32_t i = 0; i < c->iterations && !m->builder->failed; i++) {
        struct goal_permutation p = goal_permutation(c->ranks, goal_random(c->seed, i));
        uint32_t to = (uint32_t)goal_permute(&p, m->rank);
        if (to != m->rank) {
            goal_make_send(m, to, c->size, i, recv);
            recv =
                goal_make_recv(m, (uint32_t)goal_permute_back(&p, m->rank), c->size, i, GOAL_NONE);
        }
    }
}

/* ---- Exchanges with neighbours ---- */

/* Returns the neighbour one step up or down in dimension `d`; GOAL_NONE beyond an open border. */
static uint32_t neighbour(const struct goal_maker *m, int d, bool up)
{
    const struct goal_config *c = m->config;
    uint64_t stride = 1;
    for (int i = 0; i < d; i++) {
        stride *= c->extent[i];
    }
    uint64_t extent = c->extent[d], at = m->rank / stride % extent;
    if (extent == 1 || (c->open && at == (up ? extent - 1 : 0))) {
        return GOAL_NONE;
    }
    uint64_t next = (at + (up ? 1 : extent - 1)) % extent;
    return (uint32_t)(m->rank - at * stride + next * stride);
}

/* An iteration: the rank sends a message to each neighbour and receives one from each; then it has
 * a calc that waits for all of them, and for which the next iteration waits. The tag of a message
 * is its direction, so that two messages from the same neighbour are told apart. */
void gen_exchange_neighbours(struct goal_maker *m)
{
    uint32_t step = GOAL_NONE;
    for (uint32_t i = 0; i < m->config->iterations && !m->builder->failed; i++) {
        uint32_t waited[4 * GOAL_SPACE], count = 0;
        for (uint32_t tag = 0; tag < 2 * GOAL_SPACE; tag++) {
            uint32_t to = neighbour(m, (int)tag / 2, tag % 2 == 0);
            if (to != GOAL_NONE) {
                waited[count++] = goal_make_send(m, to, m->config->size, tag, step).send;
            }
            uint32_t from = neighbour(m, (int)tag / 2, tag % 2 != 0);
            if (from != GOAL_NONE) {
                waited[count++] = goal_make_recv(m, from, m->config->size, tag, step);
            }
        }
        step = goal_make_calc(m, m->config->calc, count == 0 ? step : GOAL_NONE);
        for (uint32_t k = 0; k < count; k++) {
            goal_requires(m->builder, step, waited[k]);
        }
    }
}
