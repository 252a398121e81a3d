/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recorder of MPI programs: a library between a program and its MPI. By MPI's profiling
 * interface each MPI_X of this library calls the MPI's PMPI_X, and writes a line when that has
 * returned. docs/goal-trace.md describes the lines.
 *
 *     wrap_*.c ──► writer.c     one line a call, in blocks to rank-N.trace
 *        │ ├─────► requests.c   MPI_Request ──► number, as long as it is unfinished
 *        │ └─────► comms.c      MPI_Comm ──► number, kept as an attribute of it
 *        ▼
 *      PMPI_*
 *
 * Invariants: a line is written as a whole, with numbers of a call that has ended; the recorder
 * changes nothing that the program sees; a call that the MPI makes itself inside another call is
 * not recorded; an error of the recorder ends the recording, with one message, and never the
 * program.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers that lines have instead of MPI's constants, whose values differ from MPI to MPI. */
enum { TRACE_ANY = -1, TRACE_NULL = -2, TRACE_SENT = -3, TRACE_CANCELLED = -4 };

/* A call that is in progress. The wrapper sets `name`, and for a collective `line`, `request` and
 * `persistent`. */
struct trace_call {
    const char *name;           /* "MPI_Send" */
    const char *line;           /* "Ibcast" */
    const MPI_Request *request; /* the request of a collective; NULL: it has none */
    /* the request is persistent: it does nothing until the program starts it */
    bool persistent;
    bool outermost; /* the program made the call, not the MPI inside another call */
    uint64_t start;
};

void trace_enter(struct trace_call *c);

/* trace_leave() ends a call that has returned `rc`. True: the wrapper writes its line. If the call
 * has failed, trace_leave() writes a line that says so and returns false. */
bool trace_leave(struct trace_call *c, int rc);

/* trace_line() writes a line of `count` numbers. A longer line is written in parts: trace_begin()
 * takes the recorder's lock and begins the line, trace_number() appends a number, trace_end() ends
 * the line and gives the lock. */
void trace_line(const struct trace_call *c, const char *name, int count, const int64_t *numbers);
void trace_begin(const struct trace_call *c, const char *name);
void trace_number(int64_t number);
void trace_end(void);

/* trace_other() writes a line that names a call which the recorder does not understand. */
void trace_other(const struct trace_call *c);

/* trace_poll() counts a call (MPI_Test and its like) that found no completion. Before the thread's
 * next line a line is written with how many these were, and their time. */
void trace_poll(const struct trace_call *c);

void trace_open(const struct trace_call *c, int level); /* called after MPI_Init */
void trace_close(void);                                 /* called before MPI_Finalize */
void trace_flush(void);

/* trace_fortran() makes the MPI's Fortran bindings call MPI_X of this library where they call
 * PMPI_X. */
void trace_fortran(void);

static inline int64_t trace_rank(int rank)
{
    return rank == MPI_ANY_SOURCE ? TRACE_ANY : rank == MPI_PROC_NULL ? TRACE_NULL : rank;
}

static inline int64_t trace_tag(int tag)
{
    return tag == MPI_ANY_TAG ? TRACE_ANY : tag;
}

/* trace_bytes() returns the bytes of `count` elements; 0 for MPI_DATATYPE_NULL, which programs pass
 * for arguments without meaning. */
int64_t trace_bytes(int64_t count, MPI_Datatype type);
int64_t trace_received(const MPI_Status *status);

/* ---- Communicators ---- */

/* trace_comm() returns the number of a communicator; TRACE_NULL if the call that made it is not
 * understood. trace_comm_size() returns the size of the group that vectors of counts refer to: of
 * an intercommunicator the remote one. */
int64_t trace_comm(MPI_Comm comm);
int trace_comm_size(MPI_Comm comm);
int trace_comm_rank(MPI_Comm comm);

/* trace_new_comm() numbers a new communicator, and writes a line with its members.
 * trace_promise_comm() does the same for a communicator like `parent` that is complete only when
 * its request is; trace_promised_comm() is called then. */
void trace_new_comm(const struct trace_call *c, MPI_Comm comm);
int64_t trace_promise_comm(const struct trace_call *c, MPI_Comm parent);
void trace_promised_comm(MPI_Comm comm, int64_t number);
void trace_comms_open(void);

/* ---- Requests ---- */

struct trace_request {
    struct trace_request *next; /* next in the same bucket */
    MPI_Request handle;
    int64_t number;
    bool receives;
    bool persistent;
    bool active;
    MPI_Comm comm; /* of MPI_Comm_idup: the communicator that is complete with the request */
    int64_t comm_number;
};

/* trace_add_request() numbers a request that has started. Several pending operations may have the
 * same handle, since MPIs have predefined requests for operations that are complete at once: they
 * are found in the order in which they were added. The callers of all these functions hold the
 * recorder's lock. */
struct trace_request *trace_add_request(MPI_Request handle, bool receives);
struct trace_request *trace_find_request(MPI_Request handle, bool active);
void trace_drop_request(struct trace_request *r);

void trace_lock(void);
void trace_unlock(void);

#endif
