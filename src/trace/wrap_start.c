/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init and MPI_Finalize, at which a recording begins and ends. */
#include "trace.h"

static int begun(struct trace_call *c, int rc)
{
    int level = MPI_THREAD_SINGLE;
    trace_leave(c, rc); /* no line is written before trace_open() */
    if (rc == MPI_SUCCESS && c->outermost) {
        trace_fortran();
        PMPI_Query_thread(&level);
        int known = level == MPI_THREAD_MULTIPLE     ? 3
                    : level == MPI_THREAD_SERIALIZED ? 2
                    : level == MPI_THREAD_FUNNELED   ? 1
                                                     : 0;
        trace_open(c, known);
    }
    return rc;
}

int MPI_Init(int *argc, char ***argv)
{
    struct trace_call c = {.name = "MPI_Init"};
    trace_enter(&c);
    return begun(&c, PMPI_Init(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    struct trace_call c = {.name = "MPI_Init_thread"};
    trace_enter(&c);
    return begun(&c, PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
    struct trace_call c = {.name = "MPI_Finalize"};
    trace_enter(&c);
    if (trace_leave(&c, MPI_SUCCESS)) {
        trace_line(&c, "Finalize", 0, NULL);
        trace_close();
    }
    return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code)
{
    trace_flush();
    return PMPI_Abort(comm, code);
}
