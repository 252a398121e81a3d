/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that several generators of patterns use; see gen.h. */
#include "gen.h"

uint32_t gen_reduce(struct goal_maker *m, uint64_t size, uint32_t after)
{
    uint64_t rate = m->config->reduce_rate;
    if (rate == 0) {
        return after;
    }
    unsigned __int128 time = (unsigned __int128)size * rate + 500000;
    return goal_make_calc(m, (uint64_t)(time / 1000000), after);
}

void gen_wait_since(struct goal_maker *m, uint32_t node, uint32_t first)
{
    for (uint32_t i = first; i < node && !m->builder->failed; i++) {
        if (m->builder->nodes[i].done_count == 0) {
            goal_requires(m->builder, node, i);
        }
    }
}

uint32_t gen_join(struct goal_maker *m, uint32_t first)
{
    uint32_t last = GOAL_NONE, count = 0;
    for (uint32_t i = first; i < m->builder->count; i++) {
        if (m->builder->nodes[i].done_count == 0) {
            last = i;
            count++;
        }
    }
    if (count > 1) {
        last = goal_make_calc(m, 0, GOAL_NONE);
        gen_wait_since(m, last, first);
    }
    return last;
}

void gen_gate(struct goal_maker *m, uint32_t first, uint32_t a, uint32_t b)
{
    uint64_t end = a != GOAL_NONE || b != GOAL_NONE ? m->builder->count : first;
    for (uint32_t i = first; i < end && !m->builder->failed; i++) {
        if (m->builder->nodes[i].depends == 0) {
            gen_wait(m, i, a);
            gen_wait(m, i, b);
        }
    }
}

/* ---- Rounds ---- */

void gen_exchange(struct goal_maker *m, struct gen_round *r, uint32_t to, uint64_t out,
                  uint32_t from, uint64_t in, enum gen_use use)
{
    struct goal_sent sent = goal_make_send(m, to, out, 0, r->received);
    gen_wait(m, sent.first, r->sent);
    uint32_t received = goal_make_recv(m, from, in, 0, GOAL_NONE);
    if (use == GEN_REDUCE) {
        uint32_t reduced = gen_reduce(m, in, received);
        if (reduced != received) {
            /* the bytes must leave before the reduction changes them */
            goal_requires(m->builder, reduced, sent.send);
        }
        received = reduced;
    }
    *r = (struct gen_round){sent.send, received};
}

void gen_fan(struct goal_maker *m, struct gen_round *r, uint64_t weight,
             uint64_t (*bytes)(const struct goal_config *c, uint64_t weight, uint64_t digit))
{
    uint64_t n = m->config->ranks;
    uint32_t first = (uint32_t)m->builder->count;
    struct gen_round before = *r;
    uint64_t digit = 1;
    for (; digit < m->config->radix && digit * weight < n && !m->builder->failed; digit++) {
        uint64_t distance = digit * weight, size = bytes(m->config, weight, digit);
        *r = before;
        gen_exchange(m, r, (uint32_t)((m->rank + distance) % n), size,
                     (uint32_t)((m->rank + n - distance) % n), size, GEN_KEEP);
    }
    if (digit > 2) { /* the round had more than one pair of messages */
        *r = (struct gen_round){gen_join(m, first), GOAL_NONE};
    }
}

/* ---- Powers of two ---- */

struct gen_fold gen_fold(const struct goal_maker *m)
{
    struct gen_fold f = {.power = 1};
    while (2 * f.power <= m->config->ranks) {
        f.power *= 2;
    }
    f.extra = m->config->ranks - f.power;
    bool paired = m->rank < 2 * f.extra;
    f.hands_over = paired && m->rank % 2 == 0;
    f.self = paired ? m->rank / 2 : m->rank - f.extra;
    return f;
}

uint32_t gen_unfold(const struct gen_fold *f, uint64_t number)
{
    return (uint32_t)(number < f->extra ? 2 * number + 1 : number + f->extra);
}

bool gen_fold_in(struct goal_maker *m, const struct gen_fold *f, struct gen_round *r)
{
    if (f->hands_over) {
        goal_make_send(m, m->rank + 1, m->config->size, 0, GOAL_NONE);
        goal_make_recv(m, m->rank + 1, m->config->size, 0, GOAL_NONE);
        return false;
    }
    if (f->self < f->extra) {
        uint32_t recv = goal_make_recv(m, m->rank - 1, m->config->size, 0, GOAL_NONE);
        r->received = gen_reduce(m, m->config->size, recv);
    }
    return true;
}

void gen_fold_out(struct goal_maker *m, const struct gen_fold *f, const struct gen_round *r)
{
    if (f->self < f->extra) {
        struct goal_sent back = goal_make_send(m, m->rank - 1, m->config->size, 0, r->received);
        gen_wait(m, back.first, r->sent);
    }
}
