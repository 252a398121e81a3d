/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of counted.h that have counts. */
#include "counted.h"

COUNTED(Neighbor_allgather,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COUNTED(Neighbor_allgatherv,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         const trace_count recvcounts[], const trace_at displs[], MPI_Datatype recvtype,
         MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
COUNTED(Neighbor_alltoall,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COUNTED(Neighbor_alltoallv,
        (const void *sendbuf, const trace_count sendcounts[], const trace_at sdispls[],
         MPI_Datatype sendtype, void *recvbuf, const trace_count recvcounts[],
         const trace_at rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
COUNTED(Neighbor_alltoallw,
        (const void *sendbuf, const trace_count sendcounts[], const MPI_Aint sdispls[],
         const MPI_Datatype sendtypes[], void *recvbuf, const trace_count recvcounts[],
         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
COUNTED(Ineighbor_allgather,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
COUNTED(Ineighbor_allgatherv,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         const trace_count recvcounts[], const trace_at displs[], MPI_Datatype recvtype,
         MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
COUNTED(Ineighbor_alltoall,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, void *recvbuf,
         trace_count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
COUNTED(Ineighbor_alltoallv,
        (const void *sendbuf, const trace_count sendcounts[], const trace_at sdispls[],
         MPI_Datatype sendtype, void *recvbuf, const trace_count recvcounts[],
         const trace_at rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
         request))
COUNTED(Ineighbor_alltoallw,
        (const void *sendbuf, const trace_count sendcounts[], const MPI_Aint sdispls[],
         const MPI_Datatype sendtypes[], void *recvbuf, const trace_count recvcounts[],
         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
         MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
         request))
COUNTED(Put,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, trace_count target_count,
         MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win))
COUNTED(Get,
        (void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, trace_count target_count, MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win))
COUNTED(Accumulate,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, trace_count target_count,
         MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, op, win))
COUNTED(Get_accumulate,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         void *result_addr, trace_count result_count, MPI_Datatype result_datatype, int target_rank,
         MPI_Aint target_disp, trace_count target_count, MPI_Datatype target_datatype, MPI_Op op,
         MPI_Win win),
        (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
         target_rank, target_disp, target_count, target_datatype, op, win))
COUNTED(Rput,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, trace_count target_cout,
         MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_cout,
         target_datatype, win, request))
COUNTED(Rget,
        (void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, trace_count target_count, MPI_Datatype target_datatype, MPI_Win win,
         MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, request))
COUNTED(Raccumulate,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         int target_rank, MPI_Aint target_disp, trace_count target_count,
         MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, op, win, request))
COUNTED(Rget_accumulate,
        (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
         void *result_addr, trace_count result_count, MPI_Datatype result_datatype, int target_rank,
         MPI_Aint target_disp, trace_count target_count, MPI_Datatype target_datatype, MPI_Op op,
         MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
         target_rank, target_disp, target_count, target_datatype, op, win, request))
COUNTED(Win_create,
        (void *base, MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
        (base, size, disp_unit, info, comm, win))
COUNTED(Win_allocate,
        (MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
         MPI_Win *win),
        (size, disp_unit, info, comm, baseptr, win))
COUNTED(Win_allocate_shared,
        (MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
         MPI_Win *win),
        (size, disp_unit, info, comm, baseptr, win))

#if MPI_VERSION >= 4
COUNTED(Isendrecv,
        (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
         void *recvbuf, trace_count recvcount, MPI_Datatype recvtype, int source, int recvtag,
         MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
         comm, request))
COUNTED(Isendrecv_replace,
        (void *buf, trace_count count, MPI_Datatype datatype, int dest, int sendtag, int source,
         int recvtag, MPI_Comm comm, MPI_Request *request),
        (buf, count, datatype, dest, sendtag, source, recvtag, comm, request))
#endif
