/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that make communicators. A communicator that another call makes has no
 * number; a recording that uses it says so. */
#include "trace.h"

static int made(struct trace_call *c, const char *name, int rc, const MPI_Comm *comm)
{
    if (trace_leave(c, name, rc)) {
        trace_new_comm(c, *comm);
    }
    return rc;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_dup", PMPI_Comm_dup(comm, new), new);
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_dup_with_info", PMPI_Comm_dup_with_info(comm, info, new), new);
}

/* The handle is taken at once, when both MPIs know it: Fortran's bindings hand in a variable
 * of their own that is gone when the request completes. */
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *new, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Comm_idup(comm, new, request);
    if (trace_leave(&c, "MPI_Comm_idup", rc)) {
        int64_t number = trace_promise_comm(&c, comm);
        trace_lock();
        struct trace_request *r = trace_add_request(*request, false);
        r->comm = *new;
        r->comm_number = number;
        trace_unlock();
    }
    return rc;
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_create", PMPI_Comm_create(comm, group, new), new);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_create_group", PMPI_Comm_create_group(comm, group, tag, new), new);
}

int MPI_Comm_split(MPI_Comm comm, int color, int order, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_split", PMPI_Comm_split(comm, color, order, new), new);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Comm_split_type", PMPI_Comm_split_type(comm, type, order, info, new), new);
}

int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag,
                         MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Intercomm_create",
                PMPI_Intercomm_create(comm, leader, peers, remote_leader, tag, new), new);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Intercomm_merge", PMPI_Intercomm_merge(comm, high, new), new);
}

/* ---- Topologies ---- */

int MPI_Cart_create(MPI_Comm comm, int dims, const int extent[], const int periodic[], int reorder,
                    MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Cart_create", PMPI_Cart_create(comm, dims, extent, periodic, reorder, new),
                new);
}

int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Cart_sub", PMPI_Cart_sub(comm, remain, new), new);
}

int MPI_Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder,
                     MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Graph_create", PMPI_Graph_create(comm, nodes, index, edges, reorder, new),
                new);
}

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                          const int targets[], const int weights[], MPI_Info info, int reorder,
                          MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(
        &c, "MPI_Dist_graph_create",
        PMPI_Dist_graph_create(comm, n, sources, degrees, targets, weights, info, reorder, new),
        new);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int sources[],
                                   const int source_weights[], int out, const int targets[],
                                   const int target_weights[], MPI_Info info, int reorder,
                                   MPI_Comm *new)
{
    struct trace_call c;
    trace_enter(&c);
    return made(&c, "MPI_Dist_graph_create_adjacent",
                PMPI_Dist_graph_create_adjacent(comm, in, sources, source_weights, out, targets,
                                                target_weights, info, reorder, new),
                new);
}
