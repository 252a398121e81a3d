/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fompi.h: foMPI's names for the notified access of pinwheel_notify.h: puts and gets whose target
 * finds a notice of them, and persistent requests that wait for notices.
 *
 *      origin   foMPI_Put_notify(from, n, type, rank, displacement, n, type, window, tag)
 *      target   foMPI_Notify_init(window, source, tag, count, &request), _Start, _Wait
 *
 * A program that includes <mpi.h> before uses its datatypes, which must be contiguous, and its
 * error classes; without it a datatype is a number of bytes (foMPI_INT, ...), and an error an
 * errno.
 *
 * - A window is the caller's struct: its region, registered with PW_RMA_NOTIFY, and the keys of all
 *   ranks' regions. Interfaces are logical, so that a rank is one of Portals.
 * - Tags are 0 to FOMPI_TAG_MAX. Of an origin, foMPI_ANY_TAG sends no notice.
 * - Operations are over at their target as in pinwheel_notify.h, and at their origin after
 *   foMPI_Win_flush() or, of those with a request, foMPI_Wait().
 * - All names are inline functions and macros: the library defines none of them.
 */
#ifndef FOMPI_H
#define FOMPI_H

#include "pinwheel_notify.h"

#include <errno.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FOMPI_TAG_MAX 32767
#define foMPI_ANY_SOURCE (-1)
#define foMPI_ANY_TAG (-2)

#ifdef MPI_VERSION
typedef MPI_Datatype foMPI_Datatype;
typedef MPI_Aint foMPI_Aint;
typedef MPI_Status foMPI_Status;
#define FOMPI_STATUS_IGNORE MPI_STATUS_IGNORE
#else
typedef size_t foMPI_Datatype;
typedef ptrdiff_t foMPI_Aint;
typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
} foMPI_Status;
#define FOMPI_STATUS_IGNORE ((foMPI_Status *)NULL)
#define foMPI_BYTE ((foMPI_Datatype)1)
#define foMPI_CHAR ((foMPI_Datatype)1)
#define foMPI_INT (sizeof(int))
#define foMPI_LONG (sizeof(long))
#define foMPI_FLOAT (sizeof(float))
#define foMPI_DOUBLE (sizeof(double))
#endif
#define foMPI_STATUS_IGNORE FOMPI_STATUS_IGNORE
#define foMPI_SUCCESS 0

/* Filled in by the caller, whose it stays. `keys` has one for each rank. */
struct fompi_window {
    struct pw_rma_region *region;
    struct pw_rma_key *const *keys;
    int ranks, disp_unit;
};
typedef const struct fompi_window *foMPI_Win;

struct fompi_request {
    struct pw_notify *notices; /* NULL: of an operation */
    struct pw_rma_request operation;
};
typedef struct fompi_request *foMPI_Request;
#define foMPI_REQUEST_NULL ((foMPI_Request)NULL)

static inline int fompi_code(int rc)
{
#ifdef MPI_VERSION
    return rc == 0          ? MPI_SUCCESS
           : rc == -ENOMEM  ? MPI_ERR_NO_MEM
           : rc == -EINVAL  ? MPI_ERR_ARG
           : rc == -EACCES  ? MPI_ERR_RMA_RANGE
           : rc == -ENOBUFS ? MPI_ERR_PENDING
                            : MPI_ERR_OTHER;
#else
    return -rc;
#endif
}

/* Bytes of so many elements; -EINVAL: the type has gaps, or the number is negative. */
static inline int fompi_bytes(int count, foMPI_Datatype type, size_t *bytes)
{
#ifdef MPI_VERSION
    int size = 0;
    MPI_Aint low = 0, extent = 0;
    if (MPI_Type_size(type, &size) != MPI_SUCCESS ||
        MPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS || low != 0 || extent != size) {
        return -EINVAL;
    }
#else
    size_t size = type;
#endif
    if (count < 0) {
        return -EINVAL;
    }
    *bytes = (size_t)count * (size_t)size;
    return 0;
}

static inline int fompi_move(bool get, void *local, int count, foMPI_Datatype type, int rank,
                             foMPI_Aint displacement, int target_count, foMPI_Datatype target_type,
                             foMPI_Win win, int tag, struct pw_rma_request *request)
{
    size_t bytes = 0, there = 0;
    if (rank < 0 || rank >= win->ranks || displacement < 0 ||
        fompi_bytes(count, type, &bytes) != 0 ||
        fompi_bytes(target_count, target_type, &there) != 0 || bytes != there ||
        (tag != foMPI_ANY_TAG && (tag < 0 || tag > FOMPI_TAG_MAX))) {
        return -EINVAL;
    }
    struct pw_rma_key *key = win->keys[rank];
    uint64_t offset = (uint64_t)displacement * (uint64_t)win->disp_unit;
    if (tag == foMPI_ANY_TAG) {
        return get ? pw_rma_get(key, local, bytes, offset, request)
                   : pw_rma_put(key, local, bytes, offset, request);
    }
    return get ? pw_notify_get(key, local, bytes, offset, (uint32_t)tag, request)
               : pw_notify_put(key, local, bytes, offset, (uint32_t)tag, request);
}

static inline int fompi_move_request(bool get, void *local, int count, foMPI_Datatype type,
                                     int rank, foMPI_Aint displacement, int target_count,
                                     foMPI_Datatype target_type, foMPI_Win win, int tag,
                                     foMPI_Request *request)
{
    foMPI_Request r = (foMPI_Request)calloc(1, sizeof(*r));
    int rc = r == NULL ? -ENOMEM
                       : fompi_move(get, local, count, type, rank, displacement, target_count,
                                    target_type, win, tag, &r->operation);
    if (rc != 0) {
        free(r);
        r = NULL;
    }
    *request = r;
    return fompi_code(rc);
}

/* ---- Origins ---- */

#define foMPI_Put_notify(from, count, type, rank, disp, target_count, target_type, win, tag)       \
    fompi_code(fompi_move(false, (void *)(from), count, type, rank, disp, target_count,            \
                          target_type, win, tag, NULL))
#define foMPI_Get_notify(to, count, type, rank, disp, target_count, target_type, win, tag)         \
    fompi_code(                                                                                    \
        fompi_move(true, to, count, type, rank, disp, target_count, target_type, win, tag, NULL))
#define foMPI_Rput_notify(from, count, type, rank, disp, target_count, target_type, win, tag, req) \
    fompi_move_request(false, (void *)(from), count, type, rank, disp, target_count, target_type,  \
                       win, tag, req)
#define foMPI_Rget_notify(to, count, type, rank, disp, target_count, target_type, win, tag, req)   \
    fompi_move_request(true, to, count, type, rank, disp, target_count, target_type, win, tag, req)

static inline int foMPI_Win_flush(int rank, foMPI_Win win)
{
    return rank < 0 || rank >= win->ranks
               ? fompi_code(-EINVAL)
               : fompi_code(pw_rma_flush(pw_rma_key_peer(win->keys[rank])));
}

/* ---- Targets ---- */

static inline int foMPI_Notify_init(foMPI_Win win, int source, int tag, int count,
                                    foMPI_Request *request)
{
    ptl_process_t from;
    *request = NULL;
    if (source < foMPI_ANY_SOURCE || source >= win->ranks || count < 1 || tag > FOMPI_TAG_MAX ||
        (tag < 0 && tag != foMPI_ANY_TAG)) {
        return fompi_code(-EINVAL);
    }
    from.rank = source == foMPI_ANY_SOURCE ? PTL_RANK_ANY : (ptl_rank_t)source;
    foMPI_Request r = (foMPI_Request)calloc(1, sizeof(*r));
    int rc = r == NULL ? -ENOMEM
                       : pw_notify_open(win->region, &from,
                                        tag == foMPI_ANY_TAG ? PW_NOTIFY_TAG_ANY : (uint32_t)tag,
                                        (uint32_t)count, &r->notices);
    if (rc != 0) {
        free(r);
        return fompi_code(rc);
    }
    *request = r;
    return fompi_code(0);
}

/* ---- Requests ---- */

static inline int foMPI_Start(foMPI_Request *request)
{
    return fompi_code((*request)->notices == NULL ? -EINVAL : pw_notify_start((*request)->notices));
}

static inline void fompi_status(foMPI_Status *status, const struct pw_notice *last)
{
    if (status != FOMPI_STATUS_IGNORE) {
        status->MPI_SOURCE = (int)last->source.rank;
        status->MPI_TAG = (int)last->tag;
    }
}

/* A request of an operation is freed when it is over; one for notices stays until it is freed. */
static inline int foMPI_Request_free(foMPI_Request *request)
{
    int rc = 0;
    if ((*request)->notices != NULL) {
        pw_notify_close((*request)->notices);
    } else {
        rc = pw_rma_wait(&(*request)->operation);
    }
    free(*request);
    *request = foMPI_REQUEST_NULL;
    return fompi_code(rc);
}

static inline int foMPI_Test(foMPI_Request *request, int *flag, foMPI_Status *status)
{
    bool over = true;
    struct pw_notice last;
    int rc;
    if ((*request)->notices != NULL) {
        rc = pw_notify_test((*request)->notices, &over, &last);
        if (over) {
            fompi_status(status, &last);
        }
    } else {
        rc = pw_rma_test(&(*request)->operation, &over);
        if (over) {
            free(*request);
            *request = foMPI_REQUEST_NULL;
        }
    }
    *flag = over;
    return fompi_code(rc);
}

static inline int foMPI_Wait(foMPI_Request *request, foMPI_Status *status)
{
    struct pw_notice last;
    if ((*request)->notices == NULL) {
        return foMPI_Request_free(request);
    }
    int rc = pw_notify_wait((*request)->notices, &last);
    if (rc == 0) {
        fompi_status(status, &last);
    }
    return fompi_code(rc);
}

#ifdef __cplusplus
}
#endif

#endif
