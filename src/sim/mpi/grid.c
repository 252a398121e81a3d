/* SPDX-License-Identifier: BSD-3-Clause */
/* Grids of ranks, and whether two recordings are regular on theirs; see grid.h. */
#include "grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Grids ---- */

uint64_t mpi_grid_ranks(const struct mpi_grid *g)
{
    uint64_t ranks = 1;
    for (int i = 0; i < g->dimensions; i++) {
        ranks *= g->size[i];
    }
    return ranks;
}

static const char *read_grid(struct mpi_grid *g, const char *p)
{
    uint64_t ranks = 1;
    for (g->dimensions = 0; g->dimensions < MPI_DIMENSIONS_MOST; p++) {
        char *end;
        unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        if (n < 3 || n > 65535 || (ranks *= n) >= GOAL_ANY) {
            return NULL;
        }
        g->size[g->dimensions++] = (uint32_t)n;
        p = end;
        if (*p != 'x') {
            return p;
        }
    }
    return NULL;
}

int mpi_regular_read(struct mpi_regular *r, const char *text, struct goal_error *error)
{
    struct mpi_grid *const grids[] = {&r->small, &r->large, &r->wanted};
    const char *p = text;
    for (int i = 0; i < 3 && p != NULL; i++) {
        p = read_grid(grids[i], p);
        bool right =
            p != NULL && *p == (i < 2 ? ',' : '\0') && grids[i]->dimensions == r->small.dimensions;
        p = right ? p + (i < 2) : NULL;
    }
    if (p == NULL) {
        return goal_fail(error,
                         "%s: must be three grids of 1 to 4 dimensions, of 3 to 65535 ranks each, "
                         "like 3x3,4x4,16x16: those of the smaller recording, of this one, of the "
                         "schedule",
                         text);
    }
    for (int i = 0; i < r->small.dimensions; i++) {
        if (r->wanted.size[i] != r->large.size[i] && r->small.size[i] == r->large.size[i]) {
            return goal_fail(error,
                             "%s: dimension %d is to become %u, and is %u in both recordings: "
                             "nothing shows how the program grows in it",
                             text, i + 1, r->wanted.size[i], r->large.size[i]);
        }
    }
    return mpi_grid_ranks(&r->small) != mpi_grid_ranks(&r->large)
               ? 0
               : goal_fail(error,
                           "%s: both recordings have %" PRIu64 " ranks: one size proves "
                           "nothing",
                           text, mpi_grid_ranks(&r->large));
}

static void place(const struct mpi_grid *g, uint32_t rank, uint32_t at[MPI_DIMENSIONS_MOST])
{
    for (int i = g->dimensions - 1; i >= 0; i--) {
        at[i] = rank % g->size[i];
        rank /= g->size[i];
    }
}

static uint32_t rank_at(const struct mpi_grid *g, const uint32_t at[MPI_DIMENSIONS_MOST])
{
    uint32_t rank = 0;
    for (int i = 0; i < g->dimensions; i++) {
        rank = rank * g->size[i] + at[i];
    }
    return rank;
}

/* The rank of `large` at the place of a rank of `other`; of those between the `turn`s take turns.
 */
static uint32_t like(const struct mpi_grid *large, const struct mpi_grid *other, uint32_t rank,
                     bool turns)
{
    uint32_t at[MPI_DIMENSIONS_MOST];
    place(other, rank, at);
    for (int i = 0; i < large->dimensions; i++) {
        bool between = at[i] != 0 && at[i] != other->size[i] - 1;
        uint32_t turn = turns && between ? (at[i] - 1) % (large->size[i] - 2) : 0;
        at[i] = between ? 1 + turn : at[i] != 0 ? large->size[i] - 1 : 0;
    }
    return rank_at(large, at);
}

uint32_t mpi_grid_like(const struct mpi_grid *large, const struct mpi_grid *wanted, uint32_t rank)
{
    return like(large, wanted, rank, true);
}

/* How far a peer is, round the border if that is shorter. */
static void distance(const struct mpi_grid *g, uint32_t rank, uint32_t peer,
                     int64_t by[MPI_DIMENSIONS_MOST])
{
    uint32_t from[MPI_DIMENSIONS_MOST], to[MPI_DIMENSIONS_MOST];
    place(g, rank, from);
    place(g, peer, to);
    for (int i = 0; i < g->dimensions; i++) {
        int64_t size = g->size[i];
        by[i] = ((int64_t)to[i] - from[i] + size) % size;
        by[i] -= 2 * by[i] > size ? size : 0;
    }
}

uint32_t mpi_grid_move(const struct mpi_grid *from, uint32_t rank, uint32_t peer,
                       const struct mpi_grid *to, uint32_t at)
{
    int64_t by[MPI_DIMENSIONS_MOST];
    uint32_t there[MPI_DIMENSIONS_MOST];
    distance(from, rank, peer, by);
    place(to, at, there);
    for (int i = 0; i < to->dimensions; i++) {
        int64_t size = to->size[i];
        there[i] = (uint32_t)(((int64_t)there[i] + by[i] % size + size) % size);
    }
    return rank_at(to, there);
}

/* ---- Whether two ranks do the same ---- */

/* What the numbers of a call are: p peer, t tag, b bytes, c communicator, = must be equal, . may be
 * anything; NULL: the call becomes nothing in the schedule. */
static const char *roles(const struct mpi_call *c)
{
    switch (c->kind) {
    case MPI_K_SEND:
    case MPI_K_BSEND:
    case MPI_K_RECV:
        return "ptbc";
    case MPI_K_ISEND:
    case MPI_K_IRECV:
        return "=ptbc";
    case MPI_K_SENDRECV:
        return "ptbptbc";
    case MPI_K_COMPLETE:
        return "=...";
    case MPI_K_COLLECTIVE:
    case MPI_K_COLLECTIVE_INIT:
        return c->nonblocking ? "=c==" : "c==";
    case MPI_K_INIT:
    case MPI_K_FINALIZE:
        return "";
    default:
        return NULL;
    }
}

struct side {
    struct mpi_trace *t;
    const struct mpi_grid *grid;
    struct mpi_rank r;
    uint64_t at; /* the next call */
};

/* The next call that becomes something; NULL: there is none. */
static const struct mpi_call *next(struct side *s)
{
    while (s->at < s->r.count && roles(&s->r.calls[s->at]) == NULL) {
        s->at++;
    }
    return s->at < s->r.count ? &s->r.calls[s->at++] : NULL;
}

/* Which of the communicators of all ranks one is, or, below 0, of those of its rank alone; 0: it
 * has others. */
static int64_t which(const struct mpi_trace *t, int64_t comm)
{
    const struct mpi_group *g = t->comms[comm].group;
    bool all = g->size == t->ranks && g->split == 0;
    for (uint32_t i = 0; i < g->size && all; i++) {
        all = g->members[i] == i;
    }
    for (uint64_t i = 0; i < g->comm_count && (all || g->size == 1); i++) {
        if (g->comms[i] == comm) {
            return all ? (int64_t)i + 1 : -(int64_t)i - 1;
        }
    }
    return 0;
}

static const char *describe(const struct side *s, int64_t peer, char text[64])
{
    int64_t by[MPI_DIMENSIONS_MOST];
    int n = 0;
    if (peer < 0) {
        return "nobody";
    }
    distance(s->grid, s->r.rank, (uint32_t)peer, by);
    for (int i = 0; i < s->grid->dimensions; i++) {
        n += snprintf(text + n, 64 - (size_t)n, "%s%+" PRId64, i > 0 ? "," : "", by[i]);
    }
    return text;
}

/* The peer of a call of `s`, for the rank of `of`; a negative one means the same for both. */
static int64_t moved(const struct side *of, const struct side *s, int64_t peer)
{
    return peer < 0
               ? peer
               : (int64_t)mpi_grid_move(s->grid, s->r.rank, (uint32_t)peer, of->grid, of->r.rank);
}

/* True if a number of a call is as it must be. */
static bool fits(const struct side *a, int64_t x, const struct side *b, int64_t y, char role)
{
    switch (role) {
    case 'p':
        return moved(b, a, x) == y;
    case 'c':
        return which(a->t, x) == which(b->t, y) && which(b->t, y) != 0;
    case 't':
    case '=':
        return x == y;
    default:
        return true;
    }
}

static int irregular(const struct side *a, const struct mpi_call *x, const struct side *b,
                     const struct mpi_call *y, uint32_t number, char role, struct goal_error *error)
{
    static const char *const is[] = {['p'] = "peer", ['t'] = "tag", ['c'] = "communicator"};
    int64_t one = a->r.numbers[x->first + number], two = b->r.numbers[y->first + number];
    char there[64], here[64];
    if (role == 'p') {
        return mpi_fail(&b->r, y->line, error,
                        "is not regular: the peer of rank %u is at %s, and at %s from rank %u, "
                        "which has its place (%s:%" PRIu64 ")",
                        b->r.rank, describe(b, two, there), describe(a, one, here), a->r.rank,
                        a->r.path, x->line);
    }
    if (role == 'c') {
        return mpi_fail(&b->r, y->line, error,
                        "is not regular: a communicator of other ranks than all, or one alone, or "
                        "not that of %s:%" PRIu64,
                        a->r.path, x->line);
    }
    return mpi_fail(&b->r, y->line, error,
                    "is not regular: %s %" PRId64 " of rank %u, %" PRId64
                    " of rank %u, which has its place (%s:%" PRIu64 ")",
                    role == 't' ? is['t'] : "number", two, b->r.rank, one, a->r.rank, a->r.path,
                    x->line);
}

static int same_call(const struct side *a, const struct mpi_call *x, const struct side *b,
                     const struct mpi_call *y, struct goal_error *error)
{
    const char *of = roles(x);
    size_t each = strlen(of);
    bool collective = x->kind == MPI_K_COLLECTIVE || x->kind == MPI_K_COLLECTIVE_INIT;
    if (x->kind != y->kind || x->thread != y->thread || x->nonblocking != y->nonblocking ||
        x->persistent != y->persistent || (collective && x->collective != y->collective) ||
        x->count != y->count) {
        return mpi_fail(&b->r, y->line, error,
                        "is not regular: rank %u, which has the place of rank %u, makes another "
                        "call (%s:%" PRIu64 ")",
                        a->r.rank, b->r.rank, a->r.path, x->line);
    }
    if (collective && mpi_collective_forms[x->collective].vectors > 0) {
        return mpi_fail(&b->r, y->line, error,
                        "is not regular: a %s has numbers for each rank, and nobody knows those of "
                        "more",
                        mpi_collective_forms[x->collective].name);
    }
    for (uint32_t i = 0; i < x->count; i++) {
        /* behind the communicator of a collective all numbers are equal */
        char role = each == 0 ? '.' : collective && i >= each ? '=' : of[i % each];
        if (!fits(a, a->r.numbers[x->first + i], b, b->r.numbers[y->first + i], role)) {
            return irregular(a, x, b, y, i, role, error);
        }
    }
    return 0;
}

static int same_rank(struct side *a, struct side *b, struct goal_error *error)
{
    a->at = b->at = 0;
    for (;;) {
        const struct mpi_call *x = next(a), *y = next(b);
        if (x == NULL && y == NULL) {
            return 0;
        }
        if (x == NULL || y == NULL) {
            const struct side *more = x == NULL ? b : a, *less = x == NULL ? a : b;
            return mpi_fail(&more->r, (x == NULL ? y : x)->line, error,
                            "is not regular: %s, the recording of the rank that has its place, "
                            "ends before this",
                            less->r.path);
        }
        if (same_call(a, x, b, y, error) != 0) {
            return -1;
        }
    }
}

static int check_ranks(struct mpi_trace *t, const struct mpi_grid *grid, struct mpi_trace *large,
                       const struct mpi_grid *large_grid, struct goal_error *error)
{
    int rc = 0;
    for (uint32_t rank = 0; rank < t->ranks && rc == 0; rank++) {
        struct side a = {.t = large, .grid = large_grid}, b = {.t = t, .grid = grid};
        rc = mpi_load(large, like(large_grid, grid, rank, false), &a.r, error);
        rc = rc == 0 ? mpi_load(t, rank, &b.r, error) : rc;
        rc = rc == 0 ? same_rank(&a, &b, error) : rc;
        mpi_unload(&a.r);
        mpi_unload(&b.r);
    }
    return rc;
}

static int check_size(const struct mpi_trace *t, const struct mpi_grid *g, const char *which_one,
                      struct goal_error *error)
{
    return mpi_grid_ranks(g) == t->ranks
               ? 0
               : goal_fail(error, "the %s recording has %u ranks, its grid %" PRIu64, which_one,
                           t->ranks, mpi_grid_ranks(g));
}

int mpi_regular_check(struct mpi_trace *small, struct mpi_trace *large, const struct mpi_regular *r,
                      struct goal_error *error)
{
    if (small->allprof || large->allprof) {
        return goal_fail(error, "traces of liballprof do not say what wildcards got, nor who is in "
                                "a communicator: whether they are regular cannot be shown");
    }
    int rc = check_size(small, &r->small, "smaller", error);
    rc = rc == 0 ? check_size(large, &r->large, "larger", error) : rc;
    rc = rc == 0 ? check_ranks(large, &r->large, large, &r->large, error) : rc;
    return rc == 0 ? check_ranks(small, &r->small, large, &r->large, error) : rc;
}
