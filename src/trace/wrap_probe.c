/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes. A plain probe leaves the message where it is; a matched probe (MPI_Mprobe) takes it out
 * of matching. */
#include "wrap.h"

static void probed(const struct trace_call *c, const char *line, bool found, int from, int tag,
                   MPI_Comm comm, const MPI_Status *s)
{
    if (!found) {
        trace_poll(c);
        return;
    }
    trace_line(c, line, 6,
               (int64_t[]){trace_rank(from), trace_tag(tag), trace_comm(comm),
                           trace_rank(s->MPI_SOURCE), s->MPI_TAG, trace_received(s)});
}

WRAP_STATUS(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, s),
            probed(&c, "Probe", true, from, tag, comm, s))
WRAP_STATUS(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
            (from, tag, comm, flag, s), probed(&c, "Probe", *flag, from, tag, comm, s))

/* The line of a matched probe is that of a receive, since no other receive can match the message
 * any more. */
WRAP_STATUS(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
            (from, tag, comm, message, s), probed(&c, "Mprobe", true, from, tag, comm, s))
WRAP_STATUS(Improbe,
            (int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
            (from, tag, comm, flag, message, s), probed(&c, "Mprobe", *flag, from, tag, comm, s))
