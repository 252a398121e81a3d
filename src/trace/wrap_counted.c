/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that communicate and are not understood: one-sided ones, collectives of
 * neighbours, processes that join. Each leaves a line with its name, so that who
 * uses the recording learns what it lacks. A macro, because each needs a function
 * of its own name and parameters, and they differ in nothing else.
 */
#include "trace.h"

#define COUNTED(name, parameters, arguments)                                                       \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        struct trace_call c;                                                                       \
        trace_enter(&c);                                                                           \
        return trace_other(&c, "MPI_" #name, PMPI_##name arguments);                               \
    }

COUNTED(Neighbor_allgather,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
         MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COUNTED(Neighbor_allgatherv,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
         const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
COUNTED(Neighbor_alltoall,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
         MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
COUNTED(Neighbor_alltoallv,
        (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
         void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
         MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
COUNTED(Neighbor_alltoallw,
        (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
         const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
COUNTED(Ineighbor_allgather,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
         MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
COUNTED(Ineighbor_allgatherv,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
         const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm,
         MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request))
COUNTED(Ineighbor_alltoall,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
         MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
COUNTED(Ineighbor_alltoallv,
        (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
         void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
         MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
         request))
COUNTED(Ineighbor_alltoallw,
        (const void *sendbuf, const int sendcounts[], const MPI_Aint sdispls[],
         const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],
         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
         MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
         request))
COUNTED(Put,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win))
COUNTED(Get,
        (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win))
COUNTED(Accumulate,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
         MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, op, win))
COUNTED(Get_accumulate,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr,
         int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
         target_rank, target_disp, target_count, target_datatype, op, win))
COUNTED(Fetch_and_op,
        (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
         MPI_Aint target_disp, MPI_Op op, MPI_Win win),
        (origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
COUNTED(Compare_and_swap,
        (const void *origin_addr, const void *compare_addr, void *result_addr,
         MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win),
        (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win))
COUNTED(Rput,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_cout, MPI_Datatype target_datatype, MPI_Win win,
         MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_cout,
         target_datatype, win, request))
COUNTED(Rget,
        (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
         MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, win, request))
COUNTED(Raccumulate,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
         MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
         MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
         target_datatype, op, win, request))
COUNTED(Rget_accumulate,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, void *result_addr,
         int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
         MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
         target_rank, target_disp, target_count, target_datatype, op, win, request))
COUNTED(Win_fence, (int assert, MPI_Win win), (assert, win))
COUNTED(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
COUNTED(Win_complete, (MPI_Win win), (win))
COUNTED(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
COUNTED(Win_wait, (MPI_Win win), (win))
COUNTED(Win_test, (MPI_Win win, int *flag), (win, flag))
COUNTED(Win_lock, (int lock_type, int rank, int assert, MPI_Win win),
        (lock_type, rank, assert, win))
COUNTED(Win_lock_all, (int assert, MPI_Win win), (assert, win))
COUNTED(Win_unlock, (int rank, MPI_Win win), (rank, win))
COUNTED(Win_unlock_all, (MPI_Win win), (win))
COUNTED(Win_flush, (int rank, MPI_Win win), (rank, win))
COUNTED(Win_flush_all, (MPI_Win win), (win))
COUNTED(Win_create,
        (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
        (base, size, disp_unit, info, comm, win))
COUNTED(Win_allocate,
        (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
        (size, disp_unit, info, comm, baseptr, win))
COUNTED(Win_allocate_shared,
        (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
        (size, disp_unit, info, comm, baseptr, win))
COUNTED(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
COUNTED(Win_free, (MPI_Win * win), (win))
COUNTED(Comm_spawn,
        (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
         MPI_Comm *intercomm, int array_of_errcodes[]),
        (command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes))
COUNTED(Comm_spawn_multiple,
        (int count, char *array_of_commands[], char **array_of_argv[],
         const int array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm,
         MPI_Comm *intercomm, int array_of_errcodes[]),
        (count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm,
         intercomm, array_of_errcodes))
COUNTED(Comm_accept,
        (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port_name, info, root, comm, newcomm))
COUNTED(Comm_connect,
        (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port_name, info, root, comm, newcomm))
COUNTED(Comm_join, (int fd, MPI_Comm *intercomm), (fd, intercomm))
COUNTED(Grequest_start,
        (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn,
         MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request),
        (query_fn, free_fn, cancel_fn, extra_state, request))
