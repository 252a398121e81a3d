/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns in rounds whose distances double, 1, 2, 4, ...: barriers, allgathers and allreduces; see
 * gen.h. */
#include "gen.h"

/* The dissemination of LogGOPSim's generator: a send waits only for the receive of the round
 * before. */
void gen_dissemination(struct goal_maker *m)
{
    const struct goal_config *c = m->config;
    uint32_t recv = GOAL_NONE;
    for (uint64_t distance = 1; distance < c->ranks; distance *= 2) {
        goal_make_send(m, (uint32_t)((m->rank + distance) % c->ranks), c->size, 0, recv);
        recv = goal_make_recv(m, (uint32_t)((m->rank + c->ranks - distance) % c->ranks), c->size, 0,
                              GOAL_NONE);
    }
}

static uint64_t same_size(const struct goal_config *c, uint64_t weight, uint64_t digit)
{
    (void)weight;
    (void)digit;
    return c->size;
}

/* A barrier: no rank leaves the last round before all ranks have begun the first. */
void gen_barrier_dissemination(struct goal_maker *m)
{
    struct gen_round r = GEN_ROUND_FIRST;
    for (uint64_t weight = 1; weight < m->config->ranks; weight *= m->config->radix) {
        gen_fan(m, &r, weight, same_size);
    }
}

/* Bruck's allgather. A rank holds the blocks of the ranks that follow it; their number doubles in
 * each round. */
void gen_allgather_bruck(struct goal_maker *m)
{
    uint64_t n = m->config->ranks;
    struct gen_round r = GEN_ROUND_FIRST;
    for (uint64_t distance = 1; distance < n; distance *= 2) {
        uint64_t size = (n - distance < distance ? n - distance : distance) * m->config->size;
        gen_exchange(m, &r, (uint32_t)((m->rank + n - distance) % n), size,
                     (uint32_t)((m->rank + distance) % n), size, GEN_KEEP);
    }
}

/* Returns the bytes of the blocks of `count` numbers of the fold (gen_fold()) from `first` on. A
 * number below `extra` holds two blocks: its own, and that of the rank that has handed over to
 * it. */
static uint64_t blocks(const struct goal_maker *m, const struct gen_fold *f, uint64_t first,
                       uint64_t count)
{
    uint64_t doubled = first >= f->extra ? 0 : f->extra - first < count ? f->extra - first : count;
    return (count + doubled) * m->config->size;
}

void gen_allgather_recdoub(struct goal_maker *m)
{
    struct gen_fold f = gen_fold(m);
    struct gen_round r = GEN_ROUND_FIRST;
    uint64_t size = m->config->size, others = (m->config->ranks - 1) * size;
    if (f.hands_over) {
        goal_make_send(m, m->rank + 1, size, 0, GOAL_NONE);
        goal_make_recv(m, m->rank + 1, others, 0, GOAL_NONE);
        return;
    }
    if (f.self < f.extra) {
        r.received = goal_make_recv(m, m->rank - 1, size, 0, GOAL_NONE);
    }
    for (uint64_t distance = 1; distance < f.power; distance *= 2) {
        /* bits of `other` that are gathered already */
        uint64_t other = f.self ^ distance, low = distance - 1;
        uint32_t peer = gen_unfold(&f, other);
        gen_exchange(m, &r, peer, blocks(m, &f, f.self & ~low, distance), peer,
                     blocks(m, &f, other & ~low, distance), GEN_KEEP);
    }
    if (f.self < f.extra) {
        gen_wait(m, goal_make_send(m, m->rank - 1, others, 0, r.received).first, r.sent);
    }
}

void gen_allreduce_recdoub(struct goal_maker *m)
{
    struct gen_fold f = gen_fold(m);
    struct gen_round r = GEN_ROUND_FIRST;
    if (!gen_fold_in(m, &f, &r)) {
        return;
    }
    for (uint64_t distance = 1; distance < f.power; distance *= 2) {
        uint32_t peer = gen_unfold(&f, f.self ^ distance);
        gen_exchange(m, &r, peer, m->config->size, peer, m->config->size, GEN_REDUCE);
    }
    gen_fold_out(m, &f, &r);
}

/* Returns the bytes of chunks first .. first + count - 1, when the data are dealt to 2^k chunks. */
static uint64_t part(const struct goal_maker *m, const struct gen_fold *f, uint64_t first,
                     uint64_t count)
{
    return gen_chunks(m->config->size, f->power, first, first + count);
}

/* Rabenseifner's allreduce. Recursive halving: two peers hold the same chunks; the one with the
 * lower number keeps the lower half and receives the peer's data for it, to reduce them. Then the
 * steps run backwards as an allgather. */
void gen_allreduce_rabenseifner(struct goal_maker *m)
{
    struct gen_fold f = gen_fold(m);
    struct gen_round r = GEN_ROUND_FIRST;
    uint64_t first = 0, distance = 1;
    if (!gen_fold_in(m, &f, &r)) {
        return;
    }
    for (uint64_t count = f.power / 2; count > 0; count /= 2, distance *= 2) {
        uint32_t peer = gen_unfold(&f, f.self ^ distance);
        uint64_t kept = (f.self & distance) == 0 ? first : first + count;
        uint64_t given = first + first + count - kept;
        gen_exchange(m, &r, peer, part(m, &f, given, count), peer, part(m, &f, kept, count),
                     GEN_REDUCE);
        first = kept;
    }
    for (uint64_t count = 1; count < f.power; count *= 2) {
        distance /= 2;
        uint32_t peer = gen_unfold(&f, f.self ^ distance);
        uint64_t other = first ^ count;
        gen_exchange(m, &r, peer, part(m, &f, first, count), peer, part(m, &f, other, count),
                     GEN_KEEP);
        first = first < other ? first : other;
    }
    gen_fold_out(m, &f, &r);
}
