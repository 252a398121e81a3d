/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX as a subject: what its ways of sending share.
 *
 *   peer_ucx.c   the program: chooses the way, reads (BENCH_GET)
 *   ucx_link.c   context, worker, endpoint, exposed memory
 *   ucx_tag.c    tagged messages
 *   ucx_am.c     active messages
 *   ucx_put.c    puts that the target finds by polling its memory
 *
 * A process has one link, to the other rank, and one region of memory that the other
 * rank may read and write.
 */
#ifndef BENCH_PEERS_PEER_UCX_H
#define BENCH_PEERS_PEER_UCX_H

#include <ucp/api/ucp.h>

#include "slots.h"

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    ucp_mem_h exposed;
    char *region;    /* the address that `exposed` has here */
    uint64_t remote; /* the address of the other rank's region, there */
    ucp_rkey_h key;  /* and the key to it */
    struct slots slots;
};
extern struct ucx ucx;

/* One way of sending. Its functions are those of a turn's duties. */
struct ucx_way {
    const char *name;
    int (*open)(void); /* at the start, may be NULL */
    int (*begin)(const struct turn_work *work);
    int (*latency)(const struct turn_work *work, uint64_t iterations);
    int (*windows)(const struct turn_work *work, uint64_t iterations);
    int (*end)(const struct turn_work *work, struct turn_result *result);
    size_t
        allocate; /* bytes of memory that UCX shall allocate and expose; 0: slots.from is exposed */
};
extern const struct ucx_way ucx_tag, ucx_am, ucx_put;

/* 0, or -1 after turn_fail(). */
int ucx_open(const struct ucx_way *way);
void ucx_close(void);

/* ucx_failed() says what failed by turn_fail(); gives -1. */
int ucx_failed(const char *what, ucs_status_t status);

/* ucx_finish() makes progress until `request` is complete; 0, or -1 after
 * turn_fail(). */
static inline int ucx_finish(const char *what, ucs_status_ptr_t request)
{
    if (request == NULL) {
        return 0;
    }
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            ucp_worker_progress(ucx.worker);
        }
        ucp_request_free(request);
    }
    return status == UCS_OK ? 0 : ucx_failed(what, status);
}

/* ucx_finish_all() does so for `count` of them. */
static inline int ucx_finish_all(const char *what, ucs_status_ptr_t *requests, int count)
{
    for (int i = 0; i < count; i++) {
        if (ucx_finish(what, requests[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static inline int ucx_window(const struct turn_work *work)
{
    return work->bench == BENCH_RATE        ? TURN_WINDOW_RATE
           : work->bench == BENCH_BANDWIDTH ? TURN_WINDOW_BANDWIDTH
                                            : 1;
}

#endif
