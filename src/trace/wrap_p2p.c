/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages: blocking, nonblocking, persistent. */
#include "wrap.h"

/* ---- Sends ---- */

static void sent(const struct trace_call *c, const char *line, trace_count count, MPI_Datatype type,
                 int to, int tag, MPI_Comm comm)
{
    trace_line(c, line, 4,
               (int64_t[]){trace_rank(to), tag, trace_bytes(count, type), trace_comm(comm)});
}

/* Writes the line of a send or receive that has a request. */
static void started(const struct trace_call *c, const char *line, bool receives, bool persistent,
                    const MPI_Request *request, trace_count count, MPI_Datatype type, int peer,
                    int tag, MPI_Comm comm)
{
    trace_lock();
    struct trace_request *r = trace_add_request(*request, receives);
    r->persistent = persistent;
    r->active = !persistent;
    int64_t number = r->number;
    trace_unlock();
    trace_line(c, line, 5,
               (int64_t[]){number, trace_rank(peer), trace_tag(tag), trace_bytes(count, type),
                           trace_comm(comm)});
}

#define SENDS(name, line)                                                                          \
    WRAP(name,                                                                                     \
         (const void *buf, trace_count count, MPI_Datatype type, int to, int tag, MPI_Comm comm),  \
         (buf, count, type, to, tag, comm), sent(&c, line, count, type, to, tag, comm))

#define STARTS(name, ...)                                                                          \
    WRAP(name,                                                                                     \
         (const void *buf, trace_count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,   \
          MPI_Request *request),                                                                   \
         (buf, count, type, to, tag, comm, request), __VA_ARGS__)

#define STARTS_SEND(name, line, persistent)                                                        \
    STARTS(name, started(&c, line, false, persistent, request, count, type, to, tag, comm))

SENDS(Send, "Send")
SENDS(Bsend, "Bsend")
SENDS(Ssend, "Send")
SENDS(Rsend, "Send")
STARTS_SEND(Isend, "Isend", false)
STARTS_SEND(Issend, "Isend", false)
STARTS_SEND(Irsend, "Isend", false)
STARTS_SEND(Send_init, "Send_init", true)
STARTS_SEND(Bsend_init, "Send_init", true)
STARTS_SEND(Ssend_init, "Send_init", true)
STARTS_SEND(Rsend_init, "Send_init", true)

/* Written as "Bsend", which is complete at once, whatever happens to its request. */
STARTS(Ibsend, sent(&c, "Bsend", count, type, to, tag, comm))

/* ---- Receives ---- */

#define STARTS_RECEIVE(name, line, persistent)                                                     \
    WRAP(name,                                                                                     \
         (void *buf, trace_count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,       \
          MPI_Request *request),                                                                   \
         (buf, count, type, from, tag, comm, request),                                             \
         started(&c, line, true, persistent, request, count, type, from, tag, comm))

STARTS_RECEIVE(Irecv, "Irecv", false)
STARTS_RECEIVE(Recv_init, "Recv_init", true)

WRAP_STATUS(Recv,
            (void *buf, trace_count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status),
            (buf, count, type, from, tag, comm, s),
            trace_line(&c, "Recv", 7,
                       (int64_t[]){trace_rank(from), trace_tag(tag), trace_bytes(count, type),
                                   trace_comm(comm), trace_rank(s->MPI_SOURCE), s->MPI_TAG,
                                   trace_received(s)}))

/* ---- A send and a receive in one call ---- */

static void exchanged(const struct trace_call *c, int to, int tag, int64_t bytes, int from,
                      int from_tag, int64_t room, MPI_Comm comm, const MPI_Status *s)
{
    trace_line(c, "Sendrecv", 10,
               (int64_t[]){trace_rank(to), tag, bytes, trace_rank(from), trace_tag(from_tag), room,
                           trace_comm(comm), trace_rank(s->MPI_SOURCE), s->MPI_TAG,
                           trace_received(s)});
}

WRAP_STATUS(Sendrecv,
            (const void *out, trace_count out_count, MPI_Datatype out_type, int to, int tag,
             void *in, trace_count in_count, MPI_Datatype in_type, int from, int from_tag,
             MPI_Comm comm, MPI_Status *status),
            (out, out_count, out_type, to, tag, in, in_count, in_type, from, from_tag, comm, s),
            exchanged(&c, to, tag, trace_bytes(out_count, out_type), from, from_tag,
                      trace_bytes(in_count, in_type), comm, s))
WRAP_STATUS(Sendrecv_replace,
            (void *buf, trace_count count, MPI_Datatype type, int to, int tag, int from,
             int from_tag, MPI_Comm comm, MPI_Status *status),
            (buf, count, type, to, tag, from, from_tag, comm, s),
            exchanged(&c, to, tag, trace_bytes(count, type), from, from_tag,
                      trace_bytes(count, type), comm, s))

/* ---- Receives of messages that a probe has matched ---- */

WRAP(Mrecv,
     (void *buf, trace_count count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
     (buf, count, type, message, status), trace_line(&c, "Mrecv", 0, NULL))

/* Written as "Mrecv", without a request: the message was received by the probe's line. */
WRAP(Imrecv,
     (void *buf, trace_count count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
     (buf, count, type, message, request), trace_line(&c, "Mrecv", 0, NULL))
