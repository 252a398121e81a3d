/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from one rank to another: blocking, nonblocking, persistent. */
#include "large.h"

/* ---- Sends ---- */

static int sent(struct trace_call *c, const char *name, int rc, int64_t count, MPI_Datatype type,
                int to, int tag, MPI_Comm comm)
{
    bool buffered = name[4] == 'B' || name[5] == 'b'; /* MPI_Bsend, MPI_Ibsend */
    if (trace_leave(c, name, rc)) {
        trace_line(c, buffered ? "Bsend" : "Send", 4,
                   (int64_t[]){trace_rank(to), tag, trace_bytes(count, type), trace_comm(comm)});
    }
    return rc;
}

int MPI_(Send)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
               MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, NAME_OF(Send), PMPI_(Send)(buf, count, type, to, tag, comm), count, type, to,
                tag, comm);
}

int MPI_(Bsend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, NAME_OF(Bsend), PMPI_(Bsend)(buf, count, type, to, tag, comm), count, type, to,
                tag, comm);
}

int MPI_(Ssend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, NAME_OF(Ssend), PMPI_(Ssend)(buf, count, type, to, tag, comm), count, type, to,
                tag, comm);
}

int MPI_(Rsend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                MPI_Comm comm)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, NAME_OF(Rsend), PMPI_(Rsend)(buf, count, type, to, tag, comm), count, type, to,
                tag, comm);
}

/* What a request was made of; `line` names the line. */
struct started {
    const char *name;
    const char *line;
    bool receives;
    bool persistent;
    int64_t count;
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

int MPI_(Isend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_(Isend)(buf, count, type, to, tag, comm, request), request,
        &(struct started){NAME_OF(Isend), "Isend", false, false, count, type, to, tag, comm});
}

/* Like MPI_Bsend it is complete at once, whatever its request says. */
int MPI_(Ibsend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                 MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return sent(&c, NAME_OF(Ibsend), PMPI_(Ibsend)(buf, count, type, to, tag, comm, request), count,
                type, to, tag, comm);
}

int MPI_(Issend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                 MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_(Issend)(buf, count, type, to, tag, comm, request), request,
        &(struct started){NAME_OF(Issend), "Isend", false, false, count, type, to, tag, comm});
}

int MPI_(Irsend)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                 MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_(Irsend)(buf, count, type, to, tag, comm, request), request,
        &(struct started){NAME_OF(Irsend), "Isend", false, false, count, type, to, tag, comm});
}

int MPI_(Send_init)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                    MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(&c, PMPI_(Send_init)(buf, count, type, to, tag, comm, request), request,
                   &(struct started){NAME_OF(Send_init), "Send_init", false, true, count, type, to,
                                     tag, comm});
}

int MPI_(Bsend_init)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(&c, PMPI_(Bsend_init)(buf, count, type, to, tag, comm, request), request,
                   &(struct started){NAME_OF(Bsend_init), "Send_init", false, true, count, type, to,
                                     tag, comm});
}

int MPI_(Ssend_init)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(&c, PMPI_(Ssend_init)(buf, count, type, to, tag, comm, request), request,
                   &(struct started){NAME_OF(Ssend_init), "Send_init", false, true, count, type, to,
                                     tag, comm});
}

int MPI_(Rsend_init)(const void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(&c, PMPI_(Rsend_init)(buf, count, type, to, tag, comm, request), request,
                   &(struct started){NAME_OF(Rsend_init), "Send_init", false, true, count, type, to,
                                     tag, comm});
}

/* ---- Receives ---- */

int MPI_(Irecv)(void *buf, trace_count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(
        &c, PMPI_(Irecv)(buf, count, type, from, tag, comm, request), request,
        &(struct started){NAME_OF(Irecv), "Irecv", true, false, count, type, from, tag, comm});
}

int MPI_(Recv_init)(void *buf, trace_count count, MPI_Datatype type, int from, int tag,
                    MPI_Comm comm, MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return started(&c, PMPI_(Recv_init)(buf, count, type, from, tag, comm, request), request,
                   &(struct started){NAME_OF(Recv_init), "Recv_init", true, true, count, type, from,
                                     tag, comm});
}

int MPI_(Recv)(void *buf, trace_count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_(Recv)(buf, count, type, from, tag, comm, s);
    if (trace_leave(&c, NAME_OF(Recv), rc)) {
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

int MPI_(Sendrecv)(const void *out, trace_count out_count, MPI_Datatype out_type, int to, int tag,
                   void *in, trace_count in_count, MPI_Datatype in_type, int from, int from_tag,
                   MPI_Comm comm, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_(Sendrecv)(out, out_count, out_type, to, tag, in, in_count, in_type, from,
                             from_tag, comm, s);
    if (trace_leave(&c, NAME_OF(Sendrecv), rc)) {
        exchanged(&c, to, tag, trace_bytes(out_count, out_type), from, from_tag,
                  trace_bytes(in_count, in_type), comm, s);
    }
    return rc;
}

int MPI_(Sendrecv_replace)(void *buf, trace_count count, MPI_Datatype type, int to, int tag,
                           int from, int from_tag, MPI_Comm comm, MPI_Status *status)
{
    struct trace_call c;
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    int rc = PMPI_(Sendrecv_replace)(buf, count, type, to, tag, from, from_tag, comm, s);
    if (trace_leave(&c, NAME_OF(Sendrecv_replace), rc)) {
        int64_t bytes = trace_bytes(count, type);
        exchanged(&c, to, tag, bytes, from, from_tag, bytes, comm, s);
    }
    return rc;
}

/* ---- What a probe has matched ---- */

int MPI_(Mrecv)(void *buf, trace_count count, MPI_Datatype type, MPI_Message *message,
                MPI_Status *status)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Mrecv)(buf, count, type, message, status);
    if (trace_leave(&c, NAME_OF(Mrecv), rc)) {
        trace_line(&c, "Mrecv", 0, NULL);
    }
    return rc;
}

int MPI_(Imrecv)(void *buf, trace_count count, MPI_Datatype type, MPI_Message *message,
                 MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    int rc = PMPI_(Imrecv)(buf, count, type, message, request);
    if (trace_leave(&c, NAME_OF(Imrecv), rc)) {
        trace_line(&c, "Mrecv", 0, NULL); /* its request is of no message any more */
    }
    return rc;
}
