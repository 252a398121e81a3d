/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that several generators of patterns use. A generator is called for one rank and adds
 * the operations of that rank; it must not use memory for each other rank.
 *
 * If an algorithm has rounds, a rank begins a round when its send and its receive of the round
 * before have ended, and the received data have been reduced: so a message depends on all messages
 * that its sender has received before. A rank posts all its receives at the start. Messages between
 * two ranks have the same tag and match their receives in order.
 */
#ifndef SIM_GEN_H
#define SIM_GEN_H

#include "goal_gen.h"

/* Returns the rank's place: its distance from the root, counted upwards and modulo the number of
 * ranks. */
static inline uint64_t gen_place(const struct goal_maker *m)
{
    uint64_t n = m->config->ranks;
    return (m->rank + n - m->config->root) % n;
}

static inline uint32_t gen_rank_at(const struct goal_maker *m, uint64_t place)
{
    return (uint32_t)((place + m->config->root) % m->config->ranks);
}

/* Renumbers the ranks as LogGOPSim does: the root and rank 0 change places. */
static inline uint32_t gen_swapped(uint32_t rank, uint32_t root)
{
    return rank == 0 ? root : rank == root ? 0 : rank;
}

/* Returns the bytes of chunks first .. end - 1, when `size` bytes are dealt to `parts` chunks as
 * evenly as possible: the first size % parts chunks have one byte more. */
static inline uint64_t gen_chunks(uint64_t size, uint64_t parts, uint64_t first, uint64_t end)
{
    uint64_t rest = size % parts, more = (end < rest ? end : rest) - (first < rest ? first : rest);
    return size / parts * (end - first) + more;
}

/* Data that are sent in segments: gen_next_piece() returns true and the size of the next segment
 * until there is none left. 0 bytes are one segment. */
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

/* gen_reduce() adds a calc for the reduction of `size` bytes, which waits for `after`. It returns
 * the calc, or `after` if a reduction takes no time. */
uint32_t gen_reduce(struct goal_maker *m, uint64_t size, uint32_t after);

/* gen_wait() makes `node` wait for `on`, too, unless `on` is GOAL_NONE. */
static inline void gen_wait(struct goal_maker *m, uint32_t node, uint32_t on)
{
    if (on != GOAL_NONE) {
        goal_requires(m->builder, node, on);
    }
}

/* gen_wait_since() makes `node` wait for all operations from `first` to before `node` itself for
 * which no operation waits yet. */
void gen_wait_since(struct goal_maker *m, uint32_t node, uint32_t first);

/* gen_join() returns an operation that ends when all operations from `first` on have ended. If no
 * other operation waits for exactly one of them, it returns that one; else it adds a calc of no
 * time that waits for them. GOAL_NONE if there are no operations from `first` on. */
uint32_t gen_join(struct goal_maker *m, uint32_t first);

/* gen_gate() makes all operations from `first` on that wait for nothing wait for `a` and `b`; each
 * of the two may be GOAL_NONE. */
void gen_gate(struct goal_maker *m, uint32_t first, uint32_t a, uint32_t b);

/* ---- Rounds ---- */

/* The operations that the next round of a rank waits for. The first round begins with
 * GEN_ROUND_FIRST. */
struct gen_round {
    uint32_t sent;
    uint32_t received; /* the last receive, or the calc that reduces its data */
};

#define GEN_ROUND_FIRST ((struct gen_round){GOAL_NONE, GOAL_NONE})

/* gen_exchange() adds a round of one send of `out` bytes and one receive of `in` bytes. The
 * received data are reduced if `use` is GEN_REDUCE. */
enum gen_use { GEN_KEEP, GEN_REDUCE };
void gen_exchange(struct goal_maker *m, struct gen_round *r, uint32_t to, uint64_t out,
                  uint32_t from, uint64_t in, enum gen_use use);

/* gen_fan() adds a round of sends to the ranks that are 1, 2, ... radix - 1 times `weight` places
 * further on, as far as these distances are below the number of ranks, and of receives from the
 * ranks as far back. bytes() returns the size of each message. */
void gen_fan(struct goal_maker *m, struct gen_round *r, uint64_t weight,
             uint64_t (*bytes)(const struct goal_config *c, uint64_t weight, uint64_t digit));

/* ---- Powers of two ---- */

/*
 * A fold of 2^k + e ranks to 2^k. The first 2e ranks form pairs: before the rounds the even rank
 * hands its data over to the odd one, after the rounds it gets the result back. Each rank that
 * takes part in the rounds has a number below 2^k.
 */
struct gen_fold {
    uint64_t power;
    uint64_t extra; /* e */
    uint64_t self;
    bool hands_over; /* this rank hands its data over and takes no part in the rounds */
};

struct gen_fold gen_fold(const struct goal_maker *m);
uint32_t gen_unfold(const struct gen_fold *f, uint64_t number);

/* gen_fold_in() adds the messages before the rounds of an allreduce, gen_fold_out() those after.
 * gen_fold_in() returns false if this rank takes no part in the rounds, and nothing more is to be
 * added for it. */
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
