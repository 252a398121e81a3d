/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recorder of MPI programs: a library that stands between a program and its
 * MPI (the profiling interface: each MPI_X here calls PMPI_X) and writes a line for
 * each call that has ended. docs/goal-trace.md describes the lines.
 *
 *     wrap_*.c ──► writer.c     one line a call, in blocks to rank-N.trace
 *        │ ├─────► requests.c   MPI_Request ──► number, as long as it is unfinished
 *        │ └─────► comms.c      MPI_Comm ──► number, kept as an attribute of it
 *        ▼
 *      PMPI_*
 *
 * Invariants: a line is written whole, and its number comes from the call that has
 * ended; nothing here changes what the program sees; a call that the MPI makes
 * of itself while it is in another one is not recorded; what goes wrong here
 * ends the recording with one message, never the program.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers that stand in a line for MPI's constants, whose values differ from MPI to MPI. */
enum { TRACE_ANY = -1, TRACE_NULL = -2, TRACE_SENT = -3, TRACE_CANCELLED = -4 };

/* A call on its way: the caller sets its name, and of a collective what its line begins with. */
struct trace_call {
    const char *name;           /* "MPI_Send" */
    const char *line;           /* "Ibcast" */
    const MPI_Request *request; /* of a collective; NULL: it has none */
    bool persistent;            /* its request does nothing until it is started */
    bool outermost;             /* not made by another MPI call */
    uint64_t start;
};

void trace_enter(struct trace_call *c);

/* trace_leave() ends a call that returned `rc`. True: write its line. A call that
 * failed is written as such here. */
bool trace_leave(struct trace_call *c, int rc);

/* trace_line() writes a line of `count` numbers. For longer ones trace_begin() takes
 * the recorder's lock and begins the line, trace_number() adds to it, trace_end()
 * ends it and gives the lock back. */
void trace_line(const struct trace_call *c, const char *name, int count, const int64_t *numbers);
void trace_begin(const struct trace_call *c, const char *name);
void trace_number(int64_t number);
void trace_end(void);

/* trace_other() writes that a call was made which is not understood. */
void trace_other(const struct trace_call *c);

/* trace_poll() counts a call that found nothing; the thread's next line follows one that says how
 * many these were. */
void trace_poll(const struct trace_call *c);

void trace_open(const struct trace_call *c, int level); /* after MPI_Init */
void trace_close(void);                                 /* before MPI_Finalize */
void trace_flush(void);

/* trace_fortran() makes the MPI's bindings of Fortran call MPI_X where they call PMPI_X. */
void trace_fortran(void);

static inline int64_t trace_rank(int rank)
{
    return rank == MPI_ANY_SOURCE ? TRACE_ANY : rank == MPI_PROC_NULL ? TRACE_NULL : rank;
}

static inline int64_t trace_tag(int tag)
{
    return tag == MPI_ANY_TAG ? TRACE_ANY : tag;
}

/* Bytes of `count` elements; of MPI_DATATYPE_NULL, which stands for nothing, 0. */
int64_t trace_bytes(int64_t count, MPI_Datatype type);
int64_t trace_received(const MPI_Status *status);

/* ---- Communicators ---- */

/* trace_comm() is the number of a communicator; TRACE_NULL if it was made in a way
 * that is not understood. trace_comm_size() is that of the group that counts in a
 * vector collective have: the remote one of an intercommunicator. */
int64_t trace_comm(MPI_Comm comm);
int trace_comm_size(MPI_Comm comm);
int trace_comm_rank(MPI_Comm comm);

/* trace_new_comm() numbers a communicator that was made, and writes its members.
 * trace_promise_comm() does so for one like `parent` that a request will complete;
 * trace_promised_comm() is told when it has. */
void trace_new_comm(const struct trace_call *c, MPI_Comm comm);
int64_t trace_promise_comm(const struct trace_call *c, MPI_Comm parent);
void trace_promised_comm(MPI_Comm comm, int64_t number);
void trace_comms_open(void);

/* ---- Requests ---- */

struct trace_request {
    struct trace_request *next; /* of the same bucket */
    MPI_Request handle;
    int64_t number;
    bool receives;
    bool persistent;
    bool active;
    MPI_Comm comm; /* of MPI_Comm_idup: what completes with it */
    int64_t comm_number;
};

/* trace_add_request() numbers what has started. Several unfinished operations may
 * share a handle (MPIs have ready-made ones for what is complete at once): they are
 * found in the order in which they came. All need the recorder's lock. */
struct trace_request *trace_add_request(MPI_Request handle, bool receives);
struct trace_request *trace_find_request(MPI_Request handle, bool active);
void trace_drop_request(struct trace_request *r);

void trace_lock(void);
void trace_unlock(void);

#endif
