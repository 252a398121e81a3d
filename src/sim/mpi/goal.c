/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a rank. Each thread of the program is a chain of operations on a cpu of its
 * own: the next operation of a chain waits for the operations in the chain's `after`. A blocking
 * call replaces these by the end of its operation, a nonblocking call by the start of its
 * operation; a completion adds the ends of the operations that it completed.
 *
 *     gap          calc            after = { end of it }
 *     MPI_Isend    send            after = { start of it }, and the request is the send
 *     MPI_Waitall  (nothing)       after += { ends of the requests' operations }
 *     MPI_Bcast    its messages    after = { end of a calc 0 that waits for all of them }
 */
#include "goal.h"

#include <stdlib.h>

struct wait {
    uint32_t node;
    bool start; /* true: until its start; false: until its end */
};

struct chain {
    struct wait *after;
    uint64_t count, room;
    uint64_t ended; /* when the last call ended, ns */
    uint64_t idle;  /* time since then that the program spent in calls that become no operations */
    bool begun;
};

struct turning {
    struct mpi_trace *t;
    const struct mpi_config *config;
    const struct mpi_rank *r;
    struct goal_builder *b;
    uint32_t rank;      /* of the schedule */
    uint32_t *requests; /* by request: its operation, or GOAL_NONE */
    bool failed;        /* memory is short */
    struct chain chains[256];
};

uint32_t mpi_ranks(const struct mpi_trace *t, const struct mpi_config *c)
{
    return c->regular != NULL ? (uint32_t)mpi_grid_ranks(&c->regular->wanted)
                              : t->ranks * c->blocks;
}

uint32_t mpi_recorded(const struct mpi_trace *t, const struct mpi_config *c, uint32_t rank)
{
    return c->regular != NULL ? mpi_grid_like(&c->regular->large, &c->regular->wanted, rank)
                              : rank % t->ranks;
}

static uint32_t rank_of(const struct turning *d, int64_t rank)
{
    const struct mpi_regular *g = d->config->regular;
    if (rank == MPI_ANY) {
        return GOAL_ANY;
    }
    return g != NULL ? mpi_grid_move(&g->large, d->r->rank, (uint32_t)rank, &g->wanted, d->rank)
                     : (uint32_t)rank + (d->rank - d->r->rank);
}

/* ---- Chains ---- */

static void depend(struct goal_builder *b, uint32_t node, const struct wait *w)
{
    if (w->start) {
        goal_irequires(b, node, w->node);
    } else {
        goal_requires(b, node, w->node);
    }
}

static void follow(const struct turning *d, const struct chain *c, uint32_t node)
{
    for (uint64_t i = 0; i < c->count && !d->b->failed; i++) {
        depend(d->b, node, &c->after[i]);
    }
}

static void add_after(struct turning *d, struct chain *c, uint32_t node, bool start)
{
    if (!ARRAY_ROOM(c->after, c->count, c->room, MPI_ROOM)) {
        d->failed = true;
        return;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): ARRAY_ROOM made room */
    c->after[c->count++] = (struct wait){node, start};
}

static void set_after(struct turning *d, struct chain *c, uint32_t node, bool start)
{
    c->count = 0;
    add_after(d, c, node, start);
}

static void add_calc(struct turning *d, struct chain *c, const struct mpi_call *call, uint64_t time)
{
    uint32_t node = goal_add(d->b, GOAL_CALC, time, 0, 0, call->thread, 0);
    follow(d, c, node);
    set_after(d, c, node, false);
}

/* Adds the calc for the time that the program computed before a call. If the next operation can
 * wait for one operation only, the caller sets `single`: then a calc, of no time if need be, stands
 * for all in `after`. */
static void gap(struct turning *d, struct chain *c, const struct mpi_call *call, bool single)
{
    uint64_t time = c->begun ? call->start - c->ended : 0;
    time -= c->idle < time ? c->idle : time;
    if (d->config->gaps) {
        time = (uint64_t)((unsigned __int128)time * d->config->scale[0] / d->config->scale[1]);
    }
    if ((d->config->gaps && time > 0) || (single && c->count > 1)) {
        add_calc(d, c, call, d->config->gaps ? time : 0);
    }
    c->ended = call->start + call->took;
    c->idle = 0;
    c->begun = true;
}

/* ---- Messages ---- */

/* Returns the tag in the schedule of a message to world rank `to`. */
static uint32_t tag_of(const struct turning *d, int64_t comm, int64_t tag, int64_t to)
{
    const struct mpi_comm *c = &d->t->comms[comm];
    bool alike = d->t->allprof && d->t->any_tag[to];
    return (uint32_t)(c->base + (alike || tag < 0 ? 0 : (uint64_t)tag));
}

/* Adds a send; n has peer, tag, bytes. */
static uint32_t send(struct turning *d, const struct chain *c, const struct mpi_call *call,
                     const int64_t *n, int64_t comm)
{
    uint32_t node = goal_add(d->b, GOAL_SEND, (uint64_t)n[2], rank_of(d, n[0]),
                             tag_of(d, comm, n[1], n[0]), call->thread, 0);
    follow(d, c, node);
    return node;
}

static uint32_t receive(struct turning *d, const struct chain *c, const struct mpi_call *call,
                        const int64_t *n, int64_t comm)
{
    uint32_t node = goal_add(d->b, GOAL_RECV, (uint64_t)n[2], rank_of(d, n[0]),
                             tag_of(d, comm, n[1], d->r->rank), call->thread, 0);
    follow(d, c, node);
    return node;
}

static void exchange(struct turning *d, struct chain *c, const struct mpi_call *call,
                     const int64_t *n)
{
    uint32_t out = n[0] != MPI_NONE ? send(d, c, call, n, n[6]) : GOAL_NONE;
    uint32_t in = n[3] != MPI_NONE ? receive(d, c, call, n + 3, n[6]) : GOAL_NONE;
    c->count = out != GOAL_NONE || in != GOAL_NONE ? 0 : c->count;
    if (out != GOAL_NONE) {
        add_after(d, c, out, false);
    }
    if (in != GOAL_NONE) {
        add_after(d, c, in, false);
    }
}

/* Adds the end of an operation to `after`; if the operation's start is there it becomes the end. */
static void add_end(struct turning *d, struct chain *c, uint32_t node)
{
    if (c->count > 0 && c->after[0].node == node) { /* a start is always the first of `after` */
        c->after[0].start = false;
        return;
    }
    add_after(d, c, node, false);
}

static void complete(struct turning *d, struct chain *c, const int64_t *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 4) {
        if (d->requests[n[i]] != GOAL_NONE) {
            add_end(d, c, d->requests[n[i]]);
            d->requests[n[i]] = GOAL_NONE;
        }
    }
}

/* ---- Collectives ---- */

/* Returns the members of an extrapolated communicator of all ranks: those of the recording, once
 * for each block of ranks, or all of a grid. */
static const uint32_t *grown(struct turning *d, struct mpi_comm *comm)
{
    const struct mpi_group *g = comm->group;
    uint64_t size = mpi_ranks(d->t, d->config);
    if (comm->grown == NULL) {
        comm->grown = malloc(sizeof(*comm->grown) * size);
        for (uint64_t i = 0; i < size && comm->grown != NULL; i++) {
            /* on a grid, all ranks are in their order */
            comm->grown[i] = d->config->regular != NULL
                                 ? (uint32_t)i
                                 : g->members[i % g->size] + (uint32_t)(i / g->size) * d->t->ranks;
        }
    }
    d->failed |= comm->grown == NULL;
    return comm->grown;
}

static uint32_t index_of(const struct mpi_group *g, uint32_t rank)
{
    uint32_t i = 0;
    while (i < g->size && g->members[i] != rank) {
        i++;
    }
    return i;
}

/* Adds the messages of a collective. The first ones wait for the chain, and a calc 0, which is
 * returned, waits for the last ones. */
static uint32_t unroll(struct turning *d, const struct chain *c, const struct mpi_call *call)
{
    struct mpi_shape s;
    mpi_shape(d->r, call, 0, &s);
    struct mpi_comm *comm = &d->t->comms[s.comm];
    const struct mpi_group *g = comm->group;
    mpi_shape(d->r, call, g->size, &s);
    uint32_t ranks = mpi_ranks(d->t, d->config);
    bool grows = ranks > d->t->ranks && g->size == d->t->ranks;
    struct goal_config config = goal_config_default;
    config.ranks = grows ? ranks : g->size;
    struct goal_maker m = {.config = &config, .builder = d->b, .cpu = call->thread};
    m.rank = index_of(g, d->r->rank) + (grows ? d->rank - d->r->rank : 0);
    m.members = grows ? grown(d, comm) : g->members;
    m.shift = grows ? 0 : d->rank - d->r->rank;
    uint64_t step =
        call->persistent ? comm->persistents[mpi_persistent(d->r, call)].step : comm->at++;
    m.tag = (uint32_t)(comm->base + (uint64_t)(comm->highest_tag + 1) + step);
    if (m.members == NULL) {
        return GOAL_NONE;
    }
    uint32_t first = (uint32_t)d->b->count;
    mpi_unroll(&m, call->collective, d->config->algorithm[call->collective], &s);
    uint32_t last = goal_add(d->b, GOAL_CALC, 0, 0, 0, call->thread, 0);
    for (uint32_t i = first; i < last && !d->b->failed; i++) {
        if (d->b->nodes[i].depends == 0) {
            follow(d, c, i);
        }
        if (d->b->nodes[i].done_count == 0) {
            goal_requires(d->b, last, i);
        }
    }
    if (first == last) {
        follow(d, c, last);
    }
    return last;
}

static void collective(struct turning *d, struct chain *c, const struct mpi_call *call)
{
    const int64_t *n = d->r->numbers + call->first;
    uint32_t end = unroll(d, c, call);
    if (call->nonblocking) {
        d->requests[n[0]] = end;
    } else {
        set_after(d, c, end, false);
    }
}

/* ---- A rank ---- */

static void turn(struct turning *d, const struct mpi_call *call)
{
    const int64_t *n = d->r->numbers + call->first;
    struct chain *c = &d->chains[call->thread];
    uint32_t node;
    switch (call->kind) {
    case MPI_K_INIT: /* the program's other threads have been computing since MPI_Init, too */
        for (int i = 0; i < 256; i++) {
            d->chains[i].ended = call->start + call->took;
            d->chains[i].begun = true;
        }
        return;
    case MPI_K_FINALIZE:
        gap(d, c, call, false);
        return;
    case MPI_K_SEND:
    case MPI_K_BSEND:
        gap(d, c, call, false);
        set_after(d, c, send(d, c, call, n, n[3]), call->kind == MPI_K_BSEND);
        return;
    case MPI_K_RECV:
        gap(d, c, call, false);
        set_after(d, c, receive(d, c, call, n, n[3]), false);
        return;
    case MPI_K_ISEND:
    case MPI_K_IRECV:
        gap(d, c, call, false);
        node = call->kind == MPI_K_ISEND ? send(d, c, call, n + 1, n[4])
                                         : receive(d, c, call, n + 1, n[4]);
        d->requests[n[0]] = node;
        set_after(d, c, node, true);
        return;
    case MPI_K_COMPLETE:
        gap(d, c, call, false);
        complete(d, c, n, call->count);
        return;
    case MPI_K_SENDRECV:
        gap(d, c, call, true);
        exchange(d, c, call, n);
        return;
    case MPI_K_COLLECTIVE:
        gap(d, c, call, true);
        collective(d, c, call);
        return;
    /* it takes a step of the communicator, whose tag all its starts use */
    case MPI_K_COLLECTIVE_INIT:
        d->t->comms[n[1]].at++;
        c->idle += c->begun ? call->took : 0;
        return;
    default: /* the call's time is not the program's own */
        c->idle += c->begun ? call->took : 0;
        return;
    }
}

int mpi_make_rank(struct mpi_trace *t, const struct mpi_config *c, const struct mpi_rank *r,
                  uint32_t rank, struct goal_builder *b, struct goal_error *error)
{
    struct turning *d = calloc(1, sizeof(*d));
    int rc = -1;
    if (d != NULL) {
        *d = (struct turning){.t = t, .config = c, .r = r, .b = b, .rank = rank};
        d->requests = malloc(sizeof(*d->requests) * (r->requests + 1));
    }
    if (d != NULL && d->requests != NULL) {
        memset(d->requests, 0xff, sizeof(*d->requests) * (r->requests + 1));
        for (uint64_t i = 0; i < r->count && !b->failed && !d->failed; i++) {
            turn(d, &r->calls[i]);
        }
        rc = b->failed || d->failed ? -1 : 0;
    }
    for (int i = 0; i < 256 && d != NULL; i++) {
        free(d->chains[i].after);
    }
    if (d != NULL) {
        free(d->requests);
    }
    free(d);
    return rc == 0 ? 0
                   : goal_fail(error,
                               "rank %u does not fit memory, or has more than 4294967295 "
                               "operations",
                               r->rank);
}
