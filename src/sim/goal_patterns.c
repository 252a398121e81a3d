/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The patterns. Those that LogGOPSim's schedule generator has too carry its names
 * and make the same operations in the same order, so that results can be compared.
 */
#include "sim/goal_gen.h"
#include "sim/goal_random.h"

/* ---- Trees, whose ranks are counted from the root: the root and rank 0 change places ---- */

static uint32_t from_root(uint32_t rank, uint32_t root)
{
    return rank == 0 ? root : rank == root ? 0 : rank;
}

/* Round by round the ranks that have the data send it to as many that have not. */
static void make_bcast(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint32_t self = from_root(m->rank, w->root), recv = GOAL_NONE;
    for (uint64_t half = 1; half < w->ranks; half *= 2) {
        if (self < half && self + half < w->ranks) {
            uint32_t to = from_root((uint32_t)(self + half), w->root);
            goal_make_send(m, to, w->size, 0, recv);
        } else if (self >= half && self < 2 * half) {
            recv = goal_make_recv(m, from_root((uint32_t)(self - half), w->root), w->size, 0,
                                  GOAL_NONE);
        }
    }
}

/* The same tree upwards: a rank sends once it has received from all below it. */
static void make_reduce(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint32_t self = from_root(m->rank, w->root);
    struct goal_sent sent = {.first = GOAL_NONE};
    for (uint64_t half = 1; half < w->ranks; half *= 2) {
        if (self < half && self + half < w->ranks) {
            uint32_t from = from_root((uint32_t)(self + half), w->root);
            uint32_t recv = goal_make_recv(m, from, w->size, 0, GOAL_NONE);
            if (sent.first != GOAL_NONE) {
                goal_requires(m->builder, sent.first, recv);
            }
        } else if (self >= half && self < 2 * half) {
            sent = goal_make_send(m, from_root((uint32_t)(self - half), w->root), w->size, 0,
                                  GOAL_NONE);
        }
    }
}

/* ---- Rings and doublings ---- */

static void make_dissemination(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint32_t recv = GOAL_NONE;
    for (uint64_t distance = 1; distance < w->ranks; distance *= 2) {
        goal_make_send(m, (uint32_t)((m->rank + distance) % w->ranks), w->size, 0, recv);
        recv = goal_make_recv(m, (uint32_t)((m->rank + w->ranks - distance) % w->ranks), w->size, 0,
                              GOAL_NONE);
    }
}

/* Bytes of a chunk when `size` bytes are dealt to all ranks as evenly as can be. */
static uint64_t chunk_size(const struct goal_wish *w, uint64_t chunk)
{
    return w->size / w->ranks + (chunk < w->size % w->ranks);
}

/* Reduce-scatter, then allgather: in step s a rank passes on chunk rank - s. */
static void make_allreduce_ring(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint64_t n = w->ranks, recv = GOAL_NONE;
    for (uint64_t step = 0; step < 2 * (n - 1) && !m->builder->failed; step++) {
        uint64_t chunk = (m->rank + 2 * n - step) % n;
        goal_make_send(m, (uint32_t)((m->rank + 1) % n), chunk_size(w, chunk), 0, (uint32_t)recv);
        recv = goal_make_recv(m, (uint32_t)((m->rank + n - 1) % n),
                              chunk_size(w, (chunk + n - 1) % n), 0, GOAL_NONE);
    }
}

/* Of 2^k + e ranks the first 2e form pairs: the even one hands its data to the odd
 * one and gets the result back. */
static void make_allreduce_recdoub(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint64_t power = 1, rank = m->rank;
    while (2 * power <= w->ranks) {
        power *= 2;
    }
    uint64_t extra = w->ranks - power;
    uint32_t recv = GOAL_NONE;
    if (rank < 2 * extra && rank % 2 == 0) {
        goal_make_send(m, m->rank + 1, w->size, 0, GOAL_NONE);
        goal_make_recv(m, m->rank + 1, w->size, 0, GOAL_NONE);
        return;
    }
    if (rank < 2 * extra) {
        recv = goal_make_recv(m, m->rank - 1, w->size, 0, GOAL_NONE);
    }
    uint64_t self = rank < 2 * extra ? rank / 2 : rank - extra;
    for (uint64_t distance = 1; distance < power; distance *= 2) {
        uint64_t other = self ^ distance;
        uint32_t peer = (uint32_t)(other < extra ? 2 * other + 1 : other + extra);
        goal_make_send(m, peer, w->size, 0, recv);
        recv = goal_make_recv(m, peer, w->size, 0, GOAL_NONE);
    }
    if (rank < 2 * extra) {
        goal_make_send(m, m->rank - 1, w->size, 0, recv);
    }
}

/* Segments travel from the root to the last rank, each passed on as it comes. */
static void make_pipelinedring(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint32_t self = from_root(m->rank, w->root);
    for (uint64_t left = w->size, size; left > 0 && !m->builder->failed; left -= size) {
        size = left < w->segment ? left : w->segment;
        uint32_t recv = GOAL_NONE;
        if (self > 0) {
            recv = goal_make_recv(m, from_root(self - 1, w->root), size, 0, GOAL_NONE);
        }
        if (self + 1 < w->ranks) {
            goal_make_send(m, from_root(self + 1, w->root), size, 0, recv);
        }
    }
}

/* ---- Many to many ---- */

/* Which of `count` receives is posted as the i-th. */
static uint64_t in_order(const struct goal_maker *m, const struct goal_permutation *shuffle,
                         uint64_t i, uint64_t count)
{
    switch (m->wish->order) {
    case GOAL_REVERSE:
        return count - 1 - i;
    case GOAL_SHUFFLED:
        return goal_permute(shuffle, i);
    default:
        return i;
    }
}

static void make_linear_alltoall(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint64_t n = w->ranks;
    struct goal_permutation shuffle = goal_permutation(n - 1, goal_random(w->seed, m->rank));
    for (uint64_t i = 0; i < n - 1 && !m->builder->failed; i++) {
        uint64_t distance = 1 + in_order(m, &shuffle, i, n - 1);
        goal_make_send(m, (uint32_t)((m->rank + 1 + i) % n), w->size, 0, GOAL_NONE);
        goal_make_recv(m, (uint32_t)((m->rank + n - distance) % n), w->size, 0, GOAL_NONE);
    }
}

static void make_incast(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    if (m->rank != w->root) {
        for (uint32_t i = 0; i < w->iterations && !m->builder->failed; i++) {
            goal_make_send(m, w->root, w->size, 0, GOAL_NONE);
        }
        return;
    }
    uint64_t count = (uint64_t)w->iterations * (w->ranks - 1);
    struct goal_permutation shuffle = goal_permutation(count, goal_random(w->seed, m->rank));
    uint32_t late = w->late > 0 ? goal_make_calc(m, w->late, GOAL_NONE) : GOAL_NONE;
    for (uint64_t i = 0; i < count && !m->builder->failed; i++) {
        uint32_t from = (uint32_t)(in_order(m, &shuffle, i, count) % (w->ranks - 1));
        from += from >= w->root;
        goal_make_recv(m, w->any_source ? GOAL_ANY : from, w->size, 0, late);
    }
}

/* Who would send to itself keeps silent in that iteration. */
static void make_random_permutation(struct goal_maker *m)
{
    const struct goal_wish *w = m->wish;
    uint32_t recv = GOAL_NONE;
    for (uint32_t i = 0; i < w->iterations && !m->builder->failed; i++) {
        struct goal_permutation p = goal_permutation(w->ranks, goal_random(w->seed, i));
        uint32_t to = (uint32_t)goal_permute(&p, m->rank);
        if (to != m->rank) {
            goal_make_send(m, to, w->size, i, recv);
            recv =
                goal_make_recv(m, (uint32_t)goal_permute_back(&p, m->rank), w->size, i, GOAL_NONE);
        }
    }
}

/* ---- Exchanges with neighbours ---- */

/* The neighbour one step up or down dimension `d`; GOAL_NONE beyond an open border. */
static uint32_t neighbour(const struct goal_maker *m, int d, bool up)
{
    const struct goal_wish *w = m->wish;
    uint64_t stride = 1;
    for (int i = 0; i < d; i++) {
        stride *= w->extent[i];
    }
    uint64_t extent = w->extent[d], at = m->rank / stride % extent;
    if (extent == 1 || (w->open && at == (up ? extent - 1 : 0))) {
        return GOAL_NONE;
    }
    uint64_t next = (at + (up ? 1 : extent - 1)) % extent;
    return (uint32_t)(m->rank - at * stride + next * stride);
}

/* An iteration: a message to each neighbour and one from each, then a calc that
 * waits for all of them and on which the next iteration waits. A message's tag is
 * its direction, so that two from the same neighbour are told apart. */
static void make_exchange(struct goal_maker *m)
{
    uint32_t step = GOAL_NONE;
    for (uint32_t i = 0; i < m->wish->iterations && !m->builder->failed; i++) {
        uint32_t waited[12], count = 0;
        for (uint32_t tag = 0; tag < 6; tag++) {
            uint32_t to = neighbour(m, (int)tag / 2, tag % 2 == 0);
            if (to != GOAL_NONE) {
                waited[count++] = goal_make_send(m, to, m->wish->size, tag, step).send;
            }
            uint32_t from = neighbour(m, (int)tag / 2, tag % 2 != 0);
            if (from != GOAL_NONE) {
                waited[count++] = goal_make_recv(m, from, m->wish->size, tag, step);
            }
        }
        step = goal_make_calc(m, m->wish->calc, count == 0 ? step : GOAL_NONE);
        for (uint32_t k = 0; k < count; k++) {
            goal_requires(m->builder, step, waited[k]);
        }
    }
}

enum { EXCHANGE = GOAL_USES_ITERATIONS | GOAL_USES_CALC | GOAL_USES_OPEN };

const struct goal_pattern goal_patterns[] = {
    {"binomialtreebcast", "broadcast along a binomial tree", GOAL_USES_ROOT, 0, make_bcast},
    {"binomialtreereduce", "reduction along a binomial tree", GOAL_USES_ROOT, 0, make_reduce},
    {"dissemination", "messages over distances 1, 2, 4, ... (barrier)", 0, 0, make_dissemination},
    {"allreduce_ring", "ring of chunks, reduced, then gathered", 0, 0, make_allreduce_ring},
    {"allreduce_recdoub", "exchange with partners 1, 2, 4, ... away", 0, 0, make_allreduce_recdoub},
    {"pipelinedring", "broadcast along a ring, in segments", GOAL_USES_ROOT | GOAL_USES_SEGMENT, 0,
     make_pipelinedring},
    {"linear_alltoall", "each rank to each other", GOAL_USES_ORDER, 0, make_linear_alltoall},
    {"incast", "all ranks to the root",
     GOAL_USES_ROOT | GOAL_USES_ITERATIONS | GOAL_USES_SOURCE | GOAL_USES_LATE | GOAL_USES_ORDER, 0,
     make_incast},
    {"random_permutation", "each rank to one other, by a random permutation", GOAL_USES_ITERATIONS,
     0, make_random_permutation},
    {"exchange_1d", "iterations of messages with the neighbours in a line", EXCHANGE, 1,
     make_exchange},
    {"stencil_2d", "the same in a plane", EXCHANGE | GOAL_USES_EXTENT, 2, make_exchange},
    {"stencil_3d", "the same in space", EXCHANGE | GOAL_USES_EXTENT, 3, make_exchange},
};
const int goal_pattern_count = sizeof(goal_patterns) / sizeof(goal_patterns[0]);
