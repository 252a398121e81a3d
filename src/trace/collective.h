/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of collectives, those without a request and those with one. */
#ifndef TRACE_COLLECTIVE_H
#define TRACE_COLLECTIVE_H

#include "wrap.h"

enum { TRACE_NO_ROOT = -1, TRACE_NO_BYTES = -1 };

bool trace_is_root(MPI_Comm comm, int root);

void trace_collective(const struct trace_call *c, MPI_Comm comm, int root, int64_t bytes);

/* Counts of ranks, which calls of MPI 4 may have as MPI_Count; NULL: none. */
struct trace_counts {
    const void *list;
    bool large;
};

#define TRACE_NO_COUNTS ((struct trace_counts){NULL, false})

static inline struct trace_counts trace_counts(const trace_count *list)
{
    return (struct trace_counts){list, sizeof(*list) > sizeof(int)};
}

/* One count for each rank, at the root (elsewhere none, and `own` bytes), or at all. */
void trace_one_vector(const struct trace_call *c, MPI_Comm comm, int root, int64_t own,
                      struct trace_counts counts, MPI_Datatype type);

/* The parts that a rank sends to each rank, and gets from each. */
struct trace_vectors {
    bool in_place;
    struct trace_counts out_counts, in_counts;
    const MPI_Datatype *out_types, *in_types;
    int step;
};

void trace_two_vectors(const struct trace_call *c, MPI_Comm comm, const struct trace_vectors *v);

#endif
