/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives with a request, which their lines begin with: nonblocking ones and, when this file
 * is compiled again with TRACE_PERSISTENT, those that are made once and started many times.
 * They differ in names and in an info.
 */
#include "collective.h"
#include "counted.h"

#ifdef TRACE_PERSISTENT
#define CALL(nonblocking, persistent) MPI_(persistent)
#define PCALL(nonblocking, persistent) PMPI_(persistent)
#define NAME(nonblocking, persistent) NAME_OF(persistent)
#define LINE(nonblocking, persistent) #persistent
#define INFO_PARAMETER , MPI_Info info
#define INFO , info
enum { PERSISTENT = true };
#else
#define CALL(nonblocking, persistent) MPI_(nonblocking)
#define PCALL(nonblocking, persistent) PMPI_(nonblocking)
#define NAME(nonblocking, persistent) NAME_OF(nonblocking)
#define LINE(nonblocking, persistent) #nonblocking
#define INFO_PARAMETER
#define INFO
enum { PERSISTENT = false };
#endif

static void enter(struct trace_call *c)
{
    trace_enter(c);
    c->persistent = PERSISTENT;
}

#ifndef TRACE_LARGE /* counts nothing */
int CALL(Ibarrier, Barrier_init)(MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ibarrier, Barrier_init)(comm INFO, request);
    if (trace_leave(&c, NAME(Ibarrier, Barrier_init), rc)) {
        trace_collective(&c, LINE(Ibarrier, Barrier_init), request, comm, TRACE_NO_ROOT,
                         TRACE_NO_BYTES);
    }
    return rc;
}
#endif

int CALL(Ibcast, Bcast_init)(void *buf, trace_count count, MPI_Datatype type, int root,
                             MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ibcast, Bcast_init)(buf, count, type, root, comm INFO, request);
    if (trace_leave(&c, NAME(Ibcast, Bcast_init), rc)) {
        trace_collective(&c, LINE(Ibcast, Bcast_init), request, comm, root,
                         trace_bytes(count, type));
    }
    return rc;
}

int CALL(Ireduce, Reduce_init)(const void *out, void *in, trace_count count, MPI_Datatype type,
                               MPI_Op op, int root, MPI_Comm comm INFO_PARAMETER,
                               MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ireduce, Reduce_init)(out, in, count, type, op, root, comm INFO, request);
    if (trace_leave(&c, NAME(Ireduce, Reduce_init), rc)) {
        trace_collective(&c, LINE(Ireduce, Reduce_init), request, comm, root,
                         trace_bytes(count, type));
    }
    return rc;
}

int CALL(Iallreduce, Allreduce_init)(const void *out, void *in, trace_count count,
                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm INFO_PARAMETER,
                                     MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iallreduce, Allreduce_init)(out, in, count, type, op, comm INFO, request);
    if (trace_leave(&c, NAME(Iallreduce, Allreduce_init), rc)) {
        trace_collective(&c, LINE(Iallreduce, Allreduce_init), request, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int CALL(Iscan, Scan_init)(const void *out, void *in, trace_count count, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iscan, Scan_init)(out, in, count, type, op, comm INFO, request);
    if (trace_leave(&c, NAME(Iscan, Scan_init), rc)) {
        trace_collective(&c, LINE(Iscan, Scan_init), request, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int CALL(Iexscan, Exscan_init)(const void *out, void *in, trace_count count, MPI_Datatype type,
                               MPI_Op op, MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iexscan, Exscan_init)(out, in, count, type, op, comm INFO, request);
    if (trace_leave(&c, NAME(Iexscan, Exscan_init), rc)) {
        trace_collective(&c, LINE(Iexscan, Exscan_init), request, comm, TRACE_NO_ROOT,
                         trace_bytes(count, type));
    }
    return rc;
}

int CALL(Ireduce_scatter_block,
         Reduce_scatter_block_init)(const void *out, void *in, trace_count count, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ireduce_scatter_block, Reduce_scatter_block_init)(out, in, count, type, op,
                                                                     comm INFO, request);
    if (trace_leave(&c, NAME(Ireduce_scatter_block, Reduce_scatter_block_init), rc)) {
        trace_collective(&c, LINE(Ireduce_scatter_block, Reduce_scatter_block_init), request, comm,
                         TRACE_NO_ROOT, trace_bytes(count, type));
    }
    return rc;
}

int CALL(Igather, Gather_init)(const void *out, trace_count out_count, MPI_Datatype out_type,
                               void *in, trace_count in_count, MPI_Datatype in_type, int root,
                               MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Igather, Gather_init)(out, out_count, out_type, in, in_count, in_type, root,
                                         comm INFO, request);
    if (trace_leave(&c, NAME(Igather, Gather_init), rc)) {
        trace_collective(&c, LINE(Igather, Gather_init), request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(in_count, in_type)
                                                   : trace_bytes(out_count, out_type));
    }
    return rc;
}

int CALL(Iscatter, Scatter_init)(const void *out, trace_count out_count, MPI_Datatype out_type,
                                 void *in, trace_count in_count, MPI_Datatype in_type, int root,
                                 MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iscatter, Scatter_init)(out, out_count, out_type, in, in_count, in_type, root,
                                           comm INFO, request);
    if (trace_leave(&c, NAME(Iscatter, Scatter_init), rc)) {
        trace_collective(&c, LINE(Iscatter, Scatter_init), request, comm, root,
                         trace_is_root(comm, root) ? trace_bytes(out_count, out_type)
                                                   : trace_bytes(in_count, in_type));
    }
    return rc;
}

int CALL(Iallgather, Allgather_init)(const void *out, trace_count out_count, MPI_Datatype out_type,
                                     void *in, trace_count in_count, MPI_Datatype in_type,
                                     MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iallgather, Allgather_init)(out, out_count, out_type, in, in_count, in_type,
                                               comm INFO, request);
    if (trace_leave(&c, NAME(Iallgather, Allgather_init), rc)) {
        trace_collective(&c, LINE(Iallgather, Allgather_init), request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int CALL(Ialltoall, Alltoall_init)(const void *out, trace_count out_count, MPI_Datatype out_type,
                                   void *in, trace_count in_count, MPI_Datatype in_type,
                                   MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ialltoall, Alltoall_init)(out, out_count, out_type, in, in_count, in_type,
                                             comm INFO, request);
    if (trace_leave(&c, NAME(Ialltoall, Alltoall_init), rc)) {
        trace_collective(&c, LINE(Ialltoall, Alltoall_init), request, comm, TRACE_NO_ROOT,
                         trace_bytes(in_count, in_type));
    }
    return rc;
}

int CALL(Igatherv, Gatherv_init)(const void *out, trace_count out_count, MPI_Datatype out_type,
                                 void *in, const trace_count in_counts[], const trace_at at[],
                                 MPI_Datatype in_type, int root, MPI_Comm comm INFO_PARAMETER,
                                 MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Igatherv, Gatherv_init)(out, out_count, out_type, in, in_counts, at, in_type,
                                           root, comm INFO, request);
    if (trace_leave(&c, NAME(Igatherv, Gatherv_init), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, LINE(Igatherv, Gatherv_init), request, comm, root,
                         here ? 0 : trace_bytes(out_count, out_type),
                         here ? trace_counts(in_counts) : TRACE_NO_COUNTS, in_type);
    }
    return rc;
}

int CALL(Iscatterv, Scatterv_init)(const void *out, const trace_count out_counts[],
                                   const trace_at at[], MPI_Datatype out_type, void *in,
                                   trace_count in_count, MPI_Datatype in_type, int root,
                                   MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iscatterv, Scatterv_init)(out, out_counts, at, out_type, in, in_count, in_type,
                                             root, comm INFO, request);
    if (trace_leave(&c, NAME(Iscatterv, Scatterv_init), rc)) {
        bool here = trace_is_root(comm, root);
        trace_one_vector(&c, LINE(Iscatterv, Scatterv_init), request, comm, root,
                         here ? 0 : trace_bytes(in_count, in_type),
                         here ? trace_counts(out_counts) : TRACE_NO_COUNTS, out_type);
    }
    return rc;
}

int CALL(Iallgatherv,
         Allgatherv_init)(const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
                          const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,
                          MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Iallgatherv, Allgatherv_init)(out, out_count, out_type, in, in_counts, at,
                                                 in_type, comm INFO, request);
    if (trace_leave(&c, NAME(Iallgatherv, Allgatherv_init), rc)) {
        trace_one_vector(&c, LINE(Iallgatherv, Allgatherv_init), request, comm, TRACE_NO_ROOT, 0,
                         trace_counts(in_counts), in_type);
    }
    return rc;
}

int CALL(Ireduce_scatter, Reduce_scatter_init)(const void *out, void *in,
                                               const trace_count counts[], MPI_Datatype type,
                                               MPI_Op op, MPI_Comm comm INFO_PARAMETER,
                                               MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc =
        PCALL(Ireduce_scatter, Reduce_scatter_init)(out, in, counts, type, op, comm INFO, request);
    if (trace_leave(&c, NAME(Ireduce_scatter, Reduce_scatter_init), rc)) {
        trace_one_vector(&c, LINE(Ireduce_scatter, Reduce_scatter_init), request, comm,
                         TRACE_NO_ROOT, 0, trace_counts(counts), type);
    }
    return rc;
}

int CALL(Ialltoallv, Alltoallv_init)(const void *out, const trace_count out_counts[],
                                     const trace_at out_at[], MPI_Datatype out_type, void *in,
                                     const trace_count in_counts[], const trace_at in_at[],
                                     MPI_Datatype in_type, MPI_Comm comm INFO_PARAMETER,
                                     MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ialltoallv, Alltoallv_init)(out, out_counts, out_at, out_type, in, in_counts,
                                               in_at, in_type, comm INFO, request);
    if (trace_leave(&c, NAME(Ialltoallv, Alltoallv_init), rc)) {
        trace_two_vectors(&c, LINE(Ialltoallv, Alltoallv_init), request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), &out_type, &in_type, 0});
    }
    return rc;
}

int CALL(Ialltoallw, Alltoallw_init)(const void *out, const trace_count out_counts[],
                                     const trace_at out_at[], const MPI_Datatype out_types[],
                                     void *in, const trace_count in_counts[],
                                     const trace_at in_at[], const MPI_Datatype in_types[],
                                     MPI_Comm comm INFO_PARAMETER, MPI_Request *request)
{
    struct trace_call c;
    enter(&c);
    int rc = PCALL(Ialltoallw, Alltoallw_init)(out, out_counts, out_at, out_types, in, in_counts,
                                               in_at, in_types, comm INFO, request);
    if (trace_leave(&c, NAME(Ialltoallw, Alltoallw_init), rc)) {
        trace_two_vectors(&c, LINE(Ialltoallv, Alltoallv_init), request, comm,
                          &(struct trace_vectors){out == MPI_IN_PLACE, trace_counts(out_counts),
                                                  trace_counts(in_counts), out_types, in_types, 1});
    }
    return rc;
}

#ifdef TRACE_PERSISTENT
/* ---- Of neighbours: only named ---- */

COUNTED(Neighbor_allgather_init,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
         MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request))
COUNTED(Neighbor_allgatherv_init,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         const trace_count recvcounts[], const trace_at displs[], MPI_Datatype recvtype,
         MPI_Comm comm, MPI_Info info, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, info, request))
COUNTED(Neighbor_alltoall_init,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
         MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request))
COUNTED(Neighbor_alltoallv_init,
        (const void *sendbuf, const trace_count sendcounts[], const trace_at sdispls[],
         MPI_Datatype sendtype, void *recvbuf, const trace_count recvcounts[],
         const trace_at rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
         MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
         request))
COUNTED(Neighbor_alltoallw_init,
        (const void *sendbuf, const trace_count sendcounts[], const MPI_Aint sdispls[],
         const MPI_Datatype sendtypes[], void *recvbuf, const trace_count recvcounts[],
         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
         MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
         info, request))
#endif
