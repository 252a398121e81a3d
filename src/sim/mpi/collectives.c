/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unrolls collectives into messages, for one rank at a time, from what the recording of that rank
 * says. Ranks are those of the communicator: m->rank is the rank whose messages are made,
 * m->config->ranks the number of ranks. Algorithms that are patterns of the generators
 * (docs/goal-gen.md) are called; this file has the others.
 *
 * Vectors of counts are indexed modulo their length: in an extrapolated communicator the further
 * ranks have the counts of the first ones.
 */
#include "goal.h"

/* bytes of a message of a barrier; bytes of a segment of a pipelined collective */
enum { SIGNAL = 1, SEGMENT = 65536 };

static void pattern(struct goal_maker *m, const char *name, const struct mpi_shape *s,
                    uint64_t size, bool pieces)
{
    struct goal_config c = goal_config_default;
    const struct goal_config *before = m->config;
    const struct goal_pattern *p = goal_pattern_find(name);
    c.ranks = before->ranks;
    c.size = size;
    c.root = s->root >= 0 ? (uint32_t)s->root : 0;
    c.segment = pieces || p->segment != 0 ? SEGMENT : UINT64_MAX;
    c.radix = p->radix;
    m->config = &c;
    p->make(m);
    m->config = before;
}

static uint32_t after_both(struct goal_maker *m, uint32_t node, uint32_t a, uint32_t b)
{
    if (a != GOAL_NONE) {
        goal_requires(m->builder, node, a);
    }
    if (b != GOAL_NONE) {
        goal_requires(m->builder, node, b);
    }
    return node;
}

/* ---- Through a root: scatter and gather ---- */

/* Returns the bytes that the root sends to rank i or receives from it: the same for all ranks, or
 * an element of the vector. */
static uint64_t part(const struct mpi_shape *s, uint64_t i)
{
    return s->out != NULL ? (uint64_t)s->out[i % s->members] : (uint64_t)s->bytes;
}

static void from_root(struct goal_maker *m, const struct mpi_shape *s)
{
    uint32_t root = (uint32_t)s->root;
    if (m->rank != root) {
        goal_make_recv(m, root, (uint64_t)s->bytes, 0, GOAL_NONE);
        return;
    }
    uint32_t before = GOAL_NONE;
    for (uint32_t i = 0; i < m->config->ranks && !m->builder->failed; i++) {
        if (i != root) {
            before = goal_make_send(m, i, part(s, i), 0, before).send;
        }
    }
}

static void to_root(struct goal_maker *m, const struct mpi_shape *s)
{
    uint32_t root = (uint32_t)s->root;
    if (m->rank != root) {
        goal_make_send(m, root, (uint64_t)s->bytes, 0, GOAL_NONE);
        return;
    }
    for (uint32_t i = 0; i < m->config->ranks && !m->builder->failed; i++) {
        if (i != root) {
            goal_make_recv(m, i, part(s, i), 0, GOAL_NONE);
        }
    }
}

/* ---- Allreduce ---- */

/* Makes `join` wait for all operations from `first` on for which no other operation waits. */
static void join_all(struct goal_maker *m, uint32_t first, uint32_t join)
{
    for (uint32_t i = first; i < join && !m->builder->failed; i++) {
        if (m->builder->nodes[i].done_count == 0) {
            goal_requires(m->builder, join, i);
        }
    }
}

/* A reduction along a tree to rank 0, then a broadcast along the same tree. */
static void allreduce_tree(struct goal_maker *m, const struct mpi_shape *s)
{
    uint32_t first = (uint32_t)m->builder->count;
    pattern(m, "binomialtreereduce", s, (uint64_t)s->bytes, false);
    uint32_t join = goal_make_calc(m, 0, GOAL_NONE);
    if (m->builder->failed) {
        return;
    }
    join_all(m, first, join);
    uint32_t second = (uint32_t)m->builder->count;
    pattern(m, "binomialtreebcast", s, (uint64_t)s->bytes, false);
    for (uint32_t i = second; i < m->builder->count && !m->builder->failed; i++) {
        if (m->builder->nodes[i].depends == 0) {
            goal_requires(m->builder, i, join);
        }
    }
}

static void scan_doubling(struct goal_maker *m, const struct mpi_shape *s)
{
    uint64_t n = m->config->ranks;
    uint32_t before = GOAL_NONE;
    for (uint64_t distance = 1; distance < n; distance *= 2) {
        if (m->rank + distance < n) {
            goal_make_send(m, (uint32_t)(m->rank + distance), (uint64_t)s->bytes, 0, before);
        }
        if (m->rank >= distance) {
            before =
                goal_make_recv(m, (uint32_t)(m->rank - distance), (uint64_t)s->bytes, 0, before);
        }
    }
}

static void scan_chain(struct goal_maker *m, const struct mpi_shape *s)
{
    uint32_t before = GOAL_NONE;
    if (m->rank > 0) {
        before = goal_make_recv(m, m->rank - 1, (uint64_t)s->bytes, 0, GOAL_NONE);
    }
    if (m->rank + 1 < m->config->ranks) {
        goal_make_send(m, m->rank + 1, (uint64_t)s->bytes, 0, before);
    }
}

/* ---- Rings ---- */

/* A ring of n - 1 steps: in each the rank passes on the block that it received last; the first is
 * number `first`. */
static void ring(struct goal_maker *m, const struct mpi_shape *s, uint64_t first)
{
    uint64_t n = m->config->ranks;
    uint32_t before = GOAL_NONE;
    for (uint64_t step = 0; step + 1 < n && !m->builder->failed; step++) {
        uint64_t block = (first + n - step) % n;
        goal_make_send(m, (uint32_t)((m->rank + 1) % n), part(s, block), 0, before);
        before = goal_make_recv(m, (uint32_t)((m->rank + n - 1) % n), part(s, (block + n - 1) % n),
                                0, before);
    }
}

static void allgather_ring(struct goal_maker *m, const struct mpi_shape *s)
{
    ring(m, s, m->rank);
}

/* The block of a rank starts at the next rank, goes round, and ends at the rank. */
static void reduce_scatter_ring(struct goal_maker *m, const struct mpi_shape *s)
{
    ring(m, s, (uint64_t)m->rank + m->config->ranks - 1);
}

/* ---- All-to-all and allgather ---- */

static uint64_t from(const struct mpi_shape *s, uint32_t peer)
{
    return s->in != NULL ? (uint64_t)s->in[peer % s->members] : (uint64_t)s->bytes;
}

/* True if no message is sent because the vector says 0 bytes. */
static bool silent(const struct mpi_shape *s, uint64_t size)
{
    return s->out != NULL && size == 0;
}

static void alltoall_linear(struct goal_maker *m, const struct mpi_shape *s)
{
    uint64_t n = m->config->ranks;
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        uint32_t source = (uint32_t)((m->rank + n - i) % n);
        if (!silent(s, from(s, source))) {
            goal_make_recv(m, source, from(s, source), 0, GOAL_NONE);
        }
    }
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        uint32_t target = (uint32_t)((m->rank + i) % n);
        if (!silent(s, part(s, target))) {
            goal_make_send(m, target, part(s, target), 0, GOAL_NONE);
        }
    }
}

static void alltoall_pairwise(struct goal_maker *m, const struct mpi_shape *s)
{
    uint64_t n = m->config->ranks;
    uint32_t sent = GOAL_NONE, received = GOAL_NONE;
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        uint32_t target = (uint32_t)((m->rank + i) % n), source = (uint32_t)((m->rank + n - i) % n);
        uint32_t send = sent, receive = received;
        if (!silent(s, part(s, target))) {
            send = goal_make_send(m, target, part(s, target), 0, GOAL_NONE).send;
            after_both(m, send, sent, received);
        }
        if (!silent(s, from(s, source))) {
            receive = goal_make_recv(m, source, from(s, source), 0, GOAL_NONE);
            after_both(m, receive, sent, received);
        }
        sent = send;
        received = receive;
    }
}

/* Each rank sends its block to each other rank. */
static void allgather_linear(struct goal_maker *m, const struct mpi_shape *s)
{
    uint64_t n = m->config->ranks;
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        uint32_t source = (uint32_t)((m->rank + n - i) % n);
        goal_make_recv(m, source, part(s, source), 0, GOAL_NONE);
    }
    for (uint64_t i = 1; i < n && !m->builder->failed; i++) {
        goal_make_send(m, (uint32_t)((m->rank + i) % n), part(s, m->rank), 0, GOAL_NONE);
    }
}

const struct mpi_algorithm mpi_algorithms[MPI_COLLECTIVES][MPI_ALGORITHMS_MOST] = {
    [MPI_BARRIER] = {{"dissemination", .pattern = "barrier_dissemination"}},
    [MPI_BCAST] = {{"binomial", .pattern = "binomialtreebcast"},
                   {"k-nomial", .pattern = "bcast_knomial"},
                   {"binary", .pattern = "bcast_binary"},
                   {"pipelined-binary", .pattern = "bcast_binary", .pieces = true},
                   {"ring", .pattern = "pipelinedring"},
                   {"linear", .make = from_root}},
    [MPI_REDUCE] = {{"binomial", .pattern = "binomialtreereduce"},
                    {"k-nomial", .pattern = "reduce_knomial"},
                    {"binary", .pattern = "reduce_binary"},
                    {"pipelined-binary", .pattern = "reduce_binary", .pieces = true},
                    {"ring", .pattern = "reduce_chains"},
                    {"linear", .make = to_root}},
    [MPI_ALLREDUCE] = {{"recursive-doubling", .pattern = "allreduce_recdoub"},
                       {"ring", .pattern = "allreduce_ring"},
                       {"rabenseifner", .pattern = "allreduce_rabenseifner"},
                       {"swing-latency", .pattern = "allreduce_swing_latency"},
                       {"swing-bandwidth", .pattern = "allreduce_swing_bandwidth"},
                       {"tree", .make = allreduce_tree}},
    [MPI_SCAN] = {{"doubling", .make = scan_doubling}, {"chain", .make = scan_chain}},
    [MPI_EXSCAN] = {{"doubling", .make = scan_doubling}, {"chain", .make = scan_chain}},
    [MPI_REDUCE_SCATTER_BLOCK] = {{"ring", .make = reduce_scatter_ring}},
    [MPI_GATHER] = {{"binomial", .pattern = "gather_binomial"},
                    {"k-nomial", .pattern = "gather_knomial"},
                    {"binary", .pattern = "gather_binary"},
                    {"linear", .make = to_root}},
    [MPI_SCATTER] = {{"binomial", .pattern = "scatter_binomial"},
                     {"k-nomial", .pattern = "scatter_knomial"},
                     {"binary", .pattern = "scatter_binary"},
                     {"linear", .make = from_root}},
    [MPI_ALLGATHER] = {{"bruck", .pattern = "allgather_bruck"},
                       {"ring", .make = allgather_ring},
                       {"recursive-doubling", .pattern = "allgather_recdoub"},
                       {"linear", .make = allgather_linear}},
    [MPI_ALLTOALL] = {{"pairwise", .make = alltoall_pairwise},
                      {"linear", .make = alltoall_linear},
                      {"bruck", .pattern = "alltoall_bruck"}},
    [MPI_GATHERV] = {{"linear", .make = to_root}},
    [MPI_SCATTERV] = {{"linear", .make = from_root}},
    [MPI_ALLGATHERV] = {{"ring", .make = allgather_ring}, {"linear", .make = allgather_linear}},
    [MPI_REDUCE_SCATTER] = {{"ring", .make = reduce_scatter_ring}},
    [MPI_ALLTOALLV] = {{"pairwise", .make = alltoall_pairwise},
                       {"linear", .make = alltoall_linear}},
};

void mpi_unroll(struct goal_maker *m, int collective, int algorithm, const struct mpi_shape *s)
{
    const struct mpi_algorithm *a = &mpi_algorithms[collective][algorithm];
    if (a->make != NULL) {
        a->make(m, s);
    } else {
        pattern(m, a->pattern, s, collective == MPI_BARRIER ? SIGNAL : (uint64_t)s->bytes,
                a->pieces);
    }
}

/* ---- The choice of algorithms ---- */

static int fail_choice(const char *text, size_t length, struct goal_error *error)
{
    return goal_fail(error,
                     "\"%.*s\": must be COLLECTIVE=ALGORITHM, or ALGORITHM for all that have it; "
                     "--list prints both",
                     (int)length, text);
}

static bool same(const char *a, const char *b, size_t length)
{
    return strlen(a) == length && strncasecmp(a, b, length) == 0;
}

/* Reads one item of the list; `split` points to its "=", or is NULL. */
static int choose(struct mpi_config *c, const char *text, size_t length, struct goal_error *error)
{
    const char *split = memchr(text, '=', length);
    const char *name = split != NULL ? split + 1 : text;
    size_t name_length = length - (size_t)(name - text);
    bool found = false;
    for (int i = 0; i < MPI_COLLECTIVES; i++) {
        if (split != NULL && !same(mpi_collective_forms[i].name, text, (size_t)(split - text))) {
            continue;
        }
        for (int k = 0; k < MPI_ALGORITHMS_MOST && mpi_algorithms[i][k].name != NULL; k++) {
            if (same(mpi_algorithms[i][k].name, name, name_length)) {
                c->algorithm[i] = k;
                found = true;
            }
        }
    }
    return found ? 0 : fail_choice(text, length, error);
}

int mpi_choose(struct mpi_config *c, const char *text, struct goal_error *error)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (choose(c, text, length, error) != 0) {
            return -1;
        }
        if (text[length] == '\0') {
            return 0;
        }
        text += length + 1;
    }
}
