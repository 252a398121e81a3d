/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives and communicators of a recording. */
#include "trace.h"

#include <stdlib.h>

const struct mpi_collective_form mpi_collective_forms[MPI_COLLECTIVES] = {
    [MPI_BARRIER] = {"Barrier", false, 0, 0, false},
    [MPI_BCAST] = {"Bcast", true, 1, 0, false},
    [MPI_REDUCE] = {"Reduce", true, 1, 0, false},
    [MPI_ALLREDUCE] = {"Allreduce", false, 1, 0, false},
    [MPI_SCAN] = {"Scan", false, 1, 0, false},
    [MPI_EXSCAN] = {"Exscan", false, 1, 0, false},
    [MPI_REDUCE_SCATTER_BLOCK] = {"Reduce_scatter_block", false, 1, 0, false},
    [MPI_GATHER] = {"Gather", true, 1, 0, false},
    [MPI_SCATTER] = {"Scatter", true, 1, 0, false},
    [MPI_ALLGATHER] = {"Allgather", false, 1, 0, false},
    [MPI_ALLTOALL] = {"Alltoall", false, 1, 0, false},
    [MPI_GATHERV] = {"Gatherv", true, 1, 1, true},
    [MPI_SCATTERV] = {"Scatterv", true, 1, 1, true},
    [MPI_ALLGATHERV] = {"Allgatherv", false, 0, 1, false},
    [MPI_REDUCE_SCATTER] = {"Reduce_scatter", false, 0, 1, false},
    [MPI_ALLTOALLV] = {"Alltoallv", false, 0, 2, false},
};

static bool same_name(const char *word, size_t length, const char *name, bool nonblocking)
{
    if (!nonblocking) {
        return strlen(name) == length && memcmp(word, name, length) == 0;
    }
    return strlen(name) + 1 == length && word[0] == 'I' && word[1] == (name[0] | 0x20) &&
           memcmp(word + 2, name + 1, length - 2) == 0;
}

bool mpi_collective_named(const char *word, size_t length, enum mpi_collective *collective,
                          bool *nonblocking)
{
    for (int i = 0; i < 2 * MPI_COLLECTIVES; i++) {
        *nonblocking = i >= MPI_COLLECTIVES;
        *collective = (enum mpi_collective)(i % MPI_COLLECTIVES);
        if (same_name(word, length, mpi_collective_forms[*collective].name, *nonblocking)) {
            return true;
        }
    }
    return false;
}

void mpi_shape(const struct mpi_rank *r, const struct mpi_call *c, uint32_t members,
               struct mpi_shape *shape)
{
    const struct mpi_collective_form *f = &mpi_collective_forms[c->collective];
    const int64_t *n = r->numbers + c->first, *end = n + c->count - c->persistent;
    *shape = (struct mpi_shape){.request = MPI_NONE, .root = MPI_NONE, .members = members};
    if (c->nonblocking) {
        shape->request = *n++;
    }
    shape->comm = *n++;
    if (f->root) {
        shape->root = *n++;
    }
    if (f->bytes > 0) {
        shape->bytes = *n++;
    }
    if (n < end) {
        shape->out = n;
        shape->in = f->vectors == 2 ? n + members : n;
    }
}

/* ---- Communicators ---- */

void mpi_forget_seen(struct mpi_trace *t)
{
    for (int i = 0; i < MPI_GROUP_BUCKETS; i++) {
        for (struct mpi_group *g = t->groups[i]; g != NULL; g = g->next) {
            g->seen = 0;
        }
    }
    for (uint64_t i = 0; i < t->comm_count; i++) {
        struct mpi_comm *c = &t->comms[i];
        c->at = c->persistents_seen = 0;
        for (uint64_t k = 0; k < c->persistent_count; k++) {
            c->persistents[k].at = 0;
        }
    }
}

static struct mpi_group *find_group(struct mpi_trace *t, const uint32_t *members, uint32_t size,
                                    uint32_t split)
{
    uint64_t hash = split;
    for (uint32_t i = 0; i < size; i++) {
        hash = (hash ^ members[i]) * 0x9e3779b97f4a7c15u;
    }
    struct mpi_group **bucket = &t->groups[(hash >> 40) % MPI_GROUP_BUCKETS];
    for (struct mpi_group *g = *bucket; g != NULL; g = g->next) {
        if (g->size == size && g->split == split &&
            memcmp(g->members, members, sizeof(*members) * size) == 0) {
            return g;
        }
    }
    struct mpi_group *g = calloc(1, sizeof(*g));
    uint32_t *copy = malloc(sizeof(*members) * ((size_t)size + 1));
    if (g == NULL || copy == NULL) {
        free(g);
        free(copy);
        return NULL;
    }
    memcpy(copy, members, sizeof(*members) * size);
    *g = (struct mpi_group){.next = *bucket, .members = copy, .size = size, .split = split};
    *bucket = g;
    return g;
}

int64_t mpi_next_comm(struct mpi_trace *t, const uint32_t *members, uint32_t size, uint32_t split,
                      struct goal_error *error)
{
    struct mpi_group *g = find_group(t, members, size, split);
    if (g == NULL) {
        return goal_fail(error, "no memory");
    }
    if (g->seen == g->comm_count) {
        if (t->surveyed) {
            return goal_fail(error, "the recording changed while it was read");
        }
        if (!ARRAY_ROOM(g->comms, g->comm_count, g->comm_room, MPI_ROOM) ||
            !ARRAY_ROOM(t->comms, t->comm_count, t->comm_room, MPI_ROOM)) {
            return goal_fail(error, "no memory");
        }
        t->comms[t->comm_count] = (struct mpi_comm){.group = g, .highest_tag = -1};
        g->comms[g->comm_count++] = (uint32_t)t->comm_count++;
    }
    return g->comms[g->seen++];
}
