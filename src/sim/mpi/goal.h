/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns a recording into a schedule. docs/goal-trace.md has the operations that each call becomes.
 *
 *     mpi_survey()    each rank once: tags, the order of collectives, what is missing
 *     mpi_balance()   each rank once more: every message has its receive
 *     mpi_schedule()  the ranks of the schedule, one after the other
 */
#ifndef SIM_MPI_GOAL_H
#define SIM_MPI_GOAL_H

#include "grid.h"
#include "sim/gen/goal_gen.h"
#include "trace.h"

enum { MPI_ALGORITHMS_MOST = 8, MPI_NAMES_MOST = 64 };

/* Options of the conversion. */
struct mpi_config {
    uint32_t blocks; /* the schedule has this many times the recording's ranks */
    /* or, if the program is regular, those of this grid; NULL: it is not said to be */
    const struct mpi_regular *regular;
    bool gaps;         /* the time between calls becomes calcs */
    uint64_t scale[2]; /* factor of these calcs: numerator, denominator */
    /* the recording may have ended early: messages and receives without a partner are left out */
    bool partial;
    int algorithm[MPI_COLLECTIVES]; /* index into mpi_algorithms[] */
};

/* An algorithm to unroll a collective: a function, or a pattern of the generators. */
struct mpi_algorithm {
    const char *name;
    void (*make)(struct goal_maker *m, const struct mpi_shape *s);
    const char *pattern; /* name of the pattern, if `make` is NULL */
    bool pieces;         /* the pattern sends in segments only if it is told to; then it is told */
};

/* The algorithms of each collective; the first is the default, and a NULL name ends them. */
extern const struct mpi_algorithm mpi_algorithms[MPI_COLLECTIVES][MPI_ALGORITHMS_MOST];

/* mpi_unroll() adds a rank's messages of a collective. */
void mpi_unroll(struct goal_maker *m, int collective, int algorithm, const struct mpi_shape *s);

/* mpi_choose() reads items "COLLECTIVE=ALGORITHM", or "ALGORITHM" for all collectives that have it,
 * with commas between them. Returns 0, or -1 with `error` set. */
int mpi_choose(struct mpi_config *c, const char *text, struct goal_error *error);

/* Figures of a recording. */
struct mpi_summary {
    uint64_t calls;
    uint64_t messages; /* messages of the program itself, without those of collectives */
    uint64_t bytes;
    /* each is counted once for its communicator, not once for each rank */
    uint64_t collectives[MPI_COLLECTIVES];
    uint64_t communicators;
    uint64_t threads;    /* threads of the rank that has the most */
    uint64_t gaps_ns;    /* time between calls, of all ranks together */
    uint64_t incomplete; /* wildcard receives that never completed */
    uint64_t unfinished; /* ranks without MPI_Finalize */
    uint64_t cut;        /* messages and receives that were left out since they have no partner */
    uint64_t operations; /* operations of the schedule */
    /* The names of calls that are not understood or that failed, and how often. */
    struct mpi_name {
        char name[64];
        uint64_t count;
        bool failed;
    } names[MPI_NAMES_MOST];
    int name_count;
};

int mpi_survey(struct mpi_trace *t, const struct mpi_config *c, struct mpi_summary *s,
               struct goal_error *error);

/* How many messages each sender sends to each receiver with each tag, and how many of them the
 * receiver receives. */
struct mpi_channels;

/* mpi_balance() makes these counts. If a send or receive has no partner that is an error, unless
 * the configuration is `partial`. */
int mpi_balance(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels **channels,
                struct goal_error *error);
void mpi_channels_free(struct mpi_channels *c);

/* mpi_schedule() writes the schedule: to the file `fd`, or, if `text` is not NULL, as text to
 * that. */
int mpi_schedule(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels *channels,
                 struct mpi_summary *s, int fd, struct goal_stream *text, struct goal_error *error);

/* ---- Functions that the files of this room share ---- */

/* mpi_ranks() is how many ranks the schedule has, mpi_recorded() the rank of the recording that
 * does what one of them does. mpi_make_rank() adds the operations of that one, which was loaded,
 * for rank `rank` of the schedule. */
uint32_t mpi_ranks(const struct mpi_trace *t, const struct mpi_config *c);
uint32_t mpi_recorded(const struct mpi_trace *t, const struct mpi_config *c, uint32_t rank);
int mpi_make_rank(struct mpi_trace *t, const struct mpi_config *c, const struct mpi_rank *r,
                  uint32_t rank, struct goal_builder *b, struct goal_error *error);

/* mpi_count_rank() counts the messages that a rank sends and receives. mpi_cut_rank() replaces each
 * send and receive without a partner by a calc, and returns how many there were. */
int mpi_count_rank(struct mpi_channels *c, uint32_t rank, const struct goal_builder *b,
                   struct goal_error *error);
uint64_t mpi_cut_rank(struct mpi_channels *c, uint32_t rank, struct goal_builder *b);
struct mpi_channels *mpi_channels_make(void);
int mpi_channels_check(struct mpi_channels *c, struct goal_error *error);

#endif
