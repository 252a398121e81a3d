/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives. A size is taken from the side that counts when the other is MPI_IN_PLACE. */
#include "collective.h"

int MPI_(Bcast)(void *buf, trace_count count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Bcast)(buf, count, type, root, comm);
    if (trace_leave(&c, NAME_OF(Bcast), rc)) {
        trace_collective(&c, "Bcast", NULL, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Reduce)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                 int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Reduce)(out, in, count, type, op, root, comm);
    if (trace_leave(&c, NAME_OF(Reduce), rc)) {
        trace_collective(&c, "Reduce", NULL, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Allreduce)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Allreduce)(out, in, count, type, op, comm);
    if (trace_leave(&c, NAME_OF(Allreduce), rc)) {
        trace_collective(&c, "Allreduce", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Scan)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Scan)(out, in, count, type, op, comm);
    if (trace_leave(&c, NAME_OF(Scan), rc)) {
        trace_collective(&c, "Scan", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Exscan)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Exscan)(out, in, count, type, op, comm);
    if (trace_leave(&c, NAME_OF(Exscan), rc)) {
        trace_collective(&c, "Exscan", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Reduce_scatter_block)(const void *out, void *in, trace_count count, MPI_Datatype type,
                               MPI_Op op, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Reduce_scatter_block)(out, in, count, type, op, comm);
    if (trace_leave(&c, NAME_OF(Reduce_scatter_block), rc)) {
        trace_collective(&c, "Reduce_scatter_block", NULL, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Gather)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                 trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Gather)(out, out_count, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, NAME_OF(Gather), rc)) {
        trace_collective(&c, "Gather", NULL, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(in_count, in_type)
                                                   : trace_bytes(out_count, out_type));
    }
    return rc;
}

int MPI_(Scatter)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                  trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Scatter)(out, out_count, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, NAME_OF(Scatter), rc)) {
        trace_collective(&c, "Scatter", NULL, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(out_count, out_type)
                                                   : trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Allgather)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                    trace_count in_count, MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Allgather)(out, out_count, out_type, in, in_count, in_type, comm);
    if (trace_leave(&c, NAME_OF(Allgather), rc)) {
        trace_collective(&c, "Allgather", NULL, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Alltoall)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                   trace_count in_count, MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Alltoall)(out, out_count, out_type, in, in_count, in_type, comm);
    if (trace_leave(&c, NAME_OF(Alltoall), rc)) {
        trace_collective(&c, "Alltoall", NULL, comm, TRACE_NO_ROOT, trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Gatherv)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                  const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,
                  int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Gatherv)(out, out_count, out_type, in, in_counts, at, in_type, root, comm);
    if (trace_leave(&c, NAME_OF(Gatherv), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Gatherv", NULL, comm, root,
                         here ? 0 : trace_bytes(out_count, out_type),
                         here ? trace_counts(in_counts) : TRACE_NO_COUNTS, in_type);
    }
    return rc;
}

int MPI_(Scatterv)(const void *out, const trace_count out_counts[], const trace_at at[],
                   MPI_Datatype out_type, void *in, trace_count in_count, MPI_Datatype in_type,
                   int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Scatterv)(out, out_counts, at, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, NAME_OF(Scatterv), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Scatterv", NULL, comm, root,
                         here ? 0 : trace_bytes(in_count, in_type),
                         here ? trace_counts(out_counts) : TRACE_NO_COUNTS, out_type);
    }
    return rc;
}

int MPI_(Allgatherv)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                     const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,
                     MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Allgatherv)(out, out_count, out_type, in, in_counts, at, in_type, comm);
    if (trace_leave(&c, NAME_OF(Allgatherv), rc)) {
        trace_one_vector(&c, "Allgatherv", NULL, comm, TRACE_NO_ROOT, 0, trace_counts(in_counts),
                         in_type);
    }
    return rc;
}

int MPI_(Reduce_scatter)(const void *out, void *in, const trace_count counts[], MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Reduce_scatter)(out, in, counts, type, op, comm);
    if (trace_leave(&c, NAME_OF(Reduce_scatter), rc)) {
        trace_one_vector(&c, "Reduce_scatter", NULL, comm, TRACE_NO_ROOT, 0, trace_counts(counts),
                         type);
    }
    return rc;
}

int MPI_(Alltoallv)(const void *out, const trace_count out_counts[], const trace_at out_at[],
                    MPI_Datatype out_type, void *in, const trace_count in_counts[],
                    const trace_at in_at[], MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_(Alltoallv)(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm);
    if (trace_leave(&c, NAME_OF(Alltoallv), rc)) {
        trace_two_vectors(&c, "Alltoallv", NULL, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), &out_type, &in_type, 0});
    }
    return rc;
}

int MPI_(Alltoallw)(const void *out, const trace_count out_counts[], const trace_at out_at[],
                    const MPI_Datatype out_types[], void *in, const trace_count in_counts[],
                    const trace_at in_at[], const MPI_Datatype in_types[], MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_(Alltoallw)(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm);
    if (trace_leave(&c, NAME_OF(Alltoallw), rc)) {
        trace_two_vectors(&c, "Alltoallv", NULL, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), out_types, in_types, 1});
    }
    return rc;
}
