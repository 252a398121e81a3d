! SPDX-License-Identifier: BSD-3-Clause
!
! What stencil.c computes, in Fortran with mpi_f08: Jacobi iterations on a square
! whose border holds u(x, y) = x² − y². The messages are the same ones, in the same
! order, so that its recording becomes the same schedule (docs/goal-trace.md).
!
!     stencil_f08 [POINTS [ITERATIONS]]     points of a side (32), iterations (4000)
!
! Prints the largest error and fails if it is above 1e-6.

module stencil
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  implicit none

  integer, parameter :: left = 1, right = 2, down = 3, up = 4

  type block
    type(MPI_Comm) :: grid
    integer :: neighbour(4)
    integer :: x0, y0, width, height ! its points of the square, the border left out
    real(real64) :: step
    real(real64), allocatable :: now(:, :), next(:, :) ! -1:width, -1:height
    type(MPI_Datatype) :: column
    integer(int64) :: messages = 0, bytes = 0
  end type

contains

  pure real(real64) function solution(x, y)
    real(real64), intent(in) :: x, y
    solution = x * x - y * y
  end function

  pure real(real64) function solution_at(b, x, y)
    type(block), intent(in) :: b
    integer, intent(in) :: x, y
    solution_at = solution((b%x0 + x + 1) * b%step, (b%y0 + y + 1) * b%step)
  end function

  ! The part-th of `parts` parts of `points` points.
  pure integer function part_start(points, parts, part)
    integer, intent(in) :: points, parts, part
    part_start = int(int(points, int64) * part / parts)
  end function

  subroutine make_block(b, points)
    type(block), intent(inout) :: b
    integer, intent(in) :: points
    integer :: ranks, rank, extent(2), at(2)
    extent = 0
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Dims_create(ranks, 2, extent)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, extent, [.false., .false.], .true., b%grid)
    call MPI_Comm_rank(b%grid, rank)
    call MPI_Cart_coords(b%grid, rank, 2, at)
    call MPI_Cart_shift(b%grid, 0, 1, b%neighbour(left), b%neighbour(right))
    call MPI_Cart_shift(b%grid, 1, 1, b%neighbour(down), b%neighbour(up))
    b%x0 = part_start(points, extent(1), at(1))
    b%y0 = part_start(points, extent(2), at(2))
    b%width = part_start(points, extent(1), at(1) + 1) - b%x0
    b%height = part_start(points, extent(2), at(2) + 1) - b%y0
    b%step = 1.0_real64 / (points + 1)
    call MPI_Type_vector(b%height, 1, b%width + 2, MPI_DOUBLE_PRECISION, b%column)
    call MPI_Type_commit(b%column)
    allocate (b%now(-1:b%width, -1:b%height), source=0.0_real64)
    call fill_border(b)
    b%next = b%now
  end subroutine

  subroutine fill_border(b)
    type(block), intent(inout) :: b
    integer :: x, y
    do y = -1, b%height
      do x = -1, b%width
        if (x == -1 .or. y == -1 .or. x == b%width .or. y == b%height) then
          b%now(x, y) = solution_at(b, x, y)
        end if
      end do
    end do
  end subroutine

  subroutine exchange(b)
    type(block), intent(inout), target, asynchronous :: b
    type(MPI_Request) :: requests(8)
    integer :: w, h, i
    integer, parameter :: opposite(4) = [right, left, up, down]
    w = b%width
    h = b%height
    ! A message's tag is the side it comes from, counted from 0.
    call MPI_Irecv(b%now(-1, 0), 1, b%column, b%neighbour(left), left - 1, b%grid, requests(1))
    call MPI_Irecv(b%now(w, 0), 1, b%column, b%neighbour(right), right - 1, b%grid, requests(2))
    call MPI_Irecv(b%now(0, -1), w, MPI_DOUBLE_PRECISION, b%neighbour(down), down - 1, b%grid, &
                   requests(3))
    call MPI_Irecv(b%now(0, h), w, MPI_DOUBLE_PRECISION, b%neighbour(up), up - 1, b%grid, &
                   requests(4))
    call MPI_Isend(b%now(0, 0), 1, b%column, b%neighbour(left), opposite(left) - 1, b%grid, &
                   requests(5))
    call MPI_Isend(b%now(w - 1, 0), 1, b%column, b%neighbour(right), opposite(right) - 1, b%grid, &
                   requests(6))
    call MPI_Isend(b%now(0, 0), w, MPI_DOUBLE_PRECISION, b%neighbour(down), opposite(down) - 1, &
                   b%grid, requests(7))
    call MPI_Isend(b%now(0, h - 1), w, MPI_DOUBLE_PRECISION, b%neighbour(up), opposite(up) - 1, &
                   b%grid, requests(8))
    do i = left, up
      if (b%neighbour(i) /= MPI_PROC_NULL) then
        b%messages = b%messages + 1
        b%bytes = b%bytes + 8 * merge(h, w, i < down)
      end if
    end do
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine relax(b)
    type(block), intent(inout) :: b
    integer :: w, h
    w = b%width
    h = b%height
    b%next(0:w - 1, 0:h - 1) = 0.25_real64 * (b%now(-1:w - 2, 0:h - 1) + b%now(1:w, 0:h - 1) + &
                                              b%now(0:w - 1, -1:h - 2) + b%now(0:w - 1, 1:h))
    b%now(0:w - 1, 0:h - 1) = b%next(0:w - 1, 0:h - 1)
  end subroutine

  real(real64) function largest_error(b)
    type(block), intent(in) :: b
    real(real64) :: worst
    integer :: x, y
    worst = 0
    do y = 0, b%height - 1
      do x = 0, b%width - 1
        worst = max(worst, abs(b%now(x, y) - solution_at(b, x, y)))
      end do
    end do
    call MPI_Allreduce(worst, largest_error, 1, MPI_DOUBLE_PRECISION, MPI_MAX, b%grid)
  end function

  ! The i-th word of the command line, a number; else what it is without.
  integer function argument(i, otherwise)
    integer, intent(in) :: i, otherwise
    character(32) :: word
    integer :: status
    argument = otherwise
    if (command_argument_count() >= i) then
      call get_command_argument(i, word)
      read (word, *, iostat=status) argument
      if (status /= 0) argument = -1
    end if
  end function

end module

program main
  use stencil
  implicit none
  type(block) :: b
  integer :: rank, points, iterations, i
  integer(int64) :: mine(2), all(2)
  real(real64) :: error
  call MPI_Init()
  points = argument(1, 32)
  iterations = argument(2, 4000)
  if (points < 1 .or. points > 10000 .or. iterations < 1) then
    print '(a)', 'usage: stencil_f08 [POINTS [ITERATIONS]]'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if
  call make_block(b, points)
  do i = 1, iterations
    call exchange(b)
    call relax(b)
  end do
  error = largest_error(b)
  mine = [b%messages, b%bytes]
  call MPI_Reduce(mine, all, 2, MPI_INTEGER8, MPI_SUM, 0, b%grid)
  call MPI_Comm_rank(b%grid, rank)
  if (rank == 0) then
    print '(3(a, i0), a, es9.3)', 'stencil: ', points, ' x ', points, ' points, ', iterations, &
      ' iterations, largest error ', error
    print '(2(a, i0), a)', 'expected messages ', all(1), ' bytes ', all(2), ' allreduce 1 reduce 1'
  end if
  call MPI_Type_free(b%column)
  call MPI_Comm_free(b%grid)
  call MPI_Finalize()
  if (.not. error < 1e-6_real64) error stop 1
end program
