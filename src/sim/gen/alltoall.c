/* SPDX-License-Identifier: BSD-3-Clause */
/* All-to-all patterns: each rank sends each other rank one block, in a message of its own or
 * together with other blocks. */
#include "gen.h"
#include "order.h"

void gen_linear_alltoall(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint64_t n = c->ranks;
    struct goal_permutation shuffle = goal_permutation(n - 1, goal_random(c->seed, m->rank));
    for (uint64_t i = 0; i < n - 1 && !m->builder->failed; i++) {
        uint64_t distance = 1 + gen_in_order(c, &shuffle, i, n - 1);
        goal_make_send(m, (uint32_t)((m->rank + 1 + i) % n), c->size, 0, GOAL_NONE);
        goal_make_recv(m, (uint32_t)((m->rank + n - distance) % n), c->size, 0, GOAL_NONE);
    }
}

/* In round i each rank sends to the rank i places further on and receives from the rank i places
 * back. */
void gen_alltoall_pairwise(struct goal_maker *m)
{
    uint64_t n = m->config->ranks, size = m->config->size;
    struct gen_round r = GEN_ROUND_FIRST;
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        gen_exchange(m, &r, (uint32_t)((m->rank + i) % n), size, (uint32_t)((m->rank + n - i) % n),
                     size, GEN_KEEP);
    }
}

/* Returns the bytes of the blocks that a rank sends in one message: of a block for each distance
 * below n, in ranks, those whose distance has the digit `digit` at `weight`. */
static uint64_t blocks_with_digit(const struct goal_config *c, uint64_t weight, uint64_t digit)
{
    uint64_t period = weight * c->radix, begin = digit * weight;
    uint64_t rest = c->ranks % period, more = rest > begin ? rest - begin : 0;
    uint64_t count = c->ranks / period * weight + (more < weight ? more : weight);
    return count * c->size;
}

/* Bruck's algorithm. In the round of a digit each block moves by that digit of the distance that it
 * has to go, lowest digit first. */
void gen_alltoall_bruck(struct goal_maker *m)
{
    struct gen_round r = GEN_ROUND_FIRST;
    for (uint64_t weight = 1; weight < m->config->ranks; weight *= m->config->radix) {
        gen_fan(m, &r, weight, blocks_with_digit);
    }
}
