/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the engine share. */
#ifndef MPI_RMA_INSIDE_H
#define MPI_RMA_INSIDE_H

#include "sync.h"

/* What the call in progress does. */
enum step {
    STEP_NONE,
    STEP_CREATE,
    STEP_FENCE,
    STEP_START,
    STEP_WAIT,
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

static inline void sync_begin(struct sync *s, enum step step)
{
    s->error = 0;
    s->step = (int)step;
}

/* Rounds that reach all ranks, when each doubles those reached. */
static inline unsigned sync_rounds(uint32_t size)
{
    return size <= 1 ? 0 : 32 - (unsigned)__builtin_clz(size - 1);
}

/* meet.c, pscw.c, lock.c: go on with their steps. */
void meet_go_on(struct sync *s);
void pscw_go_on(struct sync *s);
void lock_answer(struct sync *s, uint64_t value);

#endif
