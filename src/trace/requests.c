/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are pending: a hash table from handle to number. Each bucket is a queue, so of
 * equal handles the oldest is found first. The callers hold the recorder's lock; see trace.h.
 */
#include "trace.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

static struct bucket {
    struct trace_request *first, *last;
} buckets[BUCKETS];
static int64_t numbers;

static struct bucket *bucket_of(MPI_Request handle)
{
    uint64_t bits = 0;
    /* a handle is a pointer in one MPI, an int in another */
    memcpy(&bits, &handle, sizeof(handle));
    return &buckets[(bits * 0x9e3779b97f4a7c15u) >> 54];
}

struct trace_request *trace_add_request(MPI_Request handle, bool receives)
{
    struct trace_request *r = calloc(1, sizeof(*r));
    struct bucket *b = bucket_of(handle);
    /* returned if memory is short: it has a number, but is never found again */
    static struct trace_request none;
    if (r == NULL) {
        none = (struct trace_request){.number = numbers++, .comm = MPI_COMM_NULL};
        return &none;
    }
    *r = (struct trace_request){.handle = handle,
                                .number = numbers++,
                                .receives = receives,
                                .active = true,
                                .comm = MPI_COMM_NULL};
    if (b->first == NULL) {
        b->first = r;
    } else {
        b->last->next = r;
    }
    b->last = r;
    return r;
}

struct trace_request *trace_find_request(MPI_Request handle, bool active)
{
    if (handle == MPI_REQUEST_NULL) {
        return NULL;
    }
    struct trace_request *r = bucket_of(handle)->first;
    while (r != NULL && (r->handle != handle || (active && !r->active))) {
        r = r->next;
    }
    return r;
}

void trace_drop_request(struct trace_request *r)
{
    struct bucket *b = bucket_of(r->handle);
    struct trace_request **at = &b->first, *before = NULL;
    while (*at != r) {
        before = *at;
        at = &before->next;
    }
    *at = r->next;
    if (b->last == r) {
        b->last = before;
    }
    free(r);
}
