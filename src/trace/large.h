/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI 4 has each function with counts twice: MPI_Send has int counts, MPI_Send_c has MPI_Count, and
 * displacements are MPI_Aint instead of int. They differ in nothing else. So the files that define
 * wrappers write `trace_count`, `trace_at` and MPI_(Send), and are compiled a second time, with
 * TRACE_LARGE, if the MPI has such functions. The file of persistent collectives is compiled again
 * with TRACE_MPIX if the MPI has these under their names from before MPI 4. They are macros, since
 * only macros can put names together.
 */
#ifndef TRACE_LARGE_H
#define TRACE_LARGE_H

#include "trace.h"

#ifdef TRACE_MPIX
#include <mpi-ext.h>
#endif

#ifdef TRACE_LARGE
typedef MPI_Count trace_count;
typedef MPI_Aint trace_at;
#define MPI_(name) MPI_##name##_c
#define PMPI_(name) PMPI_##name##_c
#define NAME_OF(name) "MPI_" #name "_c"
#else
typedef int trace_count;
typedef int trace_at;
#ifdef TRACE_MPIX
#define MPI_(name) MPIX_##name
#define PMPI_(name) PMPIX_##name
#define NAME_OF(name) "MPIX_" #name
#else
#define MPI_(name) MPI_##name
#define PMPI_(name) PMPI_##name
#define NAME_OF(name) "MPI_" #name
#endif
#endif

#endif
