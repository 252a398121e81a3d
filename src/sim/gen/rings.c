/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings: ranks pass data on to their neighbour.
 *
 *   pipelinedring            a chain from the root to the last rank, in segments
 *   bcast_ring               a half of the data each way round
 *   bcast_scatter_allgather  each rank gets a chunk along a binomial tree, then all
 *                            chunks go round
 *   allgather, reduce-scatter, allreduce: a chunk for each rank goes round
 */
#include "gen.h"

/* The root sends the data in segments; each rank passes a segment on as soon as it has come, up to
 * the last rank. */
void gen_pipelinedring(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint32_t self = gen_swapped(m->rank, c->root);
    struct gen_pieces p = {.left = c->size, .segment = c->segment};
    for (uint64_t size; gen_next_piece(&p, &size) && !m->builder->failed;) {
        uint32_t recv = GOAL_NONE;
        if (self > 0) {
            recv = goal_make_recv(m, gen_swapped(self - 1, c->root), size, 0, GOAL_NONE);
        }
        if (self + 1 < c->ranks) {
            goal_make_send(m, gen_swapped(self + 1, c->root), size, 0, recv);
        }
    }
}

/* Passes a segment on from place v - 1 to place v + 1 or, if `backwards`, from v + 1 to v - 1. */
static void pass_on(struct goal_maker *m, uint64_t v, uint64_t size, bool backwards)
{
    uint64_t n = m->config->ranks, step = backwards ? n - 1 : 1;
    uint32_t recv = GOAL_NONE;
    if (v != 0) {
        uint32_t from = gen_rank_at(m, (v + n - step) % n);
        recv = goal_make_recv(m, from, size, backwards, GOAL_NONE);
    }
    if ((v + step) % n != 0) {
        goal_make_send(m, gen_rank_at(m, (v + step) % n), size, backwards, recv);
    }
}

/* With two ranks both halves go between the same ranks: the tags tell them apart. */
void gen_bcast_ring(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint64_t v = gen_place(m), size;
    struct gen_pieces up = {.left = c->size - c->size / 2, .segment = c->segment};
    struct gen_pieces down = {.left = c->size / 2, .segment = c->segment};
    for (bool more = c->ranks > 1; more && !m->builder->failed;) {
        more = false;
        if (gen_next_piece(&up, &size)) {
            pass_on(m, v, size, false);
            more = true;
        }
        if (gen_next_piece(&down, &size)) {
            pass_on(m, v, size, true);
            more = true;
        }
    }
}

/* A ring algorithm: in each of `steps` steps a rank passes on the chunk that it received in the
 * step before; in the first step that is chunk number `first`. It reduces the chunks that come in
 * the first `reduced` steps. If `whole`, each chunk has `size` bytes, else `size` bytes are dealt
 * to the chunks. */
struct ring {
    uint64_t first, steps, reduced;
    uint32_t next, previous, tag;
    bool whole;
    uint32_t after;
};

static uint64_t chunk_bytes(const struct goal_maker *m, const struct ring *r, uint64_t chunk)
{
    uint64_t n = m->config->ranks;
    return r->whole ? m->config->size : gen_chunks(m->config->size, n, chunk % n, chunk % n + 1);
}

static void go_round(struct goal_maker *m, struct ring r)
{
    uint64_t n = m->config->ranks;
    for (uint64_t step = 0; step < r.steps && !m->builder->failed; step++) {
        uint64_t chunk = r.first + 2 * n - step;
        goal_make_send(m, r.next, chunk_bytes(m, &r, chunk), r.tag, r.after);
        uint64_t in = chunk_bytes(m, &r, chunk - 1);
        r.after = goal_make_recv(m, r.previous, in, r.tag, GOAL_NONE);
        if (step < r.reduced) {
            r.after = gen_reduce(m, in, r.after);
        }
    }
}

static struct ring ring(const struct goal_maker *m)
{
    uint64_t n = m->config->ranks;
    return (struct ring){.first = m->rank,
                         .steps = n - 1,
                         .next = (uint32_t)((m->rank + 1) % n),
                         .previous = (uint32_t)((m->rank + n - 1) % n),
                         .after = GOAL_NONE};
}

void gen_allgather_ring(struct goal_maker *m)
{
    struct ring r = ring(m);
    r.whole = true;
    go_round(m, r);
}

/* Chunk v starts at place v + 1, goes round, and ends fully reduced at place v. */
void gen_reduce_scatter_ring(struct goal_maker *m)
{
    struct ring r = ring(m);
    r.first += m->config->ranks - 1;
    r.reduced = r.steps;
    go_round(m, r);
}

/* A reduce-scatter, then an allgather, on the same ring. */
void gen_allreduce_ring(struct goal_maker *m)
{
    struct ring r = ring(m);
    r.reduced = r.steps;
    r.steps *= 2;
    go_round(m, r);
}

/* Chunk v belongs to place v. In the scatter a rank sends a child the chunks of the child's
 * subtree, whose places are consecutive. */
void gen_bcast_scatter_allgather(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint64_t n = c->ranks, v = gen_place(m), mask = 1, end;
    uint32_t recv = GOAL_NONE;
    while (mask < n && (v & mask) == 0) {
        mask *= 2;
    }
    if (v > 0) {
        end = v + mask < n ? v + mask : n;
        recv = goal_make_recv(m, gen_rank_at(m, v - mask), gen_chunks(c->size, n, v, end), 0,
                              GOAL_NONE);
    }
    for (mask /= 2; mask > 0; mask /= 2) {
        if (v + mask < n) {
            end = v + 2 * mask < n ? v + 2 * mask : n;
            goal_make_send(m, gen_rank_at(m, v + mask), gen_chunks(c->size, n, v + mask, end), 0,
                           recv);
        }
    }
    struct ring r = ring(m);
    r.first = v;
    r.tag = 1;
    r.after = recv;
    go_round(m, r);
}
