/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking collectives; their lines have a request. */
#include "collective.h"

int MPI_(Ibcast)(void *buf, trace_count count, MPI_Datatype type, int root, MPI_Comm comm,
                 MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ibcast)(buf, count, type, root, comm, request);
    if (trace_leave(&c, NAME_OF(Ibcast), rc)) {
        trace_collective(&c, "Ibcast", request, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Ireduce)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ireduce)(out, in, count, type, op, root, comm, request);
    if (trace_leave(&c, NAME_OF(Ireduce), rc)) {
        trace_collective(&c, "Ireduce", request, comm, root, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Iallreduce)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Iallreduce)(out, in, count, type, op, comm, request);
    if (trace_leave(&c, NAME_OF(Iallreduce), rc)) {
        trace_collective(&c, "Iallreduce", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Iscan)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Iscan)(out, in, count, type, op, comm, request);
    if (trace_leave(&c, NAME_OF(Iscan), rc)) {
        trace_collective(&c, "Iscan", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Iexscan)(const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Iexscan)(out, in, count, type, op, comm, request);
    if (trace_leave(&c, NAME_OF(Iexscan), rc)) {
        trace_collective(&c, "Iexscan", request, comm, TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Ireduce_scatter_block)(const void *out, void *in, trace_count count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ireduce_scatter_block)(out, in, count, type, op, comm, request);
    if (trace_leave(&c, NAME_OF(Ireduce_scatter_block), rc)) {
        trace_collective(&c, "Ireduce_scatter_block", request, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int MPI_(Igather)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                  trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm,
                  MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Igather)(out, out_count, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, NAME_OF(Igather), rc)) {
        trace_collective(&c, "Igather", request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(in_count, in_type)
                                                   : trace_bytes(out_count, out_type));
    }
    return rc;
}

int MPI_(Iscatter)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                   trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm,
                   MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Iscatter)(out, out_count, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, NAME_OF(Iscatter), rc)) {
        trace_collective(&c, "Iscatter", request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(out_count, out_type)
                                                   : trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Iallgather)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                     trace_count in_count, MPI_Datatype in_type, MPI_Comm comm,
                     MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Iallgather)(out, out_count, out_type, in, in_count, in_type, comm, request);
    if (trace_leave(&c, NAME_OF(Iallgather), rc)) {
        trace_collective(&c, "Iallgather", request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Ialltoall)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                    trace_count in_count, MPI_Datatype in_type, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ialltoall)(out, out_count, out_type, in, in_count, in_type, comm, request);
    if (trace_leave(&c, NAME_OF(Ialltoall), rc)) {
        trace_collective(&c, "Ialltoall", request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int MPI_(Igatherv)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                   const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,
                   int root, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_(Igatherv)(out, out_count, out_type, in, in_counts, at, in_type, root, comm, request);
    if (trace_leave(&c, NAME_OF(Igatherv), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Igatherv", request, comm, root,
                         here ? 0 : trace_bytes(out_count, out_type),
                         here ? trace_counts(in_counts) : TRACE_NO_COUNTS, in_type);
    }
    return rc;
}

int MPI_(Iscatterv)(const void *out, const trace_count out_counts[], const trace_at at[],
                    MPI_Datatype out_type, void *in, trace_count in_count, MPI_Datatype in_type,
                    int root, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_(Iscatterv)(out, out_counts, at, out_type, in, in_count, in_type, root, comm, request);
    if (trace_leave(&c, NAME_OF(Iscatterv), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, "Iscatterv", request, comm, root,
                         here ? 0 : trace_bytes(in_count, in_type),
                         here ? trace_counts(out_counts) : TRACE_NO_COUNTS, out_type);
    }
    return rc;
}

int MPI_(Iallgatherv)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                      const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,
                      MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc =
        PMPI_(Iallgatherv)(out, out_count, out_type, in, in_counts, at, in_type, comm, request);
    if (trace_leave(&c, NAME_OF(Iallgatherv), rc)) {
        trace_one_vector(&c, "Iallgatherv", request, comm, TRACE_NO_ROOT, 0,
                         trace_counts(in_counts), in_type);
    }
    return rc;
}

int MPI_(Ireduce_scatter)(const void *out, void *in, const trace_count counts[], MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ireduce_scatter)(out, in, counts, type, op, comm, request);
    if (trace_leave(&c, NAME_OF(Ireduce_scatter), rc)) {
        trace_one_vector(&c, "Ireduce_scatter", request, comm, TRACE_NO_ROOT, 0,
                         trace_counts(counts), type);
    }
    return rc;
}

int MPI_(Ialltoallv)(const void *out, const trace_count out_counts[], const trace_at out_at[],
                     MPI_Datatype out_type, void *in, const trace_count in_counts[],
                     const trace_at in_at[], MPI_Datatype in_type, MPI_Comm comm,
                     MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ialltoallv)(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type,
                               comm, request);
    if (trace_leave(&c, NAME_OF(Ialltoallv), rc)) {
        trace_two_vectors(&c, "Ialltoallv", request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), &out_type, &in_type, 0});
    }
    return rc;
}

int MPI_(Ialltoallw)(const void *out, const trace_count out_counts[], const trace_at out_at[],
                     const MPI_Datatype out_types[], void *in, const trace_count in_counts[],
                     const trace_at in_at[], const MPI_Datatype in_types[], MPI_Comm comm,
                     MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Ialltoallw)(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types,
                               comm, request);
    if (trace_leave(&c, NAME_OF(Ialltoallw), rc)) {
        trace_two_vectors(&c, "Ialltoallv", request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), out_types, in_types, 1});
    }
    return rc;
}
