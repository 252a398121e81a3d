/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls without counts for which the recorder writes their names only. */
#include "wrap.h"

NAMED(Fetch_and_op,
      (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
       MPI_Aint target_disp, MPI_Op op, MPI_Win win),
      (origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
NAMED(Compare_and_swap,
      (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
       int target_rank, MPI_Aint target_disp, MPI_Win win),
      (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win))
NAMED(Win_fence, (int assert, MPI_Win win), (assert, win))
NAMED(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
NAMED(Win_complete, (MPI_Win win), (win))
NAMED(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win))
NAMED(Win_wait, (MPI_Win win), (win))
NAMED(Win_test, (MPI_Win win, int *flag), (win, flag))
NAMED(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), (lock_type, rank, assert, win))
NAMED(Win_lock_all, (int assert, MPI_Win win), (assert, win))
NAMED(Win_unlock, (int rank, MPI_Win win), (rank, win))
NAMED(Win_unlock_all, (MPI_Win win), (win))
NAMED(Win_flush, (int rank, MPI_Win win), (rank, win))
NAMED(Win_flush_all, (MPI_Win win), (win))
NAMED(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
NAMED(Win_free, (MPI_Win * win), (win))
NAMED(Comm_spawn,
      (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
       MPI_Comm *intercomm, int array_of_errcodes[]),
      (command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes))
NAMED(Comm_spawn_multiple,
      (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
       const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm,
       int array_of_errcodes[]),
      (count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm,
       intercomm, array_of_errcodes))
NAMED(Comm_accept,
      (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
      (port_name, info, root, comm, newcomm))
NAMED(Comm_connect,
      (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
      (port_name, info, root, comm, newcomm))
NAMED(Comm_join, (int fd, MPI_Comm *intercomm), (fd, intercomm))
NAMED(Grequest_start,
      (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn,
       MPI_Grequest_cancel_function *cancel_fn, void *extra_state, MPI_Request *request),
      (query_fn, free_fn, cancel_fn, extra_state, request))

#if MPI_VERSION >= 4
NAMED(Psend_init,
      (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
       MPI_Comm comm, MPI_Info info, MPI_Request *request),
      (buf, partitions, count, datatype, dest, tag, comm, info, request))
NAMED(Precv_init,
      (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
       MPI_Comm comm, MPI_Info info, MPI_Request *request),
      (buf, partitions, count, datatype, dest, tag, comm, info, request))
NAMED(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
      (comm, info, newcomm, request))
NAMED(Comm_create_from_group,
      (MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
       MPI_Comm *newcomm),
      (group, stringtag, info, errhandler, newcomm))
NAMED(Intercomm_create_from_groups,
      (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
       const char *stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newintercomm),
      (local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler,
       newintercomm))
#endif
