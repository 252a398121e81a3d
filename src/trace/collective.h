/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the lines of collectives: blocking, nonblocking and persistent. */
#ifndef TRACE_COLLECTIVE_H
#define TRACE_COLLECTIVE_H

#include "wrap.h"

enum { TRACE_NO_ROOT = -1, TRACE_NO_BYTES = -1 };

bool trace_is_root(MPI_Comm comm, int root);

void trace_collective(const struct trace_call *c, MPI_Comm comm, int root, int64_t bytes);

/* A vector of counts, which in calls of MPI 4 may be of type MPI_Count (`large`) instead of int; a
 * NULL list: there is none. */
struct trace_counts {
    const void *list;
    bool large;
};

#define TRACE_NO_COUNTS ((struct trace_counts){NULL, false})

static inline struct trace_counts trace_counts(const trace_count *list)
{
    return (struct trace_counts){list, sizeof(*list) > sizeof(int)};
}

/* trace_one_vector() writes the line of a collective with one vector of counts. With a root only
 * the root has the vector, and each rank's line has `own` bytes first; without a root all ranks
 * have it. */
void trace_one_vector(const struct trace_call *c, MPI_Comm comm, int root, int64_t own,
                      struct trace_counts counts, MPI_Datatype type);

/* The vectors of a collective in which each rank sends a part to each rank, and gets one from
 * each. */
struct trace_vectors {
    bool in_place;
    struct trace_counts out_counts, in_counts;
    const MPI_Datatype *out_types, *in_types;
    int step;
};

void trace_two_vectors(const struct trace_call *c, MPI_Comm comm, const struct trace_vectors *v);

#endif
