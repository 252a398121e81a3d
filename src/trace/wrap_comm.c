/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that make communicators. A communicator that was made by a call not wrapped in this file
 * has no number, and lines that use it have TRACE_NULL instead. */
#include "wrap.h"

#define MAKES(name, parameters, arguments)                                                         \
    WRAP(name, parameters, arguments, trace_new_comm(&c, *new))

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *new), (comm, new))
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *new), (comm, info, new))
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *new), (comm, group, new))
MAKES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *new),
      (comm, group, tag, new))
MAKES(Comm_split, (MPI_Comm comm, int color, int order, MPI_Comm *new), (comm, color, order, new))
MAKES(Comm_split_type, (MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm *new),
      (comm, type, order, info, new))
MAKES(Intercomm_create,
      (MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *new),
      (comm, leader, peers, remote_leader, tag, new))
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *new), (comm, high, new))

/* Numbers a communicator that a request will complete. Its handle is read at once, since both MPIs
 * set it at once: Fortran bindings pass a variable of their own, which is gone when the request
 * completes. */
static void promised(const struct trace_call *c, MPI_Comm parent, MPI_Comm new, MPI_Request request)
{
    int64_t number = trace_promise_comm(c, parent);
    trace_lock();
    struct trace_request *r = trace_add_request(request, false);
    r->comm = new;
    r->comm_number = number;
    trace_unlock();
}

WRAP(Comm_idup, (MPI_Comm comm, MPI_Comm *new, MPI_Request *request), (comm, new, request),
     promised(&c, comm, *new, *request))

/* ---- Topologies ---- */

MAKES(Cart_create,
      (MPI_Comm comm, int dims, const int extent[], const int periodic[], int reorder,
       MPI_Comm *new),
      (comm, dims, extent, periodic, reorder, new))
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *new), (comm, remain, new))
MAKES(Graph_create,
      (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *new),
      (comm, nodes, index, edges, reorder, new))
MAKES(Dist_graph_create,
      (MPI_Comm comm, int n, const int sources[], const int degrees[], const int targets[],
       const int weights[], MPI_Info info, int reorder, MPI_Comm *new),
      (comm, n, sources, degrees, targets, weights, info, reorder, new))
MAKES(Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int source_weights[], int out,
       const int targets[], const int target_weights[], MPI_Info info, int reorder, MPI_Comm *new),
      (comm, in, sources, source_weights, out, targets, target_weights, info, reorder, new))
