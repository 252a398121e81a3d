/* SPDX-License-Identifier: BSD-3-Clause */
/* What a window is made of. */
#ifndef MPI_RMA_CREATE_H
#define MPI_RMA_CREATE_H

#include "window.h"

/* A program's wish for a window. */
struct wish {
    const char *call;
    int flavor;
    void *base;
    MPI_Aint size;
    MPI_Aint disp_unit;
    MPI_Info info;
    MPI_Comm comm;
};

/* create.c: window_make() is collective. `*ours` is false when the MPI has to make it: then nothing
 * is left. A class of errors that was told. */
int window_make(const struct wish *wish, MPI_Win *win, void **base, bool *ours);

/* shared.c: memory that the ranks of a host share, each a part of it. shared_make() is collective
 * and gives this rank's part; REASON_NONE or why there is none. */
struct shared;
enum reason shared_make(struct window *w, const struct wish *wish, void **base);
void shared_end(struct shared *shared);
void *shared_part(const struct shared *shared, uint32_t rank);

/* info.c: the hints of a window, and what they say. */
void info_begin(struct window *w, MPI_Info info);
bool info_says(MPI_Info info, const char *key, const char *value);

#endif
