/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the lines of collectives. A line has the communicator, the root if there is one, and the
 * bytes that one rank contributes or gets, or, of a vector collective, the bytes of each rank.
 * Sizes are taken from the buffer that MPI still reads when the other one is MPI_IN_PLACE. Lines of
 * nonblocking and persistent collectives have the request first.
 */
#include "collective.h"

bool trace_is_root(MPI_Comm comm, int root)
{
    return root == MPI_ROOT || root == trace_comm_rank(comm);
}

/* Begins the line of a collective; trace_end() ends it. */
static void collective_begin(const struct trace_call *c, MPI_Comm comm, int root)
{
    int64_t number = 0, known = trace_comm(comm);
    if (c->request != NULL) {
        trace_lock();
        struct trace_request *r = trace_add_request(*c->request, false);
        r->persistent = c->persistent;
        r->active = !c->persistent;
        number = r->number;
        trace_unlock();
    }
    trace_begin(c, c->line);
    if (c->request != NULL) {
        trace_number(number);
    }
    trace_number(known);
    if (root != TRACE_NO_ROOT) {
        trace_number(root == MPI_PROC_NULL || root == MPI_ROOT ? TRACE_NULL : root);
    }
}

void trace_collective(const struct trace_call *c, MPI_Comm comm, int root, int64_t bytes)
{
    collective_begin(c, comm, root);
    if (bytes != TRACE_NO_BYTES) {
        trace_number(bytes);
    }
    trace_end();
}

/* Writes the bytes for each rank; `step` is 1 if each rank has a type of its own, 0 if all have the
 * same. */
static void put_counts(int ranks, struct trace_counts counts, const MPI_Datatype *types, int step)
{
    for (int i = 0; i < ranks; i++) {
        int64_t count =
            counts.large ? ((const MPI_Count *)counts.list)[i] : ((const int *)counts.list)[i];
        trace_number(trace_bytes(count, types[i * step]));
    }
}

/* Writes the line of a collective with one vector of counts: one that only the root has, or one
 * that all ranks have. */
void trace_one_vector(const struct trace_call *c, MPI_Comm comm, int root, int64_t own,
                      struct trace_counts counts, MPI_Datatype type)
{
    int ranks = counts.list != NULL ? trace_comm_size(comm) : 0;
    collective_begin(c, comm, root);
    if (root != TRACE_NO_ROOT) {
        trace_number(own);
    }
    put_counts(ranks, counts, &type, 0);
    trace_end();
}

void trace_two_vectors(const struct trace_call *c, MPI_Comm comm, const struct trace_vectors *v)
{
    int ranks = trace_comm_size(comm);
    collective_begin(c, comm, TRACE_NO_ROOT);
    put_counts(ranks, v->in_place ? v->in_counts : v->out_counts,
               v->in_place ? v->in_types : v->out_types, v->step);
    put_counts(ranks, v->in_counts, v->in_types, v->step);
    trace_end();
}
