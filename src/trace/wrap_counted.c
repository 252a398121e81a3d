/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with counts for which the recorder writes their names only. */
#include "wrap.h"

#define ALL(...) __VA_ARGS__

/* An operation on a window, and the same operation with a request. */
#define ONE_SIDED(name, with_request, parameters, arguments)                                       \
    NAMED(name, parameters, arguments)                                                             \
    NAMED(with_request, (ALL parameters, MPI_Request * request), (ALL arguments, request))

ONE_SIDED(Put, Rput,
          (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
           int target_rank, MPI_Aint target_disp, trace_count target_count,
           MPI_Datatype target_datatype, MPI_Win win),
          (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
           target_datatype, win))
ONE_SIDED(Get, Rget,
          (void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
           int target_rank, MPI_Aint target_disp, trace_count target_count,
           MPI_Datatype target_datatype, MPI_Win win),
          (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
           target_datatype, win))
ONE_SIDED(Accumulate, Raccumulate,
          (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
           int target_rank, MPI_Aint target_disp, trace_count target_count,
           MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
          (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
           target_datatype, op, win))
ONE_SIDED(Get_accumulate, Rget_accumulate,
          (const void *origin_addr, trace_count origin_count, MPI_Datatype origin_datatype,
           void *result_addr, trace_count result_count, MPI_Datatype result_datatype,
           int target_rank, MPI_Aint target_disp, trace_count target_count,
           MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
          (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
           target_rank, target_disp, target_count, target_datatype, op, win))
NAMED(Win_create,
      (void *base, MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
      (base, size, disp_unit, info, comm, win))
NAMED(Win_allocate,
      (MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
       MPI_Win *win),
      (size, disp_unit, info, comm, baseptr, win))
NAMED(Win_allocate_shared,
      (MPI_Aint size, trace_at disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
       MPI_Win *win),
      (size, disp_unit, info, comm, baseptr, win))

#if MPI_VERSION >= 4
NAMED(Isendrecv,
      (const void *sendbuf, trace_count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
       void *recvbuf, trace_count recvcount, MPI_Datatype recvtype, int source, int recvtag,
       MPI_Comm comm, MPI_Request *request),
      (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
       comm, request))
NAMED(Isendrecv_replace,
      (void *buf, trace_count count, MPI_Datatype datatype, int dest, int sendtag, int source,
       int recvtag, MPI_Comm comm, MPI_Request *request),
      (buf, count, datatype, dest, sendtag, source, recvtag, comm, request))
#endif
