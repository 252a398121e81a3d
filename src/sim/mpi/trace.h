/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings of MPI programs, read rank by rank and turned into schedules.
 *
 *     folder ──► files.c ──► lines.c, allprof.c ──► resolve.c
 *                 which files       lines to calls               communicators, wildcards
 *                                                                       │
 *     schedule ◄── goal.c, collectives.c ◄── survey.c ◄─────┘
 *                  operations                       tags, order of collectives
 *
 * docs/goal-trace.md has the two formats, the operations that each call becomes, and the
 * assumptions. Each pass reads the ranks again, one by one, so the memory of the largest rank
 * suffices.
 *
 * Invariant of a rank that mpi_load() has read: peers are ranks of the whole program, or MPI_NONE,
 * or (traces of liballprof only) MPI_ANY; communicators are those of struct mpi_trace; requests are
 * below `requests`; receives have the source, tag and size of the message that they got; started
 * persistent requests are calls of their own; the calls of a thread do not overlap.
 */
#ifndef SIM_MPI_TRACE_H
#define SIM_MPI_TRACE_H

#include "base/array.h"
#include "sim/goal/file.h"

enum { MPI_NONE = -2, MPI_ANY = -1, MPI_SENT = -3, MPI_CANCELLED = -4 };
enum { MPI_WORLD = 0, MPI_SELF = 1 }; /* numbers of communicators in a recording */

enum mpi_kind {
    MPI_K_INIT,
    MPI_K_FINALIZE,
    MPI_K_COMM,      /* number, members... */
    MPI_K_INTERCOMM, /* number, size of the local group, members of both groups... */
    MPI_K_SEND,      /* peer tag bytes comm */
    MPI_K_BSEND,     /* peer tag bytes comm; the send is complete at once */
    MPI_K_RECV,      /* peer tag bytes comm, then of the message received: source tag bytes */
    MPI_K_ISEND,     /* request peer tag bytes comm */
    MPI_K_IRECV,
    MPI_K_SEND_INIT,
    MPI_K_RECV_INIT,
    MPI_K_START,    /* request... */
    MPI_K_COMPLETE, /* (request source tag bytes)... */
    MPI_K_SENDRECV, /* peer tag bytes, peer tag bytes comm, source tag bytes */
    MPI_K_MPROBE,   /* peer tag comm, source tag bytes */
    MPI_K_NOTHING,  /* a call without communication: its time is not the program's own */
    MPI_K_OTHER,    /* a call that is not understood: only its name is known */
    MPI_K_FAILED,
    MPI_K_COLLECTIVE,      /* request (if nonblocking), comm, root (if it has one), bytes... */
    MPI_K_COLLECTIVE_INIT, /* the same numbers: makes a persistent collective */
};

enum mpi_collective {
    MPI_BARRIER,
    MPI_BCAST,
    MPI_REDUCE,
    MPI_ALLREDUCE,
    MPI_SCAN,
    MPI_EXSCAN,
    MPI_REDUCE_SCATTER_BLOCK,
    MPI_GATHER,
    MPI_SCATTER,
    MPI_ALLGATHER,
    MPI_ALLTOALL,
    MPI_GATHERV,
    MPI_SCATTERV,
    MPI_ALLGATHERV,
    MPI_REDUCE_SCATTER,
    MPI_ALLTOALLV,
    MPI_COLLECTIVES,
};

/* Which numbers the line of a collective has behind the communicator. */
struct mpi_collective_form {
    const char *name; /* "Bcast"; the nonblocking one is "Ibcast" */
    bool root;
    int bytes;    /* how many single numbers of bytes */
    int vectors;  /* how many vectors, with a number for each rank: 0, 1 or 2 */
    bool at_root; /* only the root's line has the vectors */
};
extern const struct mpi_collective_form mpi_collective_forms[MPI_COLLECTIVES];

struct mpi_call {
    enum mpi_kind kind;
    enum mpi_collective collective;
    bool nonblocking; /* a collective with a request */
    /* it makes or starts a persistent collective; once resolved, its last number is the index of
     * that among the persistent collectives of its communicator */
    bool persistent;
    uint8_t thread;
    uint32_t count; /* how many numbers the call has */
    uint64_t first; /* index of the first of them */
    uint64_t line;
    uint64_t start; /* ns */
    uint64_t took;
    const char *name; /* of calls OTHER and FAILED: the name, in the file */
    uint32_t name_length;
};

/* The calls of a rank. */
struct mpi_rank {
    uint32_t rank;
    const char *path;
    struct mpi_call *calls;
    uint64_t count, room;
    int64_t *numbers;
    uint64_t number_count, number_room;
    uint64_t requests; /* the numbers of requests are below this */
    /* receives with wildcards that never completed; the schedule does not have them */
    uint64_t incomplete;
    bool finished; /* the rank has called MPI_Finalize */
    void *map;
    size_t map_length;
};

/* mpi_persistent() returns the index of the persistent collective that a call makes or starts,
 * among those of its communicator. */
static inline uint64_t mpi_persistent(const struct mpi_rank *r, const struct mpi_call *c)
{
    return (uint64_t)r->numbers[c->first + c->count - 1];
}

/* A list of members, and the communicators with these members. Each rank makes those in the same
 * order, which tells them apart. */
struct mpi_group {
    struct mpi_group *next; /* the next group with the same hash */
    uint32_t *members;
    uint32_t size;
    uint32_t split; /* intercommunicator: size of its first group; else 0 */
    uint32_t *comms;
    uint64_t comm_count, comm_room;
    uint64_t seen; /* how many of them the rank that is being read has made so far */
};

/* A step is the k-th collective of a communicator. The recordings of all members must agree on
 * it. */
struct mpi_step {
    uint8_t kind;
    bool persistent;
    int64_t root;
    int64_t bytes;
    uint32_t first_rank; /* the rank whose recording had the step first */
};

/* A step that makes a persistent collective. The k-th start of it at each member is one collective
 * operation, whatever other steps come between. */
struct mpi_persistent {
    uint64_t step;
    uint64_t starts;     /* starts of the member that has the most */
    uint64_t at;         /* starts of the rank that is being read */
    uint64_t least;      /* starts of the member that has the fewest */
    uint32_t first_rank; /* the first rank that has `starts` starts */
};

struct mpi_comm {
    struct mpi_group *group;
    int64_t highest_tag; /* highest tag of a message; -1: it has no messages */
    struct mpi_step *steps;
    uint64_t step_count, step_room;
    uint64_t at;    /* index of the next step of the rank that is being read */
    uint64_t least; /* number of steps of the member that has the fewest */
    struct mpi_persistent *persistents;
    uint64_t persistent_count, persistent_room;
    uint64_t persistents_seen; /* persistent collectives that the rank being read has made so far */
    uint32_t members_seen;
    /* its first tag in the schedule; tags of messages come first, then those of collectives */
    uint64_t base;
    uint32_t *grown; /* members of the extrapolated communicator, made if all ranks are members */
};

enum { MPI_GROUP_BUCKETS = 4096 };

struct mpi_trace {
    char **paths; /* by rank */
    uint32_t ranks;
    bool allprof; /* the format of liballprof */
    /* the survey is over: a rank that adds to the tables below now has changed its file since */
    bool surveyed;
    struct mpi_group *groups[MPI_GROUP_BUCKETS];
    struct mpi_comm *comms;
    uint64_t comm_count, comm_room;
    /* liballprof, by rank: it has receives of any tag; of one tag. It must not have both. */
    uint8_t *any_tag, *one_tag;
};

/* mpi_open() finds the files of a recording in a folder. Returns 0, or -1 with `error` set and
 * nothing to close. */
int mpi_open(struct mpi_trace *t, const char *folder, struct goal_error *error);
void mpi_close(struct mpi_trace *t);

/* mpi_load() reads a rank; mpi_unload() frees it, also after mpi_load() has failed. */
int mpi_load(struct mpi_trace *t, uint32_t rank, struct mpi_rank *r, struct goal_error *error);
void mpi_unload(struct mpi_rank *r);

/* ---- Functions that the files of the reader share ---- */

/* Each returns 0, or -1 with `error` set. */
int mpi_read_lines(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);
int mpi_read_allprof(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);
int mpi_resolve(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);

/* mpi_add_call() adds a call, and mpi_add_number() a number to the call that was added last; false
 * if memory is short. */
bool mpi_add_call(struct mpi_rank *r, const struct mpi_call *call);
bool mpi_add_number(struct mpi_rank *r, int64_t number);

/* First capacity of arrays, in elements. */
enum { MPI_ROOM = 16 };

/* mpi_fail() sets `error` to "FILE:LINE: ..." and returns -1. */
int mpi_fail(const struct mpi_rank *r, uint64_t line, struct goal_error *error, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* mpi_next_comm() returns the next communicator of those with the given members that the rank being
 * read makes; -1 with `error` set. */
int64_t mpi_next_comm(struct mpi_trace *t, const uint32_t *members, uint32_t size, uint32_t split,
                      struct goal_error *error);
void mpi_forget_seen(struct mpi_trace *t);

/* mpi_collective_named() finds the collective whose lines begin with `word`; false if there is
 * none. */
bool mpi_collective_named(const char *word, size_t length, enum mpi_collective *collective,
                          bool *nonblocking);

/* What the numbers in the line of a collective mean. */
struct mpi_shape {
    int64_t request; /* MPI_NONE: none */
    int64_t comm;
    int64_t root;       /* MPI_NONE: none */
    int64_t bytes;      /* the same at all ranks, or, in some collectives, those of this rank */
    const int64_t *out; /* vector of one number for each of `members`, or NULL */
    const int64_t *in;
    uint32_t members;
};

void mpi_shape(const struct mpi_rank *r, const struct mpi_call *c, uint32_t members,
               struct mpi_shape *shape);

#endif
