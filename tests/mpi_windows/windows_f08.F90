! SPDX-License-Identifier: BSD-3-Clause
! Windows from Fortran: mpif.h (WITH_MPIF_H) or mpi_f08.
program windows_fortran
#ifdef WITH_MPIF_H
    implicit none
    include 'mpif.h'
    integer :: win, group, world
#else
    use mpi_f08
    implicit none
    type(MPI_Win) :: win
    type(MPI_Group) :: group, world
#endif
    integer, parameter :: n = 8
    integer :: memory(n), rank, ranks, ierr, value, got, next, before, compared, bad, all_bad
    integer(kind=MPI_ADDRESS_KIND) :: bytes, at, attribute
    logical :: flag
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    next = mod(rank + 1, ranks)
    before = mod(rank + ranks - 1, ranks)
    bad = 0
    memory = 0
    bytes = n * 4
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    value = 100 + rank
    at = 2
    call MPI_Put(value, 1, MPI_INTEGER, next, at, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
    if (memory(3) /= 100 + before) bad = bad + 1
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win, ierr)
    at = 5
    value = 1
    call MPI_Accumulate(value, 1, MPI_INTEGER, 0, at, 1, MPI_INTEGER, MPI_SUM, win, ierr)
    call MPI_Win_unlock(0, win, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock_all(0, win, ierr)
    call MPI_Fetch_and_op(value, got, MPI_INTEGER, 0, at, MPI_NO_OP, win, ierr)
    call MPI_Win_flush(0, win, ierr)
    call MPI_Win_unlock_all(win, ierr)
    if (got /= ranks) then
        bad = bad + 1
        print *, "got", got
    end if
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, attribute, flag, ierr)
    if (.not. flag .or. attribute /= bytes) then
        bad = bad + 1
        print *, "size", flag, attribute
    end if
    call MPI_Win_get_group(win, group, ierr)
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierr)
    call MPI_Group_compare(group, world, compared, ierr)
    if (compared /= MPI_IDENT) bad = bad + 1
    call MPI_Win_free(win, ierr)
    call MPI_Allreduce(bad, all_bad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (rank == 0) print *, 'bad:', all_bad
    call MPI_Finalize(ierr)
    if (all_bad /= 0) stop 1
end program windows_fortran
