/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The survey reads all ranks before any of them becomes a part of the schedule. It finds the tags
 * that each communicator uses, so that each gets a range of tags of its own; it checks that the
 * members of a communicator have the same collectives in the same order; and it counts calls that
 * are not understood and messages that never came.
 */
#include "goal.h"

#include <inttypes.h>

static void count_name(struct mpi_summary *s, const struct mpi_call *c)
{
    bool failed = c->kind == MPI_K_FAILED;
    for (int i = 0; i < s->name_count; i++) {
        struct mpi_name *n = &s->names[i];
        if (n->failed == failed && strlen(n->name) == c->name_length &&
            memcmp(n->name, c->name, c->name_length) == 0) {
            n->count++;
            return;
        }
    }
    /* the table is full: the remaining names share its last entry */
    if (s->name_count == MPI_NAMES_MOST) {
        s->names[MPI_NAMES_MOST - 1].count++;
        strcpy(s->names[MPI_NAMES_MOST - 1].name, "others");
        return;
    }
    struct mpi_name *n = &s->names[s->name_count++];
    *n = (struct mpi_name){.count = 1, .failed = failed};
    for (uint32_t i = 0; i < c->name_length && i < sizeof(n->name) - 1; i++) {
        bool printable = c->name[i] > ' ' && c->name[i] < 127;
        n->name[i] = printable ? c->name[i] : '?';
    }
}

static void use_tag(struct mpi_trace *t, int64_t comm, int64_t tag)
{
    struct mpi_comm *c = &t->comms[comm];
    c->highest_tag = tag > c->highest_tag ? tag : c->highest_tag;
}

static void sends(struct mpi_trace *t, struct mpi_summary *s, const int64_t *n, int64_t comm)
{
    use_tag(t, comm, n[1]);
    s->messages++;
    s->bytes += (uint64_t)n[2];
}

static void receives(struct mpi_trace *t, const struct mpi_rank *r, const int64_t *n, int64_t comm)
{
    use_tag(t, comm, n[1]);
    t->any_tag[r->rank] |= n[1] == MPI_ANY;
    t->one_tag[r->rank] |= n[1] != MPI_ANY;
}

/* Checks that the k-th collective of a communicator is the same at all its members. */
static int same_step(struct mpi_trace *t, const struct mpi_rank *r, const struct mpi_call *call,
                     struct mpi_summary *sum, struct goal_error *error)
{
    struct mpi_shape s;
    mpi_shape(r, call, 0, &s);
    struct mpi_comm *c = &t->comms[s.comm];
    const struct mpi_collective_form *f = &mpi_collective_forms[call->collective];
    struct mpi_step step = {(uint8_t)call->collective, call->persistent, s.root,
                            f->vectors > 0 ? 0 : s.bytes, r->rank};
    if (c->at == c->step_count) {
        if (!ARRAY_ROOM(c->steps, c->step_count, c->step_room, MPI_ROOM)) {
            return goal_fail(error, "no memory");
        }
        c->steps[c->step_count++] = step;
        sum->collectives[call->collective] += !call->persistent;
    }
    const struct mpi_step *first = &c->steps[c->at++];
    if (first->kind == step.kind && first->persistent == step.persistent &&
        first->root == step.root && first->bytes == step.bytes) {
        return 0;
    }
    return mpi_fail(r, call->line, error,
                    "collective %" PRIu64 " of its communicator is %s%s, root %" PRId64 ", %" PRId64
                    " bytes; rank %u has %s%s, root %" PRId64 ", %" PRId64 " bytes",
                    c->at, f->name, step.persistent ? "_init" : "", step.root, step.bytes,
                    first->first_rank, mpi_collective_forms[first->kind].name,
                    first->persistent ? "_init" : "", first->root, first->bytes);
}

/* Checks that the k-th persistent collective of a communicator is the same at all its members, and
 * adds it. */
static int made(struct mpi_trace *t, const struct mpi_rank *r, const struct mpi_call *call,
                struct mpi_summary *sum, struct goal_error *error)
{
    struct mpi_comm *c = &t->comms[r->numbers[call->first + 1]];
    if (same_step(t, r, call, sum, error) != 0) {
        return -1;
    }
    if (mpi_persistent(r, call) < c->persistent_count) {
        return 0;
    }
    if (!ARRAY_ROOM(c->persistents, c->persistent_count, c->persistent_room, MPI_ROOM)) {
        return goal_fail(error, "no memory");
    }
    c->persistents[c->persistent_count++] =
        (struct mpi_persistent){.step = c->at - 1, .least = UINT64_MAX, .first_rank = r->rank};
    return 0;
}

/* Counts that a rank starts a persistent collective. The members may start several of them in any
 * order, but each one equally often. */
static void started(struct mpi_trace *t, const struct mpi_rank *r, const struct mpi_call *call,
                    struct mpi_summary *sum)
{
    struct mpi_comm *c = &t->comms[r->numbers[call->first + 1]];
    struct mpi_persistent *p = &c->persistents[mpi_persistent(r, call)];
    if (++p->at > p->starts) {
        p->starts++;
        p->first_rank = r->rank;
        sum->collectives[call->collective]++;
    }
}

static int survey_call(struct mpi_trace *t, const struct mpi_rank *r, const struct mpi_call *c,
                       struct mpi_summary *s, struct goal_error *error)
{
    const int64_t *n = r->numbers + c->first;
    switch (c->kind) {
    case MPI_K_SEND:
    case MPI_K_BSEND:
        sends(t, s, n, n[3]);
        return 0;
    case MPI_K_ISEND:
        sends(t, s, n + 1, n[4]);
        return 0;
    case MPI_K_RECV:
        receives(t, r, n, n[3]);
        return 0;
    case MPI_K_IRECV:
        receives(t, r, n + 1, n[4]);
        return 0;
    case MPI_K_SENDRECV:
        if (n[0] != MPI_NONE) {
            sends(t, s, n, n[6]);
        }
        if (n[3] != MPI_NONE) {
            receives(t, r, n + 3, n[6]);
        }
        return 0;
    case MPI_K_OTHER:
    case MPI_K_FAILED:
        count_name(s, c);
        return 0;
    case MPI_K_COLLECTIVE:
        if (c->persistent) {
            started(t, r, c, s);
            return 0;
        }
        return same_step(t, r, c, s, error);
    case MPI_K_COLLECTIVE_INIT:
        return made(t, r, c, s, error);
    default:
        return 0;
    }
}

/* Adds a rank's counts to all communicators that the rank is a member of: those of the groups it
 * has seen. */
static void end_of_rank(struct mpi_trace *t)
{
    for (int i = 0; i < MPI_GROUP_BUCKETS; i++) {
        for (struct mpi_group *g = t->groups[i]; g != NULL; g = g->next) {
            for (uint64_t k = 0; k < g->seen; k++) {
                struct mpi_comm *c = &t->comms[g->comms[k]];
                c->least = c->members_seen == 0 || c->at < c->least ? c->at : c->least;
                c->members_seen++;
                for (uint64_t n = 0; n < c->persistent_count; n++) {
                    struct mpi_persistent *p = &c->persistents[n];
                    p->least = p->at < p->least ? p->at : p->least;
                }
            }
        }
    }
}

static int survey_rank(struct mpi_trace *t, uint32_t rank, const struct mpi_config *c,
                       struct mpi_summary *s, struct goal_error *error)
{
    struct mpi_rank r;
    uint64_t threads = 0;
    int rc = mpi_load(t, rank, &r, error);
    for (uint64_t i = 0; i < r.count && rc == 0; i++) {
        rc = survey_call(t, &r, &r.calls[i], s, error);
        threads = r.calls[i].thread >= threads ? r.calls[i].thread + 1u : threads;
    }
    if (rc == 0) {
        end_of_rank(t);
        s->calls += r.count;
        s->threads = threads > s->threads ? threads : s->threads;
        s->incomplete += r.incomplete;
        s->unfinished += !r.finished;
    }
    if (rc == 0 && !r.finished && !c->partial) {
        rc = goal_fail(error,
                       "%s: ends before MPI_Finalize; --partial takes what all ranks have of it",
                       r.path);
    }
    if (rc == 0 && t->any_tag[rank] && t->one_tag[rank]) {
        rc = goal_fail(error,
                       "%s: receives some messages with any tag and some with one; a trace of "
                       "liballprof does not say which came, so these cannot be told apart",
                       r.path);
    }
    mpi_unload(&r);
    return rc;
}

static int check_comm(const struct mpi_trace *t, const struct mpi_comm *c, struct goal_error *error)
{
    const struct mpi_group *g = c->group;
    if (c->members_seen < g->size) {
        return goal_fail(error,
                         "a communicator of %u ranks, from rank %u on, was made by %u of them",
                         g->size, g->members[0], c->members_seen);
    }
    if (c->least != c->step_count) {
        return goal_fail(error,
                         "a communicator of %u ranks, from rank %u on: one has %" PRIu64
                         " collectives, one %" PRIu64,
                         g->size, g->members[0], c->step_count, c->least);
    }
    for (uint64_t i = 0; i < c->persistent_count; i++) {
        const struct mpi_persistent *p = &c->persistents[i];
        if (p->least != p->starts) {
            return goal_fail(
                error,
                "a communicator of %u ranks, from rank %u on: rank %u starts its %s_init "
                "(persistent collective %" PRIu64 ") %" PRIu64 " times, one %" PRIu64,
                g->size, g->members[0], p->first_rank,
                mpi_collective_forms[c->steps[p->step].kind].name, i + 1, p->starts, p->least);
        }
    }
    return 0;
}

static int deal_tags(struct mpi_trace *t, const struct mpi_config *config, struct goal_error *error)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < t->comm_count; i++) {
        struct mpi_comm *c = &t->comms[i];
        if (!config->partial && check_comm(t, c, error) != 0) {
            return -1;
        }
        c->base = next;
        next += (uint64_t)(c->highest_tag + 1) + c->step_count;
        if (next >= GOAL_ANY) {
            return goal_fail(error,
                             "the communicators need more than the 4294967295 tags of a schedule: "
                             "their highest tags are too high (this one's is %" PRId64 ")",
                             c->highest_tag);
        }
    }
    return 0;
}

int mpi_survey(struct mpi_trace *t, const struct mpi_config *c, struct mpi_summary *s,
               struct goal_error *error)
{
    *s = (struct mpi_summary){0};
    for (uint32_t rank = 0; rank < t->ranks; rank++) {
        if (survey_rank(t, rank, c, s, error) != 0) {
            return -1;
        }
    }
    t->surveyed = true;
    s->communicators = t->comm_count - t->ranks; /* each rank's MPI_COMM_SELF does not count */
    return deal_tags(t, c, error);
}
