/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that complete, begin again, are cancelled or given up. A call that
 * completes some writes for each of them four numbers: request, source, tag, bytes;
 * in place of the source stands TRACE_SENT or TRACE_CANCELLED. Handles are kept
 * from before the call, which overwrites them.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

static bool any_cancelled; /* MPI_Cancel has been called: statuses are asked */

/* The requests and statuses of a call, copied where need be. */
struct waited {
    MPI_Request *handles;
    MPI_Status *statuses;
    MPI_Request few_handles[16];
    MPI_Status few_statuses[16];
};

static bool remember(struct waited *w, int count, const MPI_Request *requests, MPI_Status *statuses)
{
    w->handles = w->few_handles;
    w->statuses = statuses != MPI_STATUSES_IGNORE ? statuses : w->few_statuses;
    if (count > 16) {
        w->handles = malloc(sizeof(MPI_Request) * (size_t)count);
        if (statuses == MPI_STATUSES_IGNORE) {
            w->statuses = malloc(sizeof(MPI_Status) * (size_t)count);
        }
    }
    if (w->handles == NULL || w->statuses == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(w->handles, requests, sizeof(MPI_Request) * (size_t)count);
    }
    return true;
}

static void forget(struct waited *w, const MPI_Status *statuses)
{
    if (w->handles != w->few_handles) {
        free(w->handles);
    }
    if (w->statuses != w->few_statuses && w->statuses != statuses) {
        free(w->statuses);
    }
}

/* Between trace_begin() and trace_end(). */
static void completed(MPI_Request handle, const MPI_Status *s)
{
    struct trace_request *r = trace_find_request(handle, true);
    int cancelled = 0;
    if (r == NULL) {
        return; /* of something that is not recorded, or nothing */
    }
    if (r->comm != MPI_COMM_NULL) { /* no operation: what it took is in no line */
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

/* `index` NULL: the first `count` of all; else those it names. */
static void completions(const struct trace_call *c, const char *line, const struct waited *w,
                        int count, const int *index)
{
    trace_begin(c, line);
    for (int i = 0; i < count; i++) {
        completed(w->handles[index != NULL ? index[i] : i], &w->statuses[i]);
    }
    trace_end();
}

/* ---- One ---- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct trace_call c;
    struct waited w = {0};
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    remember(&w, 1, request, s);
    int rc = PMPI_Wait(request, s);
    if (trace_leave(&c, "MPI_Wait", rc)) {
        completions(&c, "Wait", &w, 1, NULL);
    }
    return rc;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct trace_call c;
    struct waited w = {0};
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    remember(&w, 1, request, s);
    int rc = PMPI_Test(request, flag, s);
    if (trace_leave(&c, "MPI_Test", rc)) {
        if (*flag) {
            completions(&c, "Test", &w, 1, NULL);
        } else {
            trace_poll(&c);
        }
    }
    return rc;
}

/* ---- Any ---- */

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct trace_call c;
    struct waited w = {0};
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    bool kept = remember(&w, count, requests, s);
    int rc = PMPI_Waitany(count, requests, index, s);
    if (trace_leave(&c, "MPI_Waitany", rc) && kept) {
        completions(&c, "Waitany", &w, *index != MPI_UNDEFINED, index);
    }
    forget(&w, s);
    return rc;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct trace_call c;
    struct waited w = {0};
    MPI_Status own = {0}, *s = status != MPI_STATUS_IGNORE ? status : &own;
    trace_enter(&c);
    bool kept = remember(&w, count, requests, s);
    int rc = PMPI_Testany(count, requests, index, flag, s);
    if (trace_leave(&c, "MPI_Testany", rc) && kept) {
        if (*flag) {
            completions(&c, "Testany", &w, *index != MPI_UNDEFINED, index);
        } else {
            trace_poll(&c);
        }
    }
    forget(&w, s);
    return rc;
}

/* ---- All ---- */

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct trace_call c;
    struct waited w = {0};
    trace_enter(&c);
    bool kept = remember(&w, count, requests, statuses);
    int rc = PMPI_Waitall(count, requests, kept ? w.statuses : statuses);
    if (trace_leave(&c, "MPI_Waitall", rc) && kept) {
        completions(&c, "Waitall", &w, count, NULL);
    }
    forget(&w, statuses);
    return rc;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct trace_call c;
    struct waited w = {0};
    trace_enter(&c);
    bool kept = remember(&w, count, requests, statuses);
    int rc = PMPI_Testall(count, requests, flag, kept ? w.statuses : statuses);
    if (trace_leave(&c, "MPI_Testall", rc) && kept) {
        if (*flag) {
            completions(&c, "Testall", &w, count, NULL);
        } else {
            trace_poll(&c);
        }
    }
    forget(&w, statuses);
    return rc;
}

/* ---- Some ---- */

typedef int some_call(int count, MPI_Request requests[], int *done, int indices[],
                      MPI_Status statuses[]);

static int some(const char *name, some_call *call, int count, MPI_Request *requests, int *done,
                int *indices, MPI_Status *statuses)
{
    struct trace_call c;
    struct waited w = {0};
    trace_enter(&c);
    bool kept = remember(&w, count, requests, statuses);
    int rc = call(count, requests, done, indices, kept ? w.statuses : statuses);
    if (trace_leave(&c, name, rc) && kept) {
        if (*done != MPI_UNDEFINED && *done > 0) {
            completions(&c, name + 4, &w, *done, indices);
        } else {
            trace_poll(&c);
        }
    }
    forget(&w, statuses);
    return rc;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    return some("MPI_Waitsome", PMPI_Waitsome, count, requests, done, indices, statuses);
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[])
{
    return some("MPI_Testsome", PMPI_Testsome, count, requests, done, indices, statuses);
}

/* ---- Persistent, cancelled, given up ---- */

/* Those that begin are active from then on. */
static int begun(struct trace_call *c, const char *name, int rc, int count,
                 const MPI_Request *requests)
{
    if (trace_leave(c, name, rc)) {
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
    return rc;
}

int MPI_Start(MPI_Request *request)
{
    struct trace_call c;
    trace_enter(&c);
    return begun(&c, "MPI_Start", PMPI_Start(request), 1, request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    struct trace_call c;
    trace_enter(&c);
    return begun(&c, "MPI_Startall", PMPI_Startall(count, requests), count, requests);
}

int MPI_Cancel(MPI_Request *request)
{
    struct trace_call c;
    any_cancelled = true;
    trace_enter(&c);
    int rc = PMPI_Cancel(request);
    if (trace_leave(&c, "MPI_Cancel", rc)) {
        trace_line(&c, "Cancel", 0, NULL); /* what came of it is in the completion */
    }
    return rc;
}

int MPI_Request_free(MPI_Request *request)
{
    struct trace_call c;
    MPI_Request handle = *request;
    trace_enter(&c);
    int rc = PMPI_Request_free(request);
    if (trace_leave(&c, "MPI_Request_free", rc)) {
        trace_begin(&c, "Request_free");
        struct trace_request *r = trace_find_request(handle, false);
        if (r != NULL) {
            trace_number(r->number);
            trace_drop_request(r);
        }
        trace_end();
    }
    return rc;
}
