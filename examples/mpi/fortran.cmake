# SPDX-License-Identifier: BSD-3-Clause
# Programs of MPI in Fortran are built by the MPIs' own compiler commands: modules
# belong to one compiler, and only these know where theirs are.
find_program(PINWHEEL_GFORTRAN gfortran)
find_program(PINWHEEL_FORTRAN_openmpi mpifort.openmpi)
find_program(PINWHEEL_FORTRAN_mpich mpifort.mpich)

# mpi_fortran_program(NAME MPI SOURCE [FLAG...]): the program NAME, its path in
# NAME_PATH; nothing where there is no compiler, which leaves NAME_PATH empty. The
# target is NAME_program: for Ninja a target is a file of its folder too.
function(mpi_fortran_program name mpi source)
    set(${name}_PATH "" PARENT_SCOPE)
    if(NOT PINWHEEL_GFORTRAN OR NOT PINWHEEL_FORTRAN_${mpi})
        message(STATUS "No ${name}: the Debian package gfortran is not installed")
        return()
    endif()
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    add_custom_command(OUTPUT ${program}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${program}.mod
        COMMAND ${PINWHEEL_FORTRAN_${mpi}} -O2 -Wall ${ARGN} -J ${program}.mod -o ${program} ${source}
        DEPENDS ${source} VERBATIM)
    add_custom_target(${name}_program ALL DEPENDS ${program})
    set(${name}_PATH ${program} PARENT_SCOPE)
endfunction()
