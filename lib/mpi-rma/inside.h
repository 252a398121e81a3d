/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the engine share. */
#ifndef MPI_RMA_INSIDE_H
#define MPI_RMA_INSIDE_H

#include "sync.h"

#include <errno.h>

/* What the call in progress does. */
enum step {
    STEP_NONE,
    STEP_CREATE,
    STEP_FENCE,
    STEP_START,
    STEP_WAIT,
    STEP_TEST,        /* between two calls of sync_test() */
    STEP_MASTER,      /* an exclusive lock has asked the master */
    STEP_SWAP,        /* and then its target */
    STEP_SHARED,      /* a shared one has asked its target */
    STEP_SHARED_WAIT, /* and reads it again */
    STEP_ALL          /* a lock of all has asked the master */
};

static inline uint64_t sync_read(const struct sync *s, enum sync_word word)
{
    return __atomic_load_n(&s->shared[word], __ATOMIC_ACQUIRE);
}

/* Notes what an operation gave; the call ends with the first error. */
static inline void sync_did(struct sync *s, int rc)
{
    if (rc != 0 && s->error == 0) {
        s->error = rc;
        s->step = STEP_NONE;
    }
}

static inline int sync_ended(const struct sync *s)
{
    return sync_read(s, SYNC_ENDED) != 0 ? -EPIPE : 0;
}

/* Begins a call; false: it has ended at once, with an error (S5). */
static inline bool sync_begin(struct sync *s, enum step step)
{
    s->error = sync_ended(s);
    s->step = (int)(s->error == 0 ? step : STEP_NONE);
    return s->error == 0;
}

/* A call that gives back what this rank has taken does so whoever has ended; sync_left() is its
 * end. */
static inline void sync_leave(struct sync *s)
{
    s->error = 0;
    s->step = STEP_NONE;
}

static inline void sync_left(struct sync *s)
{
    sync_did(s, sync_ended(s));
}

/* Rounds that reach all ranks, when each doubles those reached. */
static inline unsigned sync_rounds(uint32_t size)
{
    return size <= 1 ? 0 : 32 - (unsigned)__builtin_clz(size - 1);
}

/* meet.c: sync_waits_for() in a creation or fence. */
bool meet_waits_for(const struct sync *s, uint32_t n, uint32_t *rank);

/* meet.c, pscw.c, lock.c: go on with their steps. */
void meet_go_on(struct sync *s);
void pscw_go_on(struct sync *s);
void lock_answer(struct sync *s, uint64_t value);

#endif
