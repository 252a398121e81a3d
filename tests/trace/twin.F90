! SPDX-License-Identifier: BSD-3-Clause
!
! What twin.c does, in the same order, through each of the interfaces that MPI has
! for Fortran: mpif.h (WITH_MPIF_H), the module mpi (WITH_MPI), or mpi_f08. Their
! recordings must have the same lines as that of twin.c.

#if defined(WITH_MPIF_H)
#define MODULE_OF_MPI
#define HEADER_OF_MPI include 'mpif.h'
#elif defined(WITH_MPI)
#define MODULE_OF_MPI use mpi
#define HEADER_OF_MPI
#else
#define MODULE_OF_MPI use mpi_f08
#define HEADER_OF_MPI
#endif

#if defined(WITH_MPIF_H) || defined(WITH_MPI)
#define HANDLE(kind) integer
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, count) integer :: name(MPI_STATUS_SIZE, count)
#define NTH(name, i) name(:, i)
#define SOURCE_OF(s) s(MPI_SOURCE)
#define TAG_OF(s) s(MPI_TAG)
#else
#define HANDLE(kind) type(kind)
#define STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, count) type(MPI_Status) :: name(count)
#define NTH(name, i) name(i)
#define SOURCE_OF(s) s%MPI_SOURCE
#define TAG_OF(s) s%MPI_TAG
#endif

module twin
  MODULE_OF_MPI
  implicit none
  HEADER_OF_MPI
  integer, parameter :: room = 64, most = 16
  integer :: rank, ranks, next, before, ierr
  double precision, save, target :: out(room), in(room)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    integer, intent(in) :: what
    if (.not. holds) then
      print *, 'twin: rank', rank, ': check', what, 'fails'
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
  end subroutine

  subroutine check_status(s, source, tag, doubles, what)
    STATUS(s)
    integer, intent(in) :: source, tag, doubles, what
    integer :: got
    call MPI_Get_count(s, MPI_DOUBLE_PRECISION, got, ierr)
    call check(SOURCE_OF(s) == source .and. TAG_OF(s) == tag .and. got == doubles, what)
  end subroutine

  subroutine messages()
    HANDLE(MPI_Request) :: r(2)
    STATUS(s)
    integer :: p
    call MPI_Irecv(in, 5, MPI_DOUBLE_PRECISION, before, 1, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Isend(out, 5, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, r(2), ierr)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierr)
    call check(r(1) == MPI_REQUEST_NULL .and. in(5) == before + 5, 1)
    call MPI_Sendrecv(out, 6, MPI_DOUBLE_PRECISION, next, 2, &
                      in, 8, MPI_DOUBLE_PRECISION, before, MPI_ANY_TAG, MPI_COMM_WORLD, s, ierr)
    call check_status(s, before, 2, 6, 2)
    in(1) = rank
    call MPI_Sendrecv_replace(in, 1, MPI_DOUBLE_PRECISION, next, 3, before, 3, MPI_COMM_WORLD, &
                              MPI_STATUS_IGNORE, ierr)
    call check(in(1) == before, 3)
    call MPI_Send(out, 1, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 4, MPI_COMM_WORLD, ierr)
    do p = 1, ranks - 1 ! a wildcard, and one message that it can get
      if (rank == 0) then
        call MPI_Ssend(out, 0, MPI_DOUBLE_PRECISION, p, 5, MPI_COMM_WORLD, ierr)
        call MPI_Recv(in, room, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, MPI_ANY_TAG, &
                      MPI_COMM_WORLD, s, ierr)
        call check_status(s, p, 100 + p, p + 1, 4)
      else if (rank == p) then
        call MPI_Recv(in, 1, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        call MPI_Send(out, p + 1, MPI_DOUBLE_PRECISION, 0, 100 + p, MPI_COMM_WORLD, ierr)
      end if
    end do
  end subroutine

  subroutine completions()
    HANDLE(MPI_Request) :: r(2)
    STATUS(s)
    STATUSES(both, 2)
    integer :: round, which, done, indices(2)
    logical :: flag
    do round = 0, 1 ! the second one's message comes first
      call MPI_Irecv(in, 8, MPI_DOUBLE_PRECISION, before, 11, MPI_COMM_WORLD, r(1), ierr)
      call MPI_Irecv(in(9), 8, MPI_DOUBLE_PRECISION, before, 12, MPI_COMM_WORLD, r(2), ierr)
      call MPI_Send(out, 2, MPI_DOUBLE_PRECISION, next, 12, MPI_COMM_WORLD, ierr)
      if (round == 0) then
        call MPI_Waitany(2, r, which, s, ierr)
        ! `which` is 1 in the mpi_f08 of MPICH 4.0.2, which begins at 0 here.
        call check(r(2) == MPI_REQUEST_NULL .and. r(1) /= MPI_REQUEST_NULL, 11)
      else
        call MPI_Waitsome(2, r, done, indices, both, ierr)
        call check(done == 1 .and. r(2) == MPI_REQUEST_NULL, 12)
        s = NTH(both, 1)
      end if
      call check_status(s, before, 12, 2, 13)
      call MPI_Send(out, 0, MPI_DOUBLE_PRECISION, before, 10, MPI_COMM_WORLD, ierr) ! now the first
      call MPI_Recv(in, 0, MPI_DOUBLE_PRECISION, next, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Send(out, 3, MPI_DOUBLE_PRECISION, next, 11, MPI_COMM_WORLD, ierr)
      call MPI_Waitany(2, r, which, MPI_STATUS_IGNORE, ierr)
      call check(r(1) == MPI_REQUEST_NULL, 14)
    end do
    call MPI_Irecv(in, 8, MPI_DOUBLE_PRECISION, before, 13, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Isend(out, 8, MPI_DOUBLE_PRECISION, next, 13, MPI_COMM_WORLD, r(2), ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(2, r, flag, both, ierr)
    end do
    call check_status(NTH(both, 1), before, 13, 8, 15)
    call MPI_Recv_init(in, 4, MPI_DOUBLE_PRECISION, before, 14, MPI_COMM_WORLD, r(1), ierr)
    call MPI_Send_init(out, 4, MPI_DOUBLE_PRECISION, next, 14, MPI_COMM_WORLD, r(2), ierr)
    do round = 0, 2
      call MPI_Startall(2, r, ierr)
      call MPI_Waitall(2, r, both, ierr)
      call check_status(NTH(both, 1), before, 14, 4, 16)
    end do
    call MPI_Request_free(r(1), ierr)
    call MPI_Request_free(r(2), ierr)
    call MPI_Irecv(in, 4, MPI_DOUBLE_PRECISION, before, 15, MPI_COMM_WORLD, r(1), ierr) ! never sent
    call MPI_Cancel(r(1), ierr)
    call MPI_Wait(r(1), s, ierr)
    call MPI_Test_cancelled(s, flag, ierr)
    call check(flag, 17)
  end subroutine

  subroutine probes()
    STATUS(s)
    HANDLE(MPI_Message) :: m
    HANDLE(MPI_Request) :: r
    logical :: flag
    call MPI_Isend(out, 3, MPI_DOUBLE_PRECISION, next, 21, MPI_COMM_WORLD, r, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Iprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, flag, s, ierr)
    end do
    call check_status(s, before, 21, 3, 21)
    call MPI_Recv(in, 3, MPI_DOUBLE_PRECISION, before, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call MPI_Isend(out, 4, MPI_DOUBLE_PRECISION, next, 22, MPI_COMM_WORLD, r, ierr)
    call MPI_Mprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, m, s, ierr)
    call MPI_Mrecv(in, 4, MPI_DOUBLE_PRECISION, m, MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call check(in(4) == before + 4, 22)
  end subroutine

  ! A message whose place is in its type.
  subroutine bottom()
    integer(MPI_ADDRESS_KIND) :: at(1)
    HANDLE(MPI_Datatype) :: type
    integer :: lengths(1)
    lengths(1) = 3
    call MPI_Get_address(out, at(1), ierr)
    call MPI_Type_create_hindexed(1, lengths, at, MPI_DOUBLE_PRECISION, type, ierr)
    call MPI_Type_commit(type, ierr)
    call MPI_Sendrecv(MPI_BOTTOM, 1, type, next, 31, in, 3, MPI_DOUBLE_PRECISION, before, 31, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(in(3) == before + 3, 31)
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine collectives()
    integer :: counts(most), at(most), others(most), others_at(most), p
    HANDLE(MPI_Request) :: r
    in(1) = 7
    call MPI_Bcast(in, 3, MPI_DOUBLE_PRECISION, ranks - 1, MPI_COMM_WORLD, ierr)
    in(1) = 1
    call MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(in(1) == ranks, 41)
    in(1) = 1
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, in, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    else
      call MPI_Reduce(in, out, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    end if
    call check(rank /= 0 .or. in(1) == ranks, 42)
    call MPI_Scan(out, in, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Allgather(out, 2, MPI_DOUBLE_PRECISION, in, 2, MPI_DOUBLE_PRECISION, &
                       MPI_COMM_WORLD, ierr)
    call check(in(2 * next + 1) == next + 1, 43)
    call MPI_Alltoall(out, 1, MPI_DOUBLE_PRECISION, in, 1, MPI_DOUBLE_PRECISION, &
                      MPI_COMM_WORLD, ierr)
    do p = 0, ranks - 1
      counts(p + 1) = p + 1
      at(p + 1) = p * (p + 1) / 2
      others(p + 1) = rank + 1
      others_at(p + 1) = p * (rank + 1)
    end do
    call MPI_Gatherv(out, rank + 1, MPI_DOUBLE_PRECISION, in, counts, at, MPI_DOUBLE_PRECISION, &
                     0, MPI_COMM_WORLD, ierr)
    call check(rank /= 0 .or. in(at(next + 1) + 1) == next + 1, 44)
    call MPI_Scatterv(out, counts, at, MPI_DOUBLE_PRECISION, in, rank + 1, MPI_DOUBLE_PRECISION, &
                      0, MPI_COMM_WORLD, ierr)
    call check(in(rank + 1) == at(rank + 1) + rank + 1, 45) ! of rank 0
    call MPI_Alltoallv(out, counts, at, MPI_DOUBLE_PRECISION, &
                       in, others, others_at, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    call MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Ibcast(in, 9, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call MPI_Iallgatherv(out, rank + 1, MPI_DOUBLE_PRECISION, in, counts, at, &
                         MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
  end subroutine

  subroutine use_comm(comm)
    HANDLE(MPI_Comm) :: comm
    integer :: here, size
    call MPI_Comm_rank(comm, here, ierr)
    call MPI_Comm_size(comm, size, ierr)
    call MPI_Sendrecv(out, 2, MPI_DOUBLE_PRECISION, mod(here + 1, size), 51, &
                      in, 2, MPI_DOUBLE_PRECISION, mod(here + size - 1, size), 51, &
                      comm, MPI_STATUS_IGNORE, ierr)
    call MPI_Barrier(comm, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine

  subroutine communicators()
    HANDLE(MPI_Comm) :: made
    HANDLE(MPI_Request) :: r
    HANDLE(MPI_Group) :: group
    integer :: extent(1)
    logical :: periodic(1)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, made, ierr)
    call use_comm(made)
    call MPI_Comm_dup(MPI_COMM_WORLD, made, ierr)
    call use_comm(made)
    call MPI_Comm_idup(MPI_COMM_WORLD, made, r, ierr)
    call MPI_Wait(r, MPI_STATUS_IGNORE, ierr)
    call use_comm(made)
    extent(1) = ranks
    periodic(1) = .true.
    call MPI_Cart_create(MPI_COMM_WORLD, 1, extent, periodic, .false., made, ierr)
    call use_comm(made)
    call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
    call MPI_Comm_create(MPI_COMM_WORLD, group, made, ierr)
    call use_comm(made)
    call MPI_Group_free(group, ierr)
  end subroutine

end module

program main
  use twin
  implicit none
  integer :: i
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call check(ranks > 1 .and. ranks * (ranks + 1) / 2 <= room .and. ranks <= most, 0)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  do i = 1, room
    out(i) = rank + i
  end do
  call messages()
  call completions()
  call probes()
  call bottom()
  call collectives()
  call communicators()
  call MPI_Finalize(ierr)
end program
