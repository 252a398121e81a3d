/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking collectives; their lines have a request. */
#include "collective.h"

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ibarrier(comm, request);
    if (trace_leave(&c, "MPI_Ibarrier", rc)) {
        trace_collective(&c, "Ibarrier", request, comm, TRACE_NO_ROOT, TRACE_NO_BYTES);
    }
    return rc;
}

int MPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ibcast(buf, count, type, root, comm, request);
    if (trace_leave(&c, "MPI_Ibcast", rc)) {
        trace_collective(&c, "Ibcast", request, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Ireduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ireduce(out, in, count, type, op, root, comm, request);
    if (trace_leave(&c, "MPI_Ireduce", rc)) {
        trace_collective(&c, "Ireduce", request, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Iallreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iallreduce(out, in, count, type, op, comm, request);
    if (trace_leave(&c, "MPI_Iallreduce", rc)) {
        trace_collective(&c, "Iallreduce", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Iscan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iscan(out, in, count, type, op, comm, request);
    if (trace_leave(&c, "MPI_Iscan", rc)) {
        trace_collective(&c, "Iscan", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Iexscan(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iexscan(out, in, count, type, op, comm, request);
    if (trace_leave(&c, "MPI_Iexscan", rc)) {
        trace_collective(&c, "Iexscan", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_Ireduce_scatter_block(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ireduce_scatter_block(out, in, count, type, op, comm, request);
    if (trace_leave(&c, "MPI_Ireduce_scatter_block", rc)) {
        trace_collective(&c, "Ireduce_scatter_block", request, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int MPI_Igather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                MPI_Datatype in_type, int root, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Igather(out, out_count, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, "MPI_Igather", rc)) {
        trace_collective(&c, "Igather", request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(in_count, in_type)
                                                   : trace_bytes(out_count, out_type));
    }
    return rc;
}

int MPI_Iscatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                 MPI_Datatype in_type, int root, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iscatter(out, out_count, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, "MPI_Iscatter", rc)) {
        trace_collective(&c, "Iscatter", request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(out_count, out_type)
                                                   : trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Iallgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                   MPI_Datatype in_type, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iallgather(out, out_count, out_type, in, in_count, in_type, comm, request);
    if (trace_leave(&c, "MPI_Iallgather", rc)) {
        trace_collective(&c, "Iallgather", request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Ialltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                  MPI_Datatype in_type, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ialltoall(out, out_count, out_type, in, in_count, in_type, comm, request);
    if (trace_leave(&c, "MPI_Ialltoall", rc)) {
        trace_collective(&c, "Ialltoall", request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_Igatherv(const void *out, int out_count, MPI_Datatype out_type, void *in,
                 const int in_counts[], const int at[], MPI_Datatype in_type, int root,
                 MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_Igatherv(out, out_count, out_type, in, in_counts, at, in_type, root, comm, request);
    if (trace_leave(&c, "MPI_Igatherv", rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Igatherv", request, comm, root,
                         here ? 0 : trace_bytes(out_count, out_type), here ? in_counts : NULL,
                         in_type);
    }
    return rc;
}

int MPI_Iscatterv(const void *out, const int out_counts[], const int at[], MPI_Datatype out_type,
                  void *in, int in_count, MPI_Datatype in_type, int root, MPI_Comm comm,
                  MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_Iscatterv(out, out_counts, at, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, "MPI_Iscatterv", rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Iscatterv", request, comm, root,
                         here ? 0 : trace_bytes(in_count, in_type), here ? out_counts : NULL,
                         out_type);
    }
    return rc;
}

int MPI_Iallgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in,
                    const int in_counts[], const int at[], MPI_Datatype in_type, MPI_Comm comm,
                    MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Iallgatherv(out, out_count, out_type, in, in_counts, at, in_type, comm, request);
    if (trace_leave(&c, "MPI_Iallgatherv", rc)) {
        trace_one_vector(&c, "Iallgatherv", request, comm, TRACE_NO_ROOT, 0, in_counts, in_type);
    }
    return rc;
}

int MPI_Ireduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ireduce_scatter(out, in, counts, type, op, comm, request);
    if (trace_leave(&c, "MPI_Ireduce_scatter", rc)) {
        trace_one_vector(&c, "Ireduce_scatter", request, comm, TRACE_NO_ROOT, 0, counts, type);
    }
    return rc;
}

int MPI_Ialltoallv(const void *out, const int out_counts[], const int out_at[],
                   MPI_Datatype out_type, void *in, const int in_counts[], const int in_at[],
                   MPI_Datatype in_type, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ialltoallv(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm,
                             request);
    if (trace_leave(&c, "MPI_Ialltoallv", rc)) {
        trace_two_vectors(&c, "Ialltoallv", request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, out_counts, in_counts,
                                                  &out_type, &in_type, 0});
    }
    return rc;
}

int MPI_Ialltoallw(const void *out, const int out_counts[], const int out_at[],
                   const MPI_Datatype out_types[], void *in, const int in_counts[],
                   const int in_at[], const MPI_Datatype in_types[], MPI_Comm comm,
                   MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Ialltoallw(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types,
                             comm, request);
    if (trace_leave(&c, "MPI_Ialltoallw", rc)) {
        trace_two_vectors(&c, "Ialltoallv", request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, out_counts, in_counts,
                                                  out_types, in_types, 1});
    }
    return rc;
}
