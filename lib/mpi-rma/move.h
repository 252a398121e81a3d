/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on a window's memory: what all of them are, before they become calls of
 * libpinwheel-rma. */
#ifndef MPI_RMA_MOVE_H
#define MPI_RMA_MOVE_H

#include "types.h"

enum move_kind {
    MOVE_PUT,
    MOVE_GET,
    MOVE_ACCUMULATE, /* this one and those behind it are atomic */
    MOVE_GET_ACCUMULATE,
    MOVE_COMPARE_SWAP
};

struct side {
    void *start;
    MPI_Count count;
    MPI_Datatype datatype;
};

struct move {
    const char *call; /* "MPI_Put" */
    enum move_kind kind;
    struct side origin, result; /* of a get the origin is where the bytes go */
    int rank;
    MPI_Aint disp;
    MPI_Count count; /* at the target */
    MPI_Datatype datatype;
    MPI_Op op;
    const void *compare; /* of compare_and_swap */
};

/* move_run() begins an operation; if `request` is given it gets one of MPI, which the program
 * completes. 0, or a class of errors that was told. */
int move_run(struct window *w, const struct move *m, MPI_Request *request);

/* move_quick() does an operation without a request on equal predefined types in a passive epoch, at
 * a target that is known; MOVE_NOT_QUICK: it is not that, and nothing was done. */
enum { MOVE_NOT_QUICK = -1 };
int move_quick(struct window *w, const struct move *m);

/* requests.c: a request of MPI for an operation of ours. `state` is freed with it. */
struct pending {
    struct pw_rma_request request;
    MPI_Request handle;
    int class; /* of the error that the operation ended with */
    struct pending *next;
};
struct pending *request_make(void);
/* The operation has begun; or it is over, and `p` may be NULL. */
int request_begun(struct pending *p, MPI_Request *request);
int request_over(struct pending *p, MPI_Request *request);

#endif
