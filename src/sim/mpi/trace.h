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
 * docs/goal-trace.md has the two formats, what becomes of each call, and what is
 * assumed. A rank is read anew for each pass, so memory is that of the largest rank.
 *
 * Invariant of a rank that mpi_load() gave: peers are ranks of the whole program,
 * or MPI_NONE, or (traces of liballprof only) MPI_ANY; communicators are those of
 * struct mpi_trace; requests are below `requests`; receives have the source,
 * tag and size of the message that they got; started persistent requests are calls
 * of their own; the calls of a thread do not overlap.
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
    MPI_K_INTERCOMM, /* number, size of the local group, members... */
    MPI_K_SEND,      /* peer tag bytes comm */
    MPI_K_BSEND,     /* the same; complete at once */
    MPI_K_RECV,      /* peer tag bytes comm, and what came: source tag bytes */
    MPI_K_ISEND,     /* request peer tag bytes comm */
    MPI_K_IRECV,
    MPI_K_SEND_INIT,
    MPI_K_RECV_INIT,
    MPI_K_START,    /* request... */
    MPI_K_COMPLETE, /* (request source tag bytes)... */
    MPI_K_SENDRECV, /* peer tag bytes, peer tag bytes comm, source tag bytes */
    MPI_K_MPROBE,   /* peer tag comm, source tag bytes */
    MPI_K_NOTHING,  /* time that is not the program's own */
    MPI_K_OTHER,    /* not understood: only its name is known */
    MPI_K_FAILED,
    MPI_K_COLLECTIVE,      /* request (if it is nonblocking), comm, root (if any), bytes... */
    MPI_K_COLLECTIVE_INIT, /* the same: one that can be started again and again */
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

/* The numbers that the line of a collective has after the communicator. */
struct mpi_collective_form {
    const char *name; /* "Bcast"; the nonblocking one is "Ibcast" */
    bool root;
    int bytes;    /* numbers always there */
    int vectors;  /* of one number for each rank: 0, 1 or 2 */
    bool at_root; /* only the root has them */
};
extern const struct mpi_collective_form mpi_collective_forms[MPI_COLLECTIVES];

struct mpi_call {
    enum mpi_kind kind;
    enum mpi_collective collective;
    bool nonblocking; /* a collective with a request */
    bool persistent;  /* it makes a persistent one, or starts it; when resolved its last number says
                         the how-manieth of its communicator it is */
    uint8_t thread;
    uint32_t count; /* of its numbers */
    uint64_t first; /* of them */
    uint64_t line;
    uint64_t start; /* ns */
    uint64_t took;
    const char *name; /* of OTHER and FAILED, in the file */
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
    uint64_t requests;   /* numbers of requests are below */
    uint64_t incomplete; /* wildcard receives that never completed: not in the schedule */
    bool finished;       /* it has called MPI_Finalize */
    void *map;
    size_t map_length;
};

/* mpi_persistent() is which of its communicator's persistent collectives a call makes or starts. */
static inline uint64_t mpi_persistent(const struct mpi_rank *r, const struct mpi_call *c)
{
    return (uint64_t)r->numbers[c->first + c->count - 1];
}

/* A list of members, and the communicators that have it: in each rank they are told
 * apart by the order in which they were made. */
struct mpi_group {
    struct mpi_group *next; /* of the same hash */
    uint32_t *members;
    uint32_t size;
    uint32_t split; /* of an intercommunicator the size of its first group, else 0 */
    uint32_t *comms;
    uint64_t comm_count, comm_room;
    uint64_t seen; /* of them in the rank that is being read */
};

/* The k-th collective of a communicator, of which every member must say the same. */
struct mpi_step {
    uint8_t kind;
    bool persistent;
    int64_t root;
    int64_t bytes;
    uint32_t first_rank; /* rank that said so first */
};

/* A step that makes a persistent collective. The k-th starts of all members are one collective,
 * whatever other steps stand between. */
struct mpi_persistent {
    uint64_t step;
    uint64_t starts;     /* of the member that started it most often */
    uint64_t at;         /* of the rank that is being read */
    uint64_t least;      /* of the member that started it least often */
    uint32_t first_rank; /* rank that was the first to start it that often */
};

struct mpi_comm {
    struct mpi_group *group;
    int64_t highest_tag; /* of messages; -1: none */
    struct mpi_step *steps;
    uint64_t step_count, step_room;
    uint64_t at;    /* the next step of the rank that is being read */
    uint64_t least; /* steps of the member that has the fewest */
    struct mpi_persistent *persistents;
    uint64_t persistent_count, persistent_room;
    uint64_t persistents_seen; /* of the rank that is being read */
    uint32_t members_seen;
    uint64_t base;   /* its first tag in the schedule: messages', then collectives' */
    uint32_t *grown; /* members when extrapolated, if it has all ranks */
};

enum { MPI_GROUP_BUCKETS = 4096 };

struct mpi_trace {
    char **paths; /* of the ranks, in order */
    uint32_t ranks;
    bool allprof;  /* the format of liballprof */
    bool surveyed; /* the tables below are complete: a rank that adds to them has changed */
    struct mpi_group *groups[MPI_GROUP_BUCKETS];
    struct mpi_comm *comms;
    uint64_t comm_count, comm_room;
    /* liballprof: receives of any tag, and of one; a rank may have but one kind. */
    uint8_t *any_tag, *one_tag;
};

/* mpi_open() finds the files of a recording. Returns 0, or -1 with `error` set and
 * nothing to close. */
int mpi_open(struct mpi_trace *t, const char *folder, struct goal_error *error);
void mpi_close(struct mpi_trace *t);

/* mpi_load() reads a rank; mpi_unload() frees it, also one that failed to load. */
int mpi_load(struct mpi_trace *t, uint32_t rank, struct mpi_rank *r, struct goal_error *error);
void mpi_unload(struct mpi_rank *r);

/* ---- For the parts of the reader ---- */

/* Each returns 0, or -1 with `error` set. */
int mpi_read_lines(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);
int mpi_read_allprof(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);
int mpi_resolve(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error);

/* mpi_add_call() adds a call whose numbers follow with mpi_add_number(); false: no memory. */
bool mpi_add_call(struct mpi_rank *r, const struct mpi_call *call);
bool mpi_add_number(struct mpi_rank *r, int64_t number);

/* Elements of an array that grows, at first. */
enum { MPI_ROOM = 16 };

/* mpi_fail() sets `error` to "FILE:LINE: ..." and returns -1. */
int mpi_fail(const struct mpi_rank *r, uint64_t line, struct goal_error *error, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* mpi_next_comm() finds the communicator that this rank makes next of those with
 * these members; -1 with `error` set. */
int64_t mpi_next_comm(struct mpi_trace *t, const uint32_t *members, uint32_t size, uint32_t split,
                      struct goal_error *error);
void mpi_forget_seen(struct mpi_trace *t);

/* mpi_collective_named() finds the collective whose line begins with that word. */
bool mpi_collective_named(const char *word, size_t length, enum mpi_collective *collective,
                          bool *nonblocking);

/* The numbers of a collective's line. */
struct mpi_shape {
    int64_t request; /* MPI_NONE: none */
    int64_t comm;
    int64_t root;       /* MPI_NONE: none */
    int64_t bytes;      /* of the ranks alike, or of this rank where others differ */
    const int64_t *out; /* one number for each of `members`, or NULL */
    const int64_t *in;
    uint32_t members;
};

void mpi_shape(const struct mpi_rank *r, const struct mpi_call *c, uint32_t members,
               struct mpi_shape *shape);

#endif
