/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: each row defines a blocking function and the nonblocking one; when this file is
 * compiled again with TRACE_PERSISTENT it defines the persistent one. Nonblocking and persistent
 * functions have a request, with which their lines begin, and persistent ones an info as well.
 * Sizes are taken from the buffer that MPI still reads when the other one is MPI_IN_PLACE.
 */
#include "collective.h"

#define ALL(...) __VA_ARGS__
#define CALL(text, begins, of, lasts)                                                              \
    {                                                                                              \
        .name = (text), .line = (begins), .request = (of), .persistent = (lasts)                   \
    }

/* COLLECTIVE_AS() is for collectives whose lines begin with another name than the function has. */
#ifdef TRACE_PERSISTENT
#define COLLECTIVE_AS(name, lower, begins, begins_lower, parameters, arguments, ...)               \
    WRAP_WITH(struct trace_call c = CALL(NAME_OF(name##_init), #begins "_init", request, true),    \
              name##_init, (ALL parameters, MPI_Info info, MPI_Request * request),                 \
              (ALL arguments, info, request), __VA_ARGS__)
#else
#define COLLECTIVE_AS(name, lower, begins, begins_lower, parameters, arguments, ...)               \
    WRAP_WITH(struct trace_call c = CALL(NAME_OF(name), #begins, NULL, false), name, parameters,   \
              arguments, __VA_ARGS__)                                                              \
    WRAP_WITH(struct trace_call c = CALL(NAME_OF(I##lower), "I" #begins_lower, request, false),    \
              I##lower, (ALL parameters, MPI_Request * request), (ALL arguments, request),         \
              __VA_ARGS__)
#endif

#define COLLECTIVE(name, lower, parameters, arguments, ...)                                        \
    COLLECTIVE_AS(name, lower, name, lower, parameters, arguments, __VA_ARGS__)

#ifndef TRACE_LARGE /* a barrier has no counts */
COLLECTIVE(Barrier, barrier, (MPI_Comm comm), (comm),
           trace_collective(&c, comm, TRACE_NO_ROOT, TRACE_NO_BYTES))
#endif

/* ---- The same count at all ranks ---- */

COLLECTIVE(Bcast, bcast, (void *buf, trace_count count, MPI_Datatype type, int root, MPI_Comm comm),
           (buf, count, type, root, comm),
           trace_collective(&c, comm, root, trace_bytes(count, type)))
COLLECTIVE(Reduce, reduce,
           (const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm),
           (out, in, count, type, op, root, comm),
           trace_collective(&c, comm, root, trace_bytes(count, type)))

/* A reduction to which each rank contributes, and of which all or some ranks get the result. */
#define REDUCES(name, lower)                                                                       \
    COLLECTIVE(name, lower,                                                                        \
               (const void *out, void *in, trace_count count, MPI_Datatype type, MPI_Op op,        \
                MPI_Comm comm),                                                                    \
               (out, in, count, type, op, comm),                                                   \
               trace_collective(&c, comm, TRACE_NO_ROOT, trace_bytes(count, type)))
REDUCES(Allreduce, allreduce)
REDUCES(Scan, scan)
REDUCES(Exscan, exscan)
REDUCES(Reduce_scatter_block, reduce_scatter_block)

/* ---- Separate counts for sending and receiving ---- */

static void rooted(const struct trace_call *c, MPI_Comm comm, int root, trace_count count,
                   MPI_Datatype type, trace_count elsewhere, MPI_Datatype type_elsewhere)
{
    trace_collective(c, comm, root,
                     trace_is_root(comm, root) ? trace_bytes(count, type)
                                               : trace_bytes(elsewhere, type_elsewhere));
}

COLLECTIVE(Gather, gather,
           (const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
            trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, root, comm),
           rooted(&c, comm, root, in_count, in_type, out_count, out_type))
COLLECTIVE(Scatter, scatter,
           (const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
            trace_count in_count, MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, root, comm),
           rooted(&c, comm, root, out_count, out_type, in_count, in_type))

#define EXCHANGES(name, lower, ...)                                                                \
    COLLECTIVE(name, lower,                                                                        \
               (const void *out, trace_count out_count, MPI_Datatype out_type, void *in,           \
                trace_count in_count, MPI_Datatype in_type, MPI_Comm comm),                        \
               (out, out_count, out_type, in, in_count, in_type, comm), __VA_ARGS__)
EXCHANGES(Allgather, allgather,
          trace_collective(&c, comm, TRACE_NO_ROOT, trace_bytes(in_count, in_type)))
EXCHANGES(Alltoall, alltoall,
          trace_collective(&c, comm, TRACE_NO_ROOT, trace_bytes(in_count, in_type)))
EXCHANGES(Neighbor_allgather, neighbor_allgather, trace_other(&c))
EXCHANGES(Neighbor_alltoall, neighbor_alltoall, trace_other(&c))

/* ---- A vector of counts ---- */

static void rooted_vector(const struct trace_call *c, MPI_Comm comm, int root,
                          const trace_count *counts, MPI_Datatype type, trace_count own,
                          MPI_Datatype own_type)
{
    bool here = trace_is_root(comm, root);
    trace_one_vector(c, comm, root, here ? 0 : trace_bytes(own, own_type),
                     here ? trace_counts(counts) : TRACE_NO_COUNTS, type);
}

COLLECTIVE(Gatherv, gatherv,
           (const void *out, trace_count out_count, MPI_Datatype out_type, void *in,
            const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type, int root,
            MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, at, in_type, root, comm),
           rooted_vector(&c, comm, root, in_counts, in_type, out_count, out_type))
COLLECTIVE(Scatterv, scatterv,
           (const void *out, const trace_count out_counts[], const trace_at at[],
            MPI_Datatype out_type, void *in, trace_count in_count, MPI_Datatype in_type, int root,
            MPI_Comm comm),
           (out, out_counts, at, out_type, in, in_count, in_type, root, comm),
           rooted_vector(&c, comm, root, out_counts, out_type, in_count, in_type))

#define GATHERS_VECTOR(name, lower, ...)                                                           \
    COLLECTIVE(name, lower,                                                                        \
               (const void *out, trace_count out_count, MPI_Datatype out_type, void *in,           \
                const trace_count in_counts[], const trace_at at[], MPI_Datatype in_type,          \
                MPI_Comm comm),                                                                    \
               (out, out_count, out_type, in, in_counts, at, in_type, comm), __VA_ARGS__)
GATHERS_VECTOR(Allgatherv, allgatherv,
               trace_one_vector(&c, comm, TRACE_NO_ROOT, 0, trace_counts(in_counts), in_type))
GATHERS_VECTOR(Neighbor_allgatherv, neighbor_allgatherv, trace_other(&c))

COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void *out, void *in, const trace_count counts[], MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (out, in, counts, type, op, comm),
           trace_one_vector(&c, comm, TRACE_NO_ROOT, 0, trace_counts(counts), type))

/* ---- Two vectors of counts ---- */

#define EXCHANGES_VECTORS(name, lower, ...)                                                        \
    COLLECTIVE(name, lower,                                                                        \
               (const void *out, const trace_count out_counts[], const trace_at out_at[],          \
                MPI_Datatype out_type, void *in, const trace_count in_counts[],                    \
                const trace_at in_at[], MPI_Datatype in_type, MPI_Comm comm),                      \
               (out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm),           \
               __VA_ARGS__)
EXCHANGES_VECTORS(Alltoallv, alltoallv,
                  trace_two_vectors(&c, comm,
                                    &(struct trace_vectors){
                                        out == MPI_IN_PLACE, trace_counts(out_counts),
                                        trace_counts(in_counts), &out_type, &in_type, 0}))
EXCHANGES_VECTORS(Neighbor_alltoallv, neighbor_alltoallv, trace_other(&c))

COLLECTIVE_AS(Alltoallw, alltoallw, Alltoallv, alltoallv,
              (const void *out, const trace_count out_counts[], const trace_at out_at[],
               const MPI_Datatype out_types[], void *in, const trace_count in_counts[],
               const trace_at in_at[], const MPI_Datatype in_types[], MPI_Comm comm),
              (out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm),
              trace_two_vectors(&c, comm,
                                &(struct trace_vectors){
                                    out == MPI_IN_PLACE, trace_counts(out_counts),
                                    trace_counts(in_counts), out_types, in_types, 1}))
COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw,
           (const void *out, const trace_count out_counts[], const MPI_Aint out_at[],
            const MPI_Datatype out_types[], void *in, const trace_count in_counts[],
            const MPI_Aint in_at[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm),
           trace_other(&c))
