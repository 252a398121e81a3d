/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions with counts are there twice in MPI 4: MPI_Send counts in int, MPI_Send_c in
 * MPI_Count, and places are MPI_Aint where the other one has int. They differ in nothing
 * else, so the files that define them write `trace_count`, `trace_at` and MPI_(Send), and
 * are compiled a second time, with TRACE_LARGE, where the MPI has such functions; and those
 * with persistent collectives with TRACE_MPIX, where these have the names from before MPI 4.
 * Macros, because names cannot be put together otherwise.
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
