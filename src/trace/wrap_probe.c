/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: they leave the message where it is, or (matched ones) take it out of matching. */
#include "trace.h"

static void probed(const struct trace_call *c, const char *line, int from, int tag, MPI_Comm comm,
                   const MPI_Status *s)
{
    trace_line(c, line, 6,
               (int64_t[]){trace_rank(from), trace_tag(tag), trace_comm(comm),
                           trace_rank(s->MPI_SOURCE), s->MPI_TAG, trace_received(s)});
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Probe(from, tag, comm, s);
    if (trace_leave(&c, "MPI_Probe", rc)) {
        probed(&c, "Probe", from, tag, comm, s);
    }
    return rc;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Iprobe(from, tag, comm, flag, s);
    if (trace_leave(&c, "MPI_Iprobe", rc)) {
        if (*flag) {
            probed(&c, "Probe", from, tag, comm, s);
        } else {
            trace_poll(&c);
        }
    }
    return rc;
}

/* A matched probe takes the message out of matching: it is written as the receive. */
int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Mprobe(from, tag, comm, message, s);
    if (trace_leave(&c, "MPI_Mprobe", rc)) {
        probed(&c, "Mprobe", from, tag, comm, s);
    }
    return rc;
}

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Improbe(from, tag, comm, flag, message, s);
    if (trace_leave(&c, "MPI_Improbe", rc)) {
        if (*flag) {
            probed(&c, "Mprobe", from, tag, comm, s);
        } else {
            trace_poll(&c);
        }
    }
    return rc;
}
