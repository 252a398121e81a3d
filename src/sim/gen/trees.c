/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast, reduction, gather and scatter along trees.
 *
 *   k-nomial   the subtree of place v is v .. v + r^k - 1, where r^k is the weight of
 *              v's lowest digit that is not 0; children v + j * r^i, i < k. Radix 2 is
 *              the binomial tree
 *   k-ary      children r v + 1 .. r v + r; radix 2: binary, ranks - 1: linear
 *   chains     `radix` chains of neighbours, all from the root
 *
 * A place is a rank's distance from the root. A rank with several children sends to, or receives
 * from, the child with the largest subtree first (k-nomial), else in the order of the children.
 */
#include "gen.h"

/* ---- Patterns of LogGOPSim's generator ---- */

/* In each round every rank that has the data sends it to one that has not. */
void gen_binomialtreebcast(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint32_t self = gen_swapped(m->rank, c->root), recv = GOAL_NONE;
    for (uint64_t half = 1; half < c->ranks; half *= 2) {
        if (self < half && self + half < c->ranks) {
            uint32_t to = gen_swapped((uint32_t)(self + half), c->root);
            goal_make_send(m, to, c->size, 0, recv);
        } else if (self >= half && self < 2 * half) {
            recv = goal_make_recv(m, gen_swapped((uint32_t)(self - half), c->root), c->size, 0,
                                  GOAL_NONE);
        }
    }
}

/* A reduction along the same tree: a rank sends to its parent when it has received from all its
 * children. */
void gen_binomialtreereduce(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint32_t self = gen_swapped(m->rank, c->root);
    struct goal_sent sent = {.first = GOAL_NONE};
    for (uint64_t half = 1; half < c->ranks; half *= 2) {
        if (self < half && self + half < c->ranks) {
            uint32_t from = gen_swapped((uint32_t)(self + half), c->root);
            uint32_t recv = goal_make_recv(m, from, c->size, 0, GOAL_NONE);
            uint32_t reduced = gen_reduce(m, c->size, recv);
            if (sent.first != GOAL_NONE) {
                goal_requires(m->builder, sent.first, reduced);
            }
        } else if (self >= half && self < 2 * half) {
            sent = goal_make_send(m, gen_swapped((uint32_t)(self - half), c->root), c->size, 0,
                                  GOAL_NONE);
        }
    }
}

/* ---- Trees ---- */

struct tree {
    enum { KNOMIAL, KARY, CHAINS } kind;
    uint64_t ranks;
    uint64_t radix;
};

static struct tree tree(const struct goal_maker *m, int kind, uint64_t radix)
{
    struct tree t = {.kind = kind, .ranks = m->config->ranks, .radix = radix};
    if (kind == CHAINS && t.radix >= t.ranks) {
        t.radix = t.ranks > 1 ? t.ranks - 1 : 1;
    }
    return t;
}

/* k-nomial: returns how many places the subtree of v would have if the number of ranks were
 * unbounded. */
static uint64_t weight(const struct tree *t, uint64_t v)
{
    uint64_t w = 1;
    while (w < t->ranks && v / w % t->radix == 0) {
        w *= t->radix;
    }
    return w;
}

/* Returns the place at which chain number c begins; for c = `radix` the place behind the last
 * chain. */
static uint64_t chain_begin(const struct tree *t, uint64_t c)
{
    return 1 + gen_chunks(t->ranks - 1, t->radix, 0, c);
}

static uint64_t chain_of(const struct tree *t, uint64_t v)
{
    uint64_t length = (t->ranks - 1) / t->radix, longer = (t->ranks - 1) % t->radix;
    uint64_t in_longer = longer * (length + 1);
    return v - 1 < in_longer ? (v - 1) / (length + 1) : longer + (v - 1 - in_longer) / length;
}

static uint64_t parent(const struct tree *t, uint64_t v)
{
    switch (t->kind) {
    case KNOMIAL: {
        uint64_t w = weight(t, v);
        return v - v / w % t->radix * w;
    }
    case KARY:
        return (v - 1) / t->radix;
    default:
        return v == chain_begin(t, chain_of(t, v)) ? 0 : v - 1;
    }
}

/* Returns how many places the subtree of v has. */
static uint64_t subtree(const struct tree *t, uint64_t v)
{
    uint64_t n = t->ranks;
    if (t->kind == KNOMIAL) {
        uint64_t w = weight(t, v);
        return w < n - v ? w : n - v;
    }
    uint64_t count = 0;
    for (uint64_t low = v, high = v; low < n; low = t->radix * low + 1) {
        high = high < n - 1 ? high : n - 1;
        count += high - low + 1;
        high = t->radix * (high + 1);
    }
    return count;
}

/* Visits the children of a place, one after the other. */
struct walk {
    const struct tree *tree;
    uint64_t place;
    uint64_t weight; /* k-nomial: weight of the digit that the next child adds */
    uint64_t next;   /* k-nomial: value of that digit; else the number of the next child */
};

static struct walk children(const struct tree *t, uint64_t v)
{
    struct walk w = {.tree = t, .place = v, .next = 1};
    if (t->kind == KNOMIAL) {
        w.weight = weight(t, v) / t->radix;
    }
    return w;
}

static bool next_child(struct walk *w, uint64_t *child)
{
    const struct tree *t = w->tree;
    uint64_t v = w->place;
    switch (t->kind) {
    case KNOMIAL:
        while (w->weight > 0) {
            *child = v + w->next * w->weight;
            if (w->next++ < t->radix && *child < t->ranks) {
                return true;
            }
            w->weight /= t->radix;
            w->next = 1;
        }
        return false;
    case KARY:
        *child = t->radix * v + w->next;
        return w->next++ <= t->radix && *child < t->ranks;
    default:
        if (v == 0) {
            *child = w->next <= t->radix ? chain_begin(t, w->next - 1) : t->ranks;
        } else {
            *child = w->next == 1 && v + 1 < chain_begin(t, chain_of(t, v) + 1) ? v + 1 : t->ranks;
        }
        w->next++;
        return *child < t->ranks;
    }
}

/* ---- Collectives along a tree ---- */

static void bcast(struct goal_maker *m, struct tree t)
{
    uint64_t v = gen_place(m), size, child;
    struct gen_pieces p = {.left = m->config->size, .segment = m->config->segment};
    while (gen_next_piece(&p, &size) && !m->builder->failed) {
        uint32_t recv = GOAL_NONE;
        if (v > 0) {
            recv = goal_make_recv(m, gen_rank_at(m, parent(&t, v)), size, 0, GOAL_NONE);
        }
        for (struct walk c = children(&t, v); next_child(&c, &child);) {
            goal_make_send(m, gen_rank_at(m, child), size, 0, recv);
        }
    }
}

static void reduce(struct goal_maker *m, struct tree t)
{
    uint64_t v = gen_place(m), size, child;
    struct gen_pieces p = {.left = m->config->size, .segment = m->config->segment};
    while (gen_next_piece(&p, &size) && !m->builder->failed) {
        uint32_t first = (uint32_t)m->builder->count;
        for (struct walk c = children(&t, v); next_child(&c, &child);) {
            gen_reduce(m, size, goal_make_recv(m, gen_rank_at(m, child), size, 0, GOAL_NONE));
        }
        if (v > 0) {
            uint32_t to = gen_rank_at(m, parent(&t, v));
            gen_wait_since(m, goal_make_send(m, to, size, 0, GOAL_NONE).first, first);
        }
    }
}

static void gather(struct goal_maker *m, struct tree t)
{
    uint64_t v = gen_place(m), size = m->config->size, child;
    uint32_t first = (uint32_t)m->builder->count;
    for (struct walk c = children(&t, v); next_child(&c, &child);) {
        goal_make_recv(m, gen_rank_at(m, child), subtree(&t, child) * size, 0, GOAL_NONE);
    }
    if (v > 0) {
        uint32_t to = gen_rank_at(m, parent(&t, v));
        struct goal_sent up = goal_make_send(m, to, subtree(&t, v) * size, 0, GOAL_NONE);
        gen_wait_since(m, up.first, first);
    }
}

static void scatter(struct goal_maker *m, struct tree t)
{
    uint64_t v = gen_place(m), size = m->config->size, child;
    uint32_t recv = GOAL_NONE;
    if (v > 0) {
        uint32_t from = gen_rank_at(m, parent(&t, v));
        recv = goal_make_recv(m, from, subtree(&t, v) * size, 0, GOAL_NONE);
    }
    for (struct walk c = children(&t, v); next_child(&c, &child);) {
        goal_make_send(m, gen_rank_at(m, child), subtree(&t, child) * size, 0, recv);
    }
}

/* ---- The patterns ---- */

static struct tree knomial(const struct goal_maker *m)
{
    return tree(m, KNOMIAL, m->config->radix);
}

static struct tree linear(const struct goal_maker *m)
{
    return tree(m, KARY, m->config->ranks > 1 ? m->config->ranks - 1 : 1);
}

/* ALONG() defines the pattern that runs the collective `what` along the tree `of`. */
#define ALONG(what, tree_name, of)                                                                 \
    void gen_##what##_##tree_name(struct goal_maker *m)                                            \
    {                                                                                              \
        what(m, of);                                                                               \
    }

ALONG(bcast, binary, tree(m, KARY, 2))
ALONG(bcast, knomial, knomial(m))
ALONG(bcast, linear, linear(m))
ALONG(bcast, chains, tree(m, CHAINS, m->config->radix))
ALONG(reduce, binary, tree(m, KARY, 2))
ALONG(reduce, knomial, knomial(m))
ALONG(reduce, linear, linear(m))
ALONG(reduce, chains, tree(m, CHAINS, m->config->radix))
ALONG(gather, binomial, tree(m, KNOMIAL, 2))
ALONG(gather, binary, tree(m, KARY, 2))
ALONG(gather, knomial, knomial(m))
ALONG(gather, linear, linear(m))
ALONG(scatter, binomial, tree(m, KNOMIAL, 2))
ALONG(scatter, binary, tree(m, KARY, 2))
ALONG(scatter, knomial, knomial(m))
ALONG(scatter, linear, linear(m))
