/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers: collectives that count nothing. */
#include "collective.h"

int MPI_Barrier(MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Barrier(comm);
    if (trace_leave(&c, "MPI_Barrier", rc)) {
        trace_collective(&c, "Barrier", NULL, comm, TRACE_NO_ROOT, TRACE_NO_BYTES);
    }
    return rc;
}
