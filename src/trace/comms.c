/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: each carries its number and sizes as an MPI attribute, which MPI deletes with the
 * communicator and does not copy when it duplicates one. MPI_COMM_WORLD has number 0, MPI_COMM_SELF
 * 1.
 */
#include "trace.h"

#include <stdlib.h>

struct known {
    int64_t number;
    int size; /* size of the remote group, or of the only one */
    int rank;
};

static int key = MPI_KEYVAL_INVALID;
static int64_t numbers;

static int forget(MPI_Comm comm, int keyval, void *value, void *extra)
{
    free(value);
    return MPI_SUCCESS;
}

static const struct known *find(MPI_Comm comm)
{
    struct known *k;
    int found = 0;
    if (comm == MPI_COMM_NULL) {
        return NULL;
    }
    PMPI_Comm_get_attr(comm, key, &k, &found);
    return found ? k : NULL;
}

int64_t trace_comm(MPI_Comm comm)
{
    const struct known *k = find(comm);
    return k != NULL ? k->number : TRACE_NULL;
}

int trace_comm_size(MPI_Comm comm)
{
    const struct known *k = find(comm);
    return k != NULL ? k->size : 0;
}

int trace_comm_rank(MPI_Comm comm)
{
    const struct known *k = find(comm);
    return k != NULL ? k->rank : TRACE_NULL;
}

static void attach(MPI_Comm comm, int64_t number)
{
    struct known *k = malloc(sizeof(*k));
    int between = 0;
    if (k == NULL) {
        return;
    }
    k->number = number;
    PMPI_Comm_test_inter(comm, &between);
    PMPI_Comm_rank(comm, &k->rank);
    if (between) {
        PMPI_Comm_remote_size(comm, &k->size);
    } else {
        PMPI_Comm_size(comm, &k->size);
    }
    PMPI_Comm_set_attr(comm, key, k);
}

void trace_comms_open(void)
{
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
    attach(MPI_COMM_WORLD, numbers++);
    attach(MPI_COMM_SELF, numbers++);
}

/* ---- Lines ---- */

/* Returns the ranks in MPI_COMM_WORLD of a group, and frees the group. A process outside
 * MPI_COMM_WORLD has -2. NULL if memory is short. */
static int *world_ranks(MPI_Group group, int *count)
{
    MPI_Group world;
    PMPI_Group_size(group, count);
    int *own = malloc(sizeof(*own) * ((size_t)*count + 1));
    int *ranks = calloc((size_t)*count + 1, sizeof(*ranks));
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; own != NULL && i < *count; i++) {
        own[i] = i;
    }
    if (own != NULL && ranks != NULL) {
        PMPI_Group_translate_ranks(group, *count, own, world, ranks);
    }
    for (int i = 0; ranks != NULL && i < *count; i++) {
        ranks[i] = ranks[i] == MPI_UNDEFINED ? TRACE_NULL : ranks[i];
    }
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    free(own);
    return ranks;
}

static void put_ranks(const int *ranks, int count)
{
    for (int i = 0; ranks != NULL && i < count; i++) {
        trace_number(ranks[i]);
    }
}

static void write_members(const struct trace_call *c, MPI_Comm comm, int64_t number)
{
    MPI_Group group;
    int between = 0, count, others = 0;
    int *ranks, *remote = NULL;
    PMPI_Comm_test_inter(comm, &between);
    PMPI_Comm_group(comm, &group);
    ranks = world_ranks(group, &count);
    if (between) {
        PMPI_Comm_remote_group(comm, &group);
        remote = world_ranks(group, &others);
    }
    trace_begin(c, between ? "Intercomm" : "Comm");
    trace_number(number);
    if (between) {
        trace_number(count);
    }
    put_ranks(ranks, count);
    put_ranks(remote, others);
    trace_end();
    free(ranks);
    free(remote);
}

static int64_t next_number(void)
{
    trace_lock();
    int64_t number = numbers++;
    trace_unlock();
    return number;
}

void trace_new_comm(const struct trace_call *c, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL) {
        return;
    }
    int64_t number = next_number();
    attach(comm, number);
    write_members(c, comm, number);
}

/* The line is written now, so that all ranks write the communicators with the same members in the
 * same order. The attribute is set when the request has completed: MPI forbids to use the
 * communicator before. */
int64_t trace_promise_comm(const struct trace_call *c, MPI_Comm parent)
{
    int64_t number = next_number();
    write_members(c, parent, number);
    return number;
}

void trace_promised_comm(MPI_Comm comm, int64_t number)
{
    attach(comm, number);
}
