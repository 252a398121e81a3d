/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives. A size is taken from the side that counts when the other is MPI_IN_PLACE. */
#include "collective.h"

int MPI_Barrier(MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Barrier(comm);
    if (trace_leave(&c, "MPI_Barrier", rc)) {
        trace_collective(&c, "Barrier", NULL, comm, TRACE_NO_ROOT, TRACE_NO_BYTES);
    }
    return rc;
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Bcast(buf, count, type, root, comm);
    if (trace_leave(&c, "MPI_Bcast", rc)) {
        trace_collective(&c, "Bcast", NULL, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Reduce(out, in, count, type, op, root, comm);
    if (trace_leave(&c, "MPI_Reduce", rc)) {
        trace_collective(&c, "Reduce", NULL, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Allreduce(out, in, count, type, op, comm);
    if (trace_leave(&c, "MPI_Allreduce", rc)) {
        trace_collective(&c, "Allreduce", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Scan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Scan(out, in, count, type, op, comm);
    if (trace_leave(&c, "MPI_Scan", rc)) {
        trace_collective(&c, "Scan", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Exscan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Exscan(out, in, count, type, op, comm);
    if (trace_leave(&c, "MPI_Exscan", rc)) {
        trace_collective(&c, "Exscan", NULL, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Reduce_scatter_block(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Reduce_scatter_block(out, in, count, type, op, comm);
    if (trace_leave(&c, "MPI_Reduce_scatter_block", rc)) {
        trace_collective(&c, "Reduce_scatter_block", NULL, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
               MPI_Datatype in_type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, "MPI_Gather", rc)) {
        trace_collective(&c, "Gather", NULL, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(in_count, in_type)
                                                   : trace_bytes(out_count, out_type));
    }
    return rc;
}

int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, "MPI_Scatter", rc)) {
        trace_collective(&c, "Scatter", NULL, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(out_count, out_type)
                                                   : trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm);
    if (trace_leave(&c, "MPI_Allgather", rc)) {
        trace_collective(&c, "Allgather", NULL, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                 MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm);
    if (trace_leave(&c, "MPI_Alltoall", rc)) {
        trace_collective(&c, "Alltoall", NULL, comm, TRACE_NO_ROOT, trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in,
                const int in_counts[], const int at[], MPI_Datatype in_type, int root,
                MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Gatherv(out, out_count, out_type, in, in_counts, at, in_type, root, comm);
    if (trace_leave(&c, "MPI_Gatherv", rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Gatherv", NULL, comm, root,
                         here ? 0 : trace_bytes(out_count, out_type), here ? in_counts : NULL,
                         in_type);
    }
    return rc;
}

int MPI_Scatterv(const void *out, const int out_counts[], const int at[], MPI_Datatype out_type,
                 void *in, int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Scatterv(out, out_counts, at, out_type, in, in_count, in_type, root, comm);
    if (trace_leave(&c, "MPI_Scatterv", rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Scatterv", NULL, comm, root,
                         here ? 0 : trace_bytes(in_count, in_type), here ? out_counts : NULL,
                         out_type);
    }
    return rc;
}

int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in,
                   const int in_counts[], const int at[], MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Allgatherv(out, out_count, out_type, in, in_counts, at, in_type, comm);
    if (trace_leave(&c, "MPI_Allgatherv", rc)) {
        trace_one_vector(&c, "Allgatherv", NULL, comm, TRACE_NO_ROOT, 0, in_counts, in_type);
    }
    return rc;
}

int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Reduce_scatter(out, in, counts, type, op, comm);
    if (trace_leave(&c, "MPI_Reduce_scatter", rc)) {
        trace_one_vector(&c, "Reduce_scatter", NULL, comm, TRACE_NO_ROOT, 0, counts, type);
    }
    return rc;
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_at[],
                  MPI_Datatype out_type, void *in, const int in_counts[], const int in_at[],
                  MPI_Datatype in_type, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Alltoallv(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm);
    if (trace_leave(&c, "MPI_Alltoallv", rc)) {
        trace_two_vectors(&c, "Alltoallv", NULL, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, out_counts, in_counts,
                                                  &out_type, &in_type, 0});
    }
    return rc;
}

int MPI_Alltoallw(const void *out, const int out_counts[], const int out_at[],
                  const MPI_Datatype out_types[], void *in, const int in_counts[],
                  const int in_at[], const MPI_Datatype in_types[], MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_Alltoallw(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm);
    if (trace_leave(&c, "MPI_Alltoallw", rc)) {
        trace_two_vectors(&c, "Alltoallv", NULL, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, out_counts, in_counts,
                                                  out_types, in_types, 1});
    }
    return rc;
}
