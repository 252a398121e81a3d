/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps of training a neural network. rank = tensor + tp * (data + dp * stage): ranks that exchange
 * the most data are neighbours. `ep` ranks that are neighbours in `data` form an expert group: each
 * has other experts, and all have the same remaining layers.
 *
 * A rank computes on cpu 0 and communicates on cpu 1, like a GPU with a stream for communication.
 * Its stage has layers / pp layers. An item of work is the forward or the backward computation of
 * one microbatch; `enum goal_pipeline` gives the order of the items:
 *
 *   GPipe   forward 0 .. M - 1, then backward M - 1 .. 0
 *   1F1B    as many forward as stages follow, then one forward, one backward in turn
 *
 *   item     what it needs from the neighbouring stage, its layers, and the result to
 *            the other neighbour, which the next item does not wait for
 *   layer    half the time (attention), allreduce of the activations over the tensor
 *            ranks; all-to-all to the experts; half the time, allreduce, all-to-all
 *            back. Backward the same from the end
 *
 * In the last backward item gradients become ready layer by layer, last layer first. They are cut
 * into buckets. A bucket is reduced over the data ranks when all its bytes are ready and the
 * reduction of the bucket before has ended.
 */
#include "gen.h"

enum { COMPUTATION = 0, COMMUNICATION = 1 }; /* cpus */

/* The ranks first, first + stride, ...; this rank is number `self` of them. */
struct group {
    uint32_t ranks, self, first, stride;
};

/* Gradients that are reduced over one group of ranks. */
struct gradients {
    struct group group;
    uint64_t layer; /* bytes of a layer's gradients */
    uint64_t total; /* bytes of the stage's gradients */
    uint64_t begun; /* bytes of the buckets whose reduction has begun */
};

struct step {
    struct goal_maker *m;
    const struct goal_training *t;
    const struct goal_pattern *alltoall;
    struct group tensor, expert;
    struct gradients dense, experts;
    uint32_t stage, neighbour; /* distance in ranks between the same places of two stages */
    uint32_t layers;           /* layers of this stage */
    uint32_t tag;              /* tag of the next collective: the same at all ranks of a stage */
    uint32_t last;             /* the operation that ends the computation so far */
    /* one more operation that the next operation waits for, or GOAL_NONE */
    uint32_t also;
    uint32_t synchronised; /* the operation that ends the reduction of the last bucket */
    uint64_t time;         /* how long the next computation takes */
};

/* ---- Computing and communicating ---- */

static void compute(struct step *s)
{
    uint32_t calc = goal_make_calc(s->m, s->time, s->last);
    gen_wait(s->m, calc, s->also);
    s->last = calc;
    s->also = GOAL_NONE;
    s->time = 0;
}

/* Makes the operations of a collective of `size` bytes in group `g`, which begins when `a` and `b`
 * have ended. Returns the operation that ends it. */
static uint32_t collective(struct step *s, const struct goal_pattern *p, const struct group *g,
                           uint64_t size, uint32_t a, uint32_t b)
{
    struct goal_config c = *s->m->config;
    c.ranks = g->ranks;
    c.size = size;
    memset(c.extent, 0, sizeof(c.extent));
    struct goal_maker part = {.config = &c,
                              .builder = s->m->builder,
                              .rank = g->self,
                              .draws = s->m->draws,
                              .shift = g->first,
                              .stride = g->stride,
                              .tag = s->tag++,
                              .cpu = COMMUNICATION};
    uint32_t first = (uint32_t)part.builder->count;
    p->make(&part);
    gen_gate(&part, first, a, b);
    s->m->draws = part.draws;
    return gen_join(&part, first);
}

/* Adds a collective whose result the next computation needs. */
static void in_line(struct step *s, const struct goal_pattern *p, const struct group *g,
                    uint64_t size)
{
    if (g->ranks == 1) {
        return;
    }
    if (s->time > 0) {
        compute(s);
    }
    s->last = collective(s, p, g, size, s->last, s->also);
    s->also = GOAL_NONE;
}

static void reduce_activations(struct step *s)
{
    in_line(s, s->t->allreduce, &s->tensor, s->t->activations);
}

/* Sends each token to its experts, which may be at any rank of the expert group. */
static void to_experts(struct step *s)
{
    unsigned __int128 tokens = (unsigned __int128)s->t->activations * s->t->experts_chosen;
    in_line(s, s->alltoall, &s->expert,
            (uint64_t)((tokens + s->expert.ranks - 1) / s->expert.ranks));
}

static void forward(struct step *s)
{
    s->time = s->t->forward / 2;
    reduce_activations(s);
    to_experts(s);
    s->time += s->t->forward - s->t->forward / 2;
    reduce_activations(s);
    to_experts(s);
    if (s->time > 0 || s->also != GOAL_NONE) {
        compute(s);
    }
}

static void backward(struct step *s)
{
    to_experts(s);
    s->time = s->t->backward - s->t->backward / 2;
    reduce_activations(s);
    to_experts(s);
    s->time += s->t->backward / 2;
    reduce_activations(s);
    if (s->time > 0 || s->also != GOAL_NONE) {
        compute(s);
    }
}

/* ---- Gradients ---- */

/* `layers` layers have been computed backward: adds the reductions of all buckets that are full
 * now. */
static void synchronise(struct step *s, struct gradients *g, uint32_t layers)
{
    uint64_t ready = g->layer * layers;
    while (g->group.ranks > 1 && g->begun < g->total && !s->m->builder->failed) {
        uint64_t left = g->total - g->begun, size = left < s->t->bucket ? left : s->t->bucket;
        if (g->begun + size > ready) {
            return;
        }
        s->synchronised = collective(s, s->t->allreduce, &g->group, size, s->last, s->synchronised);
        g->begun += size;
    }
}

static void backward_and_synchronise(struct step *s)
{
    for (uint32_t layer = 1; layer <= s->layers && !s->m->builder->failed; layer++) {
        backward(s);
        if (!s->t->no_overlap || layer == s->layers) {
            synchronise(s, &s->dense, layer);
            synchronise(s, &s->experts, layer);
        }
    }
}

/* ---- The pipeline ---- */

struct item {
    bool backward;
    uint32_t microbatch;
};

/* Returns the i-th of the 2 M items of a stage. */
static struct item item(const struct step *s, uint64_t i)
{
    uint64_t m = s->t->microbatches, first = s->t->pipeline - 1 - s->stage;
    first = first < m ? first : m;
    if (s->t->order == GOAL_GPIPE) {
        return (struct item){i >= m, (uint32_t)(i < m ? i : 2 * m - 1 - i)};
    }
    if (i < first) {
        return (struct item){false, (uint32_t)i};
    }
    uint64_t k = i - first; /* forward and backward in turn, then only backward */
    if (k < 2 * (m - first)) {
        return (struct item){k % 2 == 1, (uint32_t)(k / 2 + (k % 2 == 1 ? 0 : first))};
    }
    return (struct item){true, (uint32_t)(i - m)};
}

/* Returns the tag of a message between stages, which differs from all tags of collectives. */
static uint32_t stage_tag(const struct step *s, uint32_t iteration, struct item w)
{
    return UINT32_C(1) << 31 |
           ((iteration * s->t->microbatches + w.microbatch) << 1 | (uint32_t)w.backward);
}

/* Finds the same place in the next stage (upwards) or in the stage before; false if there is
 * none. */
static bool has_next(const struct step *s, bool upwards, uint32_t *rank)
{
    *rank = upwards ? s->m->rank + s->neighbour : s->m->rank - s->neighbour;
    return upwards ? s->stage + 1 < s->t->pipeline : s->stage > 0;
}

static void work(struct step *s, uint32_t iteration, struct item w, bool last)
{
    struct goal_maker *m = s->m;
    uint32_t peer, tag = stage_tag(s, iteration, w);
    m->cpu = COMMUNICATION;
    s->also = has_next(s, w.backward, &peer)
                  ? goal_make_recv(m, peer, s->t->activations, tag, GOAL_NONE)
                  : GOAL_NONE;
    m->cpu = COMPUTATION;
    if (last) {
        backward_and_synchronise(s);
    } else {
        for (uint32_t layer = 0; layer < s->layers && !m->builder->failed; layer++) {
            (w.backward ? backward : forward)(s);
        }
    }
    m->cpu = COMMUNICATION;
    if (has_next(s, !w.backward, &peer)) {
        goal_make_send(m, peer, s->t->activations, tag, s->last);
    }
    m->cpu = COMPUTATION;
}

void gen_training(struct goal_maker *m)
{
    const struct goal_training *t = &m->config->training;
    uint32_t tensor = m->rank % t->tensor, data = m->rank / t->tensor % t->data;
    uint32_t stage = m->rank / t->tensor / t->data, expert = data % t->expert;
    /* rank with data index 0 of this rank's data group */
    uint32_t begin = m->rank - data * t->tensor;
    struct step s = {.m = m, .t = t, .stage = stage, .last = GOAL_NONE, .also = GOAL_NONE};
    s.alltoall = goal_pattern_find("linear_alltoall");
    s.layers = t->layers / t->pipeline;
    s.neighbour = t->tensor * t->data;
    s.tensor = (struct group){t->tensor, tensor, m->rank - tensor, 1};
    s.expert = (struct group){t->expert, expert, m->rank - expert * t->tensor, t->tensor};
    s.dense = (struct gradients){.group = {t->data, data, begin, t->tensor},
                                 .layer = t->gradients,
                                 .total = t->gradients * s.layers};
    s.experts = (struct gradients){.group = {t->data / t->expert, data / t->expert,
                                             begin + expert * t->tensor, t->tensor * t->expert},
                                   .layer = t->expert_gradients,
                                   .total = t->expert_gradients * s.layers};
    uint64_t items = 2 * (uint64_t)t->microbatches;
    for (uint32_t i = 0; i < m->config->iterations && !m->builder->failed; i++) {
        uint32_t first = (uint32_t)m->builder->count;
        s.dense.begun = s.experts.begun = 0;
        s.synchronised = GOAL_NONE;
        for (uint64_t k = 0; k < items && !m->builder->failed; k++) {
            work(&s, i, item(&s, k), k == items - 1);
        }
        s.last = gen_join(m, first);
        if (t->update > 0) {
            s.last = goal_make_calc(m, t->update, s.last);
        }
    }
}
