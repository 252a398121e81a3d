/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of which generators of patterns are made. A pattern adds the operations of one
 * rank; what it must not do is keep anything per other rank.
 *
 * Where an algorithm goes by rounds, a round begins at a rank when its send and its
 * receive of the round before have ended (and what came has been reduced); so a
 * message depends on all that its sender received before. Receives are posted at
 * once: messages between two ranks have one tag and meet them in order.
 */
#ifndef SIM_GEN_H
#define SIM_GEN_H

#include "goal_gen.h"

/* Ranks counted from the root, round and round. */
static inline uint64_t gen_place(const struct goal_maker *m)
{
    uint64_t n = m->config->ranks;
    return (m->rank + n - m->config->root) % n;
}

static inline uint32_t gen_rank_at(const struct goal_maker *m, uint64_t place)
{
    return (uint32_t)((place + m->config->root) % m->config->ranks);
}

/* The same as LogGOPSim counts: the root and rank 0 change places. */
static inline uint32_t gen_swapped(uint32_t rank, uint32_t root)
{
    return rank == 0 ? root : rank == root ? 0 : rank;
}

/* Bytes of chunks first .. end - 1, when `size` bytes are dealt to `parts` chunks as
 * evenly as can be: the first size % parts have one more. */
static inline uint64_t gen_chunks(uint64_t size, uint64_t parts, uint64_t first, uint64_t end)
{
    uint64_t rest = size % parts, more = (end < rest ? end : rest) - (first < rest ? first : rest);
    return size / parts * (end - first) + more;
}

/* A message in pieces: gen_next_piece() is true until all were seen. Nothing at all
 * is one piece of 0 bytes. */
struct gen_pieces {
    uint64_t left;
    uint64_t segment;
    bool begun;
};

static inline bool gen_next_piece(struct gen_pieces *p, uint64_t *size)
{
    *size = p->left < p->segment ? p->left : p->segment;
    bool more = p->left > 0 || !p->begun;
    p->left -= *size;
    p->begun = true;
    return more;
}

/* gen_reduce() computes for `size` bytes after `after`, and returns what ends it:
 * `after` itself if reducing costs nothing. */
uint32_t gen_reduce(struct goal_maker *m, uint64_t size, uint32_t after);

/* gen_wait(): `node` waits for `on` too, unless that is GOAL_NONE. */
static inline void gen_wait(struct goal_maker *m, uint32_t node, uint32_t on)
{
    if (on != GOAL_NONE) {
        goal_requires(m->builder, node, on);
    }
}

/* gen_wait_since(): `node` waits for all operations from `first` to before itself
 * for which none waits yet. */
void gen_wait_since(struct goal_maker *m, uint32_t node, uint32_t first);

/* gen_join() returns an operation that ends when all operations from `first` on have ended. If only
 * one of them has no other that waits for it, it is that one, else a new calc of no time. GOAL_NONE
 * if there are none from `first` on. */
uint32_t gen_join(struct goal_maker *m, uint32_t first);

/* gen_gate(): those from `first` on that wait for nothing wait for `a` and `b`, each
 * of which may be GOAL_NONE. */
void gen_gate(struct goal_maker *m, uint32_t first, uint32_t a, uint32_t b);

/* ---- Rounds ---- */

/* The operations that the next round waits for. Begin with GEN_ROUND_FIRST. */
struct gen_round {
    uint32_t sent;
    uint32_t received; /* and reduced */
};

#define GEN_ROUND_FIRST ((struct gen_round){GOAL_NONE, GOAL_NONE})

/* One message out and one in, of any sizes; what came in is reduced or not. */
enum gen_use { GEN_KEEP, GEN_REDUCE };
void gen_exchange(struct goal_maker *m, struct gen_round *r, uint32_t to, uint64_t out,
                  uint32_t from, uint64_t in, enum gen_use use);

/* Messages to the ranks 1, 2, ... radix - 1 times `weight` further on, as far as
 * there are so many, and from as far back; bytes() says how large. */
void gen_fan(struct goal_maker *m, struct gen_round *r, uint64_t weight,
             uint64_t (*bytes)(const struct goal_config *c, uint64_t weight, uint64_t digit));

/* ---- Powers of two ---- */

/*
 * Of 2^k + e ranks the first 2e form pairs: before the rounds the even one hands its
 * data to the odd one, after them it gets the result back. Who takes part in the
 * rounds has a number below 2^k.
 */
struct gen_fold {
    uint64_t power;
    uint64_t extra; /* e */
    uint64_t self;
    bool hands_over; /* and takes no part */
};

struct gen_fold gen_fold(const struct goal_maker *m);
uint32_t gen_unfold(const struct gen_fold *f, uint64_t number);

/* Before the rounds of an allreduce, and after. gen_fold_in() is false if this rank
 * has done its part. */
bool gen_fold_in(struct goal_maker *m, const struct gen_fold *f, struct gen_round *r);
void gen_fold_out(struct goal_maker *m, const struct gen_fold *f, const struct gen_round *r);

/* ---- The patterns; patterns.c has their names ---- */

void gen_binomialtreebcast(struct goal_maker *m);
void gen_binomialtreereduce(struct goal_maker *m);
void gen_bcast_binary(struct goal_maker *m);
void gen_bcast_knomial(struct goal_maker *m);
void gen_bcast_linear(struct goal_maker *m);
void gen_bcast_chains(struct goal_maker *m);
void gen_reduce_binary(struct goal_maker *m);
void gen_reduce_knomial(struct goal_maker *m);
void gen_reduce_linear(struct goal_maker *m);
void gen_reduce_chains(struct goal_maker *m);
void gen_gather_binomial(struct goal_maker *m);
void gen_gather_binary(struct goal_maker *m);
void gen_gather_knomial(struct goal_maker *m);
void gen_gather_linear(struct goal_maker *m);
void gen_scatter_binomial(struct goal_maker *m);
void gen_scatter_binary(struct goal_maker *m);
void gen_scatter_knomial(struct goal_maker *m);
void gen_scatter_linear(struct goal_maker *m);

void gen_pipelinedring(struct goal_maker *m);
void gen_bcast_ring(struct goal_maker *m);
void gen_bcast_scatter_allgather(struct goal_maker *m);
void gen_allgather_ring(struct goal_maker *m);
void gen_reduce_scatter_ring(struct goal_maker *m);
void gen_allreduce_ring(struct goal_maker *m);

void gen_dissemination(struct goal_maker *m);
void gen_barrier_dissemination(struct goal_maker *m);
void gen_allgather_bruck(struct goal_maker *m);
void gen_allgather_recdoub(struct goal_maker *m);
void gen_allreduce_recdoub(struct goal_maker *m);
void gen_allreduce_rabenseifner(struct goal_maker *m);
void gen_allreduce_swing_latency(struct goal_maker *m);
void gen_allreduce_swing_bandwidth(struct goal_maker *m);

void gen_linear_alltoall(struct goal_maker *m);
void gen_alltoall_pairwise(struct goal_maker *m);
void gen_alltoall_bruck(struct goal_maker *m);
void gen_incast(struct goal_maker *m);
void gen_outcast(struct goal_maker *m);
void gen_random_permutation(struct goal_maker *m);
void gen_exchange_neighbours(struct goal_maker *m);

void gen_training(struct goal_maker *m);

#endif
