/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from one rank to another: blocking, nonblocking, persistent, probed. */
#include "trace.h"

/* ---- Sends ---- */

static int sent(struct trace_call *c, const char *name, int rc, int count, MPI_Datatype type,
                int to, int tag, MPI_Comm comm)
{
    bool buffered = name[4] == 'B' || name[5] == 'b'; /* MPI_Bsend, MPI_Ibsend */
    if (trace_leave(c, name, rc)) {
        trace_line(c, buffered ? "Bsend" : "Send", 4,
                   (int64_t[]){trace_rank(to), tag, trace_bytes(count, type), trace_comm(comm)});
    }
    return rc;
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, "MPI_Send", PMPI_Send(buf, count, type, to, tag, comm), count, type, to, tag,
                comm);
}

int MPI_Bsend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, "MPI_Bsend", PMPI_Bsend(buf, count, type, to, tag, comm), count, type, to, tag,
                comm);
}

int MPI_Ssend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, "MPI_Ssend", PMPI_Ssend(buf, count, type, to, tag, comm), count, type, to, tag,
                comm);
}

int MPI_Rsend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, "MPI_Rsend", PMPI_Rsend(buf, count, type, to, tag, comm), count, type, to, tag,
                comm);
}

/* What a request was made of; `line` names the line. */
struct started {
    const char *name;
    const char *line;
    bool receives;
    bool persistent;
    int count;
    MPI_Datatype type;
    int peer;
    int tag;
    MPI_Comm comm;
};

static int started(struct trace_call *c, int rc, const MPI_Request *request,
                   const struct started *s)
{
    if (trace_leave(c, s->name, rc)) {
        trace_lock();
        struct trace_request *r = trace_add_request(*request, s->receives);
        r->persistent = s->persistent;
        r->active = !s->persistent;
        int64_t number = r->number;
        trace_unlock();
        trace_line(c, s->line, 5,
                   (int64_t[]){number, trace_rank(s->peer), trace_tag(s->tag),
                               trace_bytes(s->count, s->type), trace_comm(s->comm)});
    }
    return rc;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Isend(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Isend", "Isend", false, false, count, type, to, tag, comm});
}

/* Like MPI_Bsend it is complete at once, whatever its request says. */
int MPI_Ibsend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, "MPI_Ibsend", PMPI_Ibsend(buf, count, type, to, tag, comm, request), count,
                type, to, tag, comm);
}

int MPI_Issend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Issend(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Issend", "Isend", false, false, count, type, to, tag, comm});
}

int MPI_Irsend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Irsend(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Irsend", "Isend", false, false, count, type, to, tag, comm});
}

int MPI_Send_init(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Send_init(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Send_init", "Send_init", false, true, count, type, to, tag, comm});
}

int MPI_Bsend_init(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Bsend_init(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Bsend_init", "Send_init", false, true, count, type, to, tag, comm});
}

int MPI_Ssend_init(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Ssend_init(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Ssend_init", "Send_init", false, true, count, type, to, tag, comm});
}

int MPI_Rsend_init(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Rsend_init(buf, count, type, to, tag, comm, request), request,
        &(struct started){"MPI_Rsend_init", "Send_init", false, true, count, type, to, tag, comm});
}

/* ---- Receives ---- */

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Irecv(buf, count, type, from, tag, comm, request), request,
        &(struct started){"MPI_Irecv", "Irecv", true, false, count, type, from, tag, comm});
}

int MPI_Recv_init(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_Recv_init(buf, count, type, from, tag, comm, request), request,
        &(struct started){"MPI_Recv_init", "Recv_init", true, true, count, type, from, tag, comm});
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Recv(buf, count, type, from, tag, comm, s);
    if (trace_leave(&c, "MPI_Recv", rc)) {
        trace_line(&c, "Recv", 7,
                   (int64_t[]){trace_rank(from), trace_tag(tag), trace_bytes(count, type),
                               trace_comm(comm), trace_rank(s->MPI_SOURCE), s->MPI_TAG,
                               trace_received(s)});
    }
    return rc;
}

/* ---- Both ---- */

static void exchanged(const struct trace_call *c, int to, int tag, int64_t bytes, int from,
                      int from_tag, int64_t room, MPI_Comm comm, const MPI_Status *s)
{
    trace_line(c, "Sendrecv", 10,
               (int64_t[]){trace_rank(to), tag, bytes, trace_rank(from), trace_tag(from_tag), room,
                           trace_comm(comm), trace_rank(s->MPI_SOURCE), s->MPI_TAG,
                           trace_received(s)});
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int tag, void *in,
                 int in_count, MPI_Datatype in_type, int from, int from_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Sendrecv(out, out_count, out_type, to, tag, in, in_count, in_type, from, from_tag,
                           comm, s);
    if (trace_leave(&c, "MPI_Sendrecv", rc)) {
        exchanged(&c, to, tag, trace_bytes(out_count, out_type), from, from_tag,
                  trace_bytes(in_count, in_type), comm, s);
    }
    return rc;
}

int MPI_Sendrecv_replace(void *buf, int count, MPI_Datatype type, int to, int tag, int from,
                         int from_tag, MPI_Comm comm, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Sendrecv_replace(buf, count, type, to, tag, from, from_tag, comm, s);
    if (trace_leave(&c, "MPI_Sendrecv_replace", rc)) {
        int64_t bytes = trace_bytes(count, type);
        exchanged(&c, to, tag, bytes, from, from_tag, bytes, comm, s);
    }
    return rc;
}

/* ---- Probes ---- */

static void probed(const struct trace_call *c, const char *line, int from, int tag, MPI_Comm comm,
                   const MPI_Status *s)
{
    trace_line(c, line, 6,
               (int64_t[]){trace_rank(from), trace_tag(tag), trace_comm(comm),
                           trace_rank(s->MPI_SOURCE), s->MPI_TAG, trace_received(s)});
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Probe(from, tag, comm, s);
    if (trace_leave(&c, "MPI_Probe", rc)) {
        probed(&c, "Probe", from, tag, comm, s);
    }
    return rc;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Iprobe(from, tag, comm, flag, s);
    if (trace_leave(&c, "MPI_Iprobe", rc)) {
        if (*flag) {
            probed(&c, "Probe", from, tag, comm, s);
        } else {
            trace_poll(&c);
        }
    }
    return rc;
}

/* A matched probe takes the message out of matching: it is written as the receive. */
int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Mprobe(from, tag, comm, message, s);
    if (trace_leave(&c, "MPI_Mprobe", rc)) {
        probed(&c, "Mprobe", from, tag, comm, s);
    }
    return rc;
}

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_Improbe(from, tag, comm, flag, message, s);
    if (trace_leave(&c, "MPI_Improbe", rc)) {
        if (*flag) {
            probed(&c, "Mprobe", from, tag, comm, s);
        } else {
            trace_poll(&c);
        }
    }
    return rc;
}

int MPI_Mrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Mrecv(buf, count, type, message, status);
    if (trace_leave(&c, "MPI_Mrecv", rc)) {
        trace_line(&c, "Mrecv", 0, NULL);
    }
    return rc;
}

int MPI_Imrecv(void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_Imrecv(buf, count, type, message, request);
    if (trace_leave(&c, "MPI_Imrecv", rc)) {
        trace_line(&c, "Mrecv", 0, NULL); /* its request is of no message any more */
    }
    return rc;
}
