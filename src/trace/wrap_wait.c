/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that complete requests, start them again, cancel or free them. The line of a call that
 * completes requests has four numbers for each: request, source, tag, bytes; for a send or a
 * cancelled receive the source is TRACE_SENT or TRACE_CANCELLED. The handles are copied before the
 * call, since the call overwrites them.
 */
#include "wrap.h"

#include <stdlib.h>
#include <string.h>

/* the program has called MPI_Cancel: completions ask whether they were cancelled */
static bool any_cancelled;

/* A call in progress, with copies of its requests and statuses if needed. */
struct waited {
    struct trace_call call;
    const MPI_Status *given; /* the program's statuses */
    bool kept;               /* the handles were copied, and there are statuses: memory sufficed */
    MPI_Request *handles;
    MPI_Status *statuses; /* the statuses that PMPI_ gets */
    MPI_Request few_handles[16];
    MPI_Status few_statuses[16];
};

/* begin() copies `count` requests. If the program ignores statuses it makes room for `most` of its
 * own; if memory is short the program's argument is passed on. */
static void begin(struct waited *w, const char *name, int count, const MPI_Request *requests,
                  int most, MPI_Status *statuses)
{
    /* NOLINTNEXTLINE(misc-redundant-expression): not alike in each MPI */
    bool ignored = statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE;
    *w = (struct waited){.call = {.name = name}, .given = statuses};
    trace_enter(&w->call);
    w->handles = count > 16 ? malloc(sizeof(MPI_Request) * (size_t)count) : w->few_handles;
    w->statuses = !ignored    ? statuses
                  : most > 16 ? malloc(sizeof(MPI_Status) * (size_t)most)
                              : w->few_statuses;
    w->kept = w->handles != NULL && w->statuses != NULL;
    if (w->kept && count > 0) {
        memcpy(w->handles, requests, sizeof(MPI_Request) * (size_t)count);
    }
    if (w->statuses == NULL) {
        w->statuses = statuses;
    }
}

/* Writes the numbers of one completed request, between trace_begin() and trace_end(). */
static void completed(MPI_Request handle, const MPI_Status *s)
{
    struct trace_request *r = trace_find_request(handle, true);
    int cancelled = 0;
    if (r == NULL) {
        return; /* an operation that is not recorded, or an inactive request */
    }
    if (r->comm != MPI_COMM_NULL) { /* no message: MPI_Comm_idup has completed */
        trace_promised_comm(r->comm, r->comm_number);
        trace_drop_request(r);
        return;
    }
    if (any_cancelled) {
        PMPI_Test_cancelled(s, &cancelled);
    }
    trace_number(r->number);
    trace_number(cancelled     ? TRACE_CANCELLED
                 : r->receives ? trace_rank(s->MPI_SOURCE)
                               : TRACE_SENT);
    trace_number(r->receives && !cancelled ? s->MPI_TAG : 0);
    trace_number(r->receives && !cancelled ? trace_received(s) : 0);
    if (r->persistent) {
        r->active = false;
    } else {
        trace_drop_request(r);
    }
}

/* end() writes that `count` requests have completed: the first ones or, if `index` is not NULL,
 * those that it names. A negative `count`: the call found no completion, and is only counted. */
static int end(struct waited *w, int rc, int count, const int *index)
{
    if (trace_leave(&w->call, rc) && w->kept) {
        if (count < 0) {
            trace_poll(&w->call);
        } else {
            trace_begin(&w->call, w->call.name + strlen("MPI_"));
            for (int i = 0; i < count; i++) {
                completed(w->handles[index != NULL ? index[i] : i], &w->statuses[i]);
            }
            trace_end();
        }
    }
    if (w->handles != w->few_handles) {
        free(w->handles);
    }
    if (w->statuses != w->few_statuses && w->statuses != w->given) {
        free(w->statuses);
    }
    return rc;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct waited w;
    begin(&w, "MPI_Wait", 1, request, 1, status);
    return end(&w, PMPI_Wait(request, w.statuses), 1, NULL);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct waited w;
    begin(&w, "MPI_Test", 1, request, 1, status);
    int rc = PMPI_Test(request, flag, w.statuses);
    return end(&w, rc, rc == MPI_SUCCESS && *flag ? 1 : -1, NULL);
}

/* Returns how many requests one call of MPI_Waitany or MPI_Testany has completed; *index is
 * MPI_UNDEFINED if no request was active. */
static int one_of(int rc, const int *index)
{
    return rc == MPI_SUCCESS && *index != MPI_UNDEFINED;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct waited w;
    begin(&w, "MPI_Waitany", count, requests, 1, status);
    int rc = PMPI_Waitany(count, requests, index, w.statuses);
    return end(&w, rc, one_of(rc, index), index);
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct waited w;
    begin(&w, "MPI_Testany", count, requests, 1, status);
    int rc = PMPI_Testany(count, requests, index, flag, w.statuses);
    return end(&w, rc, rc == MPI_SUCCESS && *flag ? one_of(rc, index) : -1, index);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct waited w;
    begin(&w, "MPI_Waitall", count, requests, count, statuses);
    return end(&w, PMPI_Waitall(count, requests, w.statuses), count, NULL);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct waited w;
    begin(&w, "MPI_Testall", count, requests, count, statuses);
    int rc = PMPI_Testall(count, requests, flag, w.statuses);
    return end(&w, rc, rc == MPI_SUCCESS && *flag ? count : -1, NULL);
}

/* Returns how many requests MPI_Waitsome or MPI_Testsome has completed; -1: none. */
static int some_of(int rc, const int *done)
{
    return rc == MPI_SUCCESS && *done != MPI_UNDEFINED && *done > 0 ? *done : -1;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    struct waited w;
    begin(&w, "MPI_Waitsome", count, requests, count, statuses);
    int rc = PMPI_Waitsome(count, requests, done, indices, w.statuses);
    return end(&w, rc, some_of(rc, done), indices);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    struct waited w;
    begin(&w, "MPI_Testsome", count, requests, count, statuses);
    int rc = PMPI_Testsome(count, requests, done, indices, w.statuses);
    return end(&w, rc, some_of(rc, done), indices);
}

/* ---- Persistent requests, cancelling, freeing ---- */

/* Writes which requests the program has started; they are active from now on. */
static void begun(const struct trace_call *c, int count, const MPI_Request *requests)
{
    trace_begin(c, "Start");
    for (int i = 0; i < count; i++) {
        struct trace_request *r = trace_find_request(requests[i], false);
        if (r != NULL) {
            r->active = true;
            trace_number(r->number);
        }
    }
    trace_end();
}

WRAP(Start, (MPI_Request * request), (request), begun(&c, 1, request))
WRAP(Startall, (int count, MPI_Request requests[]), (count, requests), begun(&c, count, requests))

/* The line of a cancelled request's completion tells whether MPI has cancelled it. */
WRAP_WITH(struct trace_call c = {.name = "MPI_Cancel"}; any_cancelled = true, Cancel,
                                                        (MPI_Request * request), (request),
                                                        trace_line(&c, "Cancel", 0, NULL))

static void freed(const struct trace_call *c, MPI_Request handle)
{
    trace_begin(c, "Request_free");
    struct trace_request *r = trace_find_request(handle, false);
    if (r != NULL) {
        trace_number(r->number);
        trace_drop_request(r);
    }
    trace_end();
}

WRAP_WITH(struct trace_call c = {.name = "MPI_Request_free"}; MPI_Request handle = *request,
                                                              Request_free, (MPI_Request * request),
                                                              (request), freed(&c, handle))
