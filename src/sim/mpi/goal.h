/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A recording as a schedule. docs/goal-trace.md says what becomes of each call.
 *
 *     mpi_survey()    each rank once: tags, the order of collectives, what is missing
 *     mpi_balance()   each rank once more: every message has its receive
 *     mpi_schedule()  the ranks of the schedule, one after the other
 */
#ifndef SIM_MPI_GOAL_H
#define SIM_MPI_GOAL_H

#include "sim/gen/goal_gen.h"
#include "trace.h"

enum { MPI_ALGORITHMS_MOST = 8, MPI_NAMES_MOST = 64 };

/* Options of the schedule that is made of a recording. */
struct mpi_config {
    uint32_t blocks;                /* the schedule has this many times the ranks */
    bool gaps;                      /* calcs for the time between calls */
    uint64_t scale[2];              /* of these: numerator, denominator */
    bool partial;                   /* the recording may end early: cut what lacks its other half */
    int algorithm[MPI_COLLECTIVES]; /* index into mpi_algorithms[] */
};

/* A way to unroll a collective. */
struct mpi_algorithm {
    const char *name;
    void (*make)(struct goal_maker *m, const struct mpi_shape *s);
    const char *pattern; /* of the generators, without `make` */
    bool pieces;         /* that sends all at once unless told: it is told */
};

/* Of each collective, the first the default; ends with a NULL name. */
extern const struct mpi_algorithm mpi_algorithms[MPI_COLLECTIVES][MPI_ALGORITHMS_MOST];

/* mpi_unroll() makes a rank's part of a collective. */
void mpi_unroll(struct goal_maker *m, int collective, int algorithm, const struct mpi_shape *s);

/* mpi_choose() takes "COLLECTIVE=ALGORITHM" or "ALGORITHM" (for all that have it), as
 * many as a comma parts. Returns 0, or -1 with `error` set. */
int mpi_choose(struct mpi_config *c, const char *text, struct goal_error *error);

/* Counts of a recording. */
struct mpi_summary {
    uint64_t calls;
    uint64_t messages; /* of the program itself */
    uint64_t bytes;
    uint64_t collectives[MPI_COLLECTIVES]; /* once for each communicator that did it */
    uint64_t communicators;
    uint64_t threads;    /* of the rank that has the most */
    uint64_t gaps_ns;    /* of all ranks */
    uint64_t incomplete; /* wildcard receives that never completed */
    uint64_t unfinished; /* ranks without MPI_Finalize */
    uint64_t cut;        /* messages and receives without their other half */
    uint64_t operations; /* of the schedule */
    /* Calls that are not understood, or failed, by name. */
    struct mpi_name {
        char name[64];
        uint64_t count;
        bool failed;
    } names[MPI_NAMES_MOST];
    int name_count;
};

int mpi_survey(struct mpi_trace *t, const struct mpi_config *c, struct mpi_summary *s,
               struct goal_error *error);

/* How many messages go from rank to rank with a tag, and how many are received. */
struct mpi_channels;

/* mpi_balance() counts them. A difference is an error, unless the configuration is partial. */
int mpi_balance(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels **channels,
                struct goal_error *error);
void mpi_channels_free(struct mpi_channels *c);

/* mpi_schedule() writes the schedule to the file `fd`, or, if `text` is not NULL, as
 * text to that. */
int mpi_schedule(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels *channels,
                 struct mpi_summary *s, int fd, struct goal_stream *text, struct goal_error *error);

/* ---- Of the parts ---- */

/* mpi_make_rank() makes the operations of a loaded rank, in block `block`. */
int mpi_make_rank(struct mpi_trace *t, const struct mpi_config *c, const struct mpi_rank *r,
                  uint32_t block, struct goal_builder *b, struct goal_error *error);

/* The channels: mpi_count_rank() counts what a rank sends and receives; mpi_cut_rank()
 * makes a calc of each that lacks its other half and returns how many. */
int mpi_count_rank(struct mpi_channels *c, uint32_t rank, const struct goal_builder *b,
                   struct goal_error *error);
uint64_t mpi_cut_rank(struct mpi_channels *c, uint32_t rank, struct goal_builder *b);
struct mpi_channels *mpi_channels_make(void);
int mpi_channels_check(struct mpi_channels *c, struct goal_error *error);

#endif
