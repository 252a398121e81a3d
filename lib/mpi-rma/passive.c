/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks and flushes. A lock is the engine's call (lock.c) and may wait, while other threads unlock
 * what they have: so calls that wait follow each other under `acquire`, and an unlock, which never
 * waits, is an engine of its own for a moment. An exclusive lock that is asked for while this
 * process has another one counts as had from the beginning: so the last unlock does not give back
 * the master's count under it.
 */
#include "epoch.h"

#define OURS(name, ...)                                                                            \
    struct window *w = window_of(win);                                                             \
    if (w == NULL) {                                                                               \
        return REAL(name, __VA_ARGS__);                                                            \
    }

static struct sync moment(struct window *w)
{
    return (struct sync){.ops = &carry_ops,
                         .client = w,
                         .shared = w->slot->shared,
                         .rank = w->ranks->rank,
                         .size = w->ranks->size,
                         .master = w->sync.master,
                         .exclusives = w->exclusives};
}

/* Gives a lock back. The caller has w->lock. */
static int give_back(struct window *w, uint32_t rank, bool exclusive)
{
    struct sync s = moment(w);
    sync_unlock(&s, rank, exclusive);
    w->exclusives = s.exclusives;
    return sync_error(&s);
}

static int acquire(struct window *w, uint32_t rank, bool exclusive)
{
    pthread_mutex_lock(&w->acquire);
    pthread_mutex_lock(&w->lock);
    bool more = exclusive && w->exclusives > 0;
    w->exclusives += more;
    w->sync.exclusives = more;
    pthread_mutex_unlock(&w->lock);
    sync_lock(&w->sync, rank, exclusive);
    int rc = carry_wait(w, &w->sync);
    pthread_mutex_lock(&w->lock);
    w->exclusives += exclusive && !more && rc == 0;
    pthread_mutex_unlock(&w->lock);
    pthread_mutex_unlock(&w->acquire);
    return rc;
}

int PMPI_Win_lock(int type, int rank, int assert, MPI_Win win)
{
    OURS(Win_lock, type, rank, assert, win)
    if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE) {
        return window_error(w, MPI_ERR_LOCKTYPE, "MPI_Win_lock: lock type %d", type);
    }
    if ((assert & ~MPI_MODE_NOCHECK) != 0) {
        return window_error(w, MPI_ERR_ASSERT, "MPI_Win_lock: assert %d", assert);
    }
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (rank < 0 || (uint32_t)rank >= w->ranks->size) {
        return window_error(w, MPI_ERR_RANK, "MPI_Win_lock: rank %d is none of the window's %u",
                            rank, w->ranks->size);
    }
    struct target *t = target_made(w, (uint32_t)rank);
    if (t == NULL) {
        return window_error(w, MPI_ERR_NO_MEM, "MPI_Win_lock: no memory");
    }
    if (w->all_locked || t->locked != UNLOCKED || w->started != NULL ||
        (w->fenced && w->fence_used)) {
        return window_error(w, MPI_ERR_RMA_SYNC,
                            "MPI_Win_lock: rank %d is locked, or another epoch has not ended",
                            rank);
    }
    bool check = (assert &MPI_MODE_NOCHECK) == 0;
    int rc = check ? acquire(w, (uint32_t)rank, type == MPI_LOCK_EXCLUSIVE) : 0;
    if (rc == 0) {
        pthread_mutex_lock(&w->lock);
        w->fenced = false;
        t->locked = !check                       ? LOCK_NOCHECK
                    : type == MPI_LOCK_EXCLUSIVE ? LOCK_EXCLUSIVE
                                                 : LOCK_SHARED;
        w->locks++;
        pthread_mutex_unlock(&w->lock);
        KILL_POINT("mpi-locked");
    }
    return epoch_ended(w, "MPI_Win_lock", rc);
}
ALSO_MPI(Win_lock);

int PMPI_Win_unlock(int rank, MPI_Win win)
{
    OURS(Win_unlock, rank, win)
    if (rank == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    if (rank < 0 || (uint32_t)rank >= w->ranks->size) {
        return window_error(w, MPI_ERR_RANK, "MPI_Win_unlock: rank %d is none of the window's %u",
                            rank, w->ranks->size);
    }
    struct target *t = target_find(w, (uint32_t)rank);
    if (t == NULL || t->locked == UNLOCKED) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_unlock: rank %d is not locked", rank);
    }
    int code = t->peer != NULL ? watch_flush(w, t->peer, (uint32_t)rank) : 0;
    KILL_POINT("mpi-unlocks");
    pthread_mutex_lock(&w->lock);
    int rc =
        t->locked == LOCK_NOCHECK ? 0 : give_back(w, (uint32_t)rank, t->locked == LOCK_EXCLUSIVE);
    t->locked = UNLOCKED;
    w->locks--;
    pthread_mutex_unlock(&w->lock);
    return epoch_ended(w, "MPI_Win_unlock", code != 0 ? code : rc);
}
ALSO_MPI(Win_unlock);

int PMPI_Win_lock_all(int assert, MPI_Win win)
{
    OURS(Win_lock_all, assert, win)
    if ((assert & ~MPI_MODE_NOCHECK) != 0) {
        return window_error(w, MPI_ERR_ASSERT, "MPI_Win_lock_all: assert %d", assert);
    }
    int rc = epoch_begin(w, "MPI_Win_lock_all");
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    w->all_checked = (assert &MPI_MODE_NOCHECK) == 0;
    if (w->all_checked) {
        pthread_mutex_lock(&w->acquire);
        sync_lock_all(&w->sync);
        rc = carry_wait(w, &w->sync);
        pthread_mutex_unlock(&w->acquire);
    }
    w->all_locked = rc == 0;
    KILL_POINT("mpi-locked-all");
    return epoch_ended(w, "MPI_Win_lock_all", rc);
}
ALSO_MPI(Win_lock_all);

int PMPI_Win_unlock_all(MPI_Win win)
{
    OURS(Win_unlock_all, win)
    if (!w->all_locked) {
        return window_error(w, MPI_ERR_RMA_SYNC,
                            "MPI_Win_unlock_all: there was no MPI_Win_lock_all");
    }
    int code = pw_rma_flush_all(job.rma), rc = 0;
    if (w->all_checked) {
        struct sync s = moment(w);
        sync_unlock_all(&s);
        rc = sync_error(&s);
    }
    w->all_locked = false;
    return epoch_ended(w, "MPI_Win_unlock_all", code != 0 ? code : rc);
}
ALSO_MPI(Win_unlock_all);

/* ---- Flushes ---- */

/* The target of a flush; NULL: it has nothing to flush, or the error was told. */
static struct target *flushed(struct window *w, const char *call, int rank, int *class)
{
    *class = MPI_SUCCESS;
    if (rank == MPI_PROC_NULL) {
        return NULL;
    }
    if (rank < 0 || (uint32_t)rank >= w->ranks->size) {
        *class = window_error(w, MPI_ERR_RANK, "%s: rank %d is none of the window's %u", call, rank,
                              w->ranks->size);
        return NULL;
    }
    struct target *t = target_find(w, (uint32_t)rank);
    if (!w->all_locked && (t == NULL || t->locked == UNLOCKED)) {
        *class = window_error(w, MPI_ERR_RMA_SYNC, "%s: rank %d is not locked", call, rank);
        return NULL;
    }
    return t != NULL && t->peer != NULL ? t : NULL;
}

int PMPI_Win_flush(int rank, MPI_Win win)
{
    OURS(Win_flush, rank, win)
    int class;
    struct target *t = flushed(w, "MPI_Win_flush", rank, &class);
    if (t == NULL) {
        atomic_thread_fence(memory_order_seq_cst);
        return class;
    }
    int code = watch_flush(w, t->peer, (uint32_t)rank); /* a full fence */
    return code == 0 ? MPI_SUCCESS : epoch_ended(w, "MPI_Win_flush", code);
}
ALSO_MPI(Win_flush);

int PMPI_Win_flush_local(int rank, MPI_Win win)
{
    OURS(Win_flush_local, rank, win)
    int class;
    struct target *t = flushed(w, "MPI_Win_flush_local", rank, &class);
    if (t != NULL) {
        pw_rma_flush_local(t->peer);
    }
    return class;
}
ALSO_MPI(Win_flush_local);

int PMPI_Win_flush_all(MPI_Win win)
{
    OURS(Win_flush_all, win)
    if (!w->all_locked && w->locks == 0) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_flush_all: no rank is locked");
    }
    return epoch_ended(w, "MPI_Win_flush_all", pw_rma_flush_all(job.rma));
}
ALSO_MPI(Win_flush_all);

int PMPI_Win_flush_local_all(MPI_Win win)
{
    OURS(Win_flush_local_all, win)
    if (!w->all_locked && w->locks == 0) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_flush_local_all: no rank is locked");
    }
    pw_rma_flush_local_all(job.rma);
    return MPI_SUCCESS;
}
ALSO_MPI(Win_flush_local_all);

int PMPI_Win_sync(MPI_Win win)
{
    OURS(Win_sync, win)
    struct idle idle = {0};
    job_idle(&idle); /* what others have sent is taken: programs poll with it */
    return epoch_ended(w, "MPI_Win_sync", 0);
}
ALSO_MPI(Win_sync);
