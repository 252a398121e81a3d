/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs of a window: fences, and post, start, complete, wait. Locks are in passive.c. */
#include "epoch.h"

#include <errno.h>
#include <stdlib.h>

#define OURS(name, ...)                                                                            \
    struct window *w = window_of(win);                                                             \
    if (w == NULL) {                                                                               \
        return REAL(name, __VA_ARGS__);                                                            \
    }

int epoch_check(struct window *w, const char *call, int rank)
{
    if (rank < 0 || (uint32_t)rank >= w->ranks->size) {
        return window_error(w, MPI_ERR_RANK, "%s: rank %d is none of the window's %u", call, rank,
                            w->ranks->size);
    }
    if (w->all_locked) {
        return MPI_SUCCESS;
    }
    if (w->locks > 0 || w->started != NULL) {
        const struct target *t = target_find(w, (uint32_t)rank);
        if (t != NULL && (t->locked != UNLOCKED || t->started)) {
            return MPI_SUCCESS;
        }
    } else if (w->fenced) {
        w->fence_used = true;
        return MPI_SUCCESS;
    }
    return window_error(w, MPI_ERR_RMA_SYNC, "%s: no epoch gives access to rank %d", call, rank);
}

int epoch_begin(struct window *w, const char *call)
{
    if (w->all_locked || w->locks > 0 || w->started != NULL || (w->fenced && w->fence_used)) {
        return window_error(w, MPI_ERR_RMA_SYNC, "%s: an access epoch has not ended", call);
    }
    w->fenced = false;
    return MPI_SUCCESS;
}

int epoch_ended(struct window *w, const char *call, int code)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (code == -EPIPE && watch_rank(w) != UINT32_MAX) {
        return window_error(w, class_of(code), "%s: rank %u of the window's %u has ended", call,
                            watch_rank(w), w->ranks->size);
    }
    return code == 0 ? MPI_SUCCESS : window_error(w, class_of(code), "%s: error %d", call, code);
}

/* ---- Fence ---- */

int PMPI_Win_fence(int assert, MPI_Win win)
{
    OURS(Win_fence, assert, win)
    const int known = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    if ((assert & ~known) != 0) {
        return window_error(w, MPI_ERR_ASSERT, "MPI_Win_fence: assert %d", assert);
    }
    if (w->all_locked || w->locks > 0 || w->started != NULL || w->exposed) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_fence: another epoch has not ended");
    }
    int code = w->fenced ? pw_rma_flush_all(job.rma) : 0;
    KILL_POINT("mpi-fence");
    pthread_mutex_lock(&w->acquire);
    atomic_thread_fence(memory_order_seq_cst);
    sync_fence(&w->sync);
    int rc = carry_wait(w, &w->sync);
    pthread_mutex_unlock(&w->acquire);
    w->fenced = (assert &MPI_MODE_NOSUCCEED) == 0;
    w->fence_used = false;
    KILL_POINT("mpi-fenced");
    return epoch_ended(w, "MPI_Win_fence", code != 0 ? code : rc);
}
ALSO_MPI(Win_fence);

/* ---- Post, start, complete, wait ---- */

/* The window's ranks of a group; NULL: no memory, or one is none of them (*class). */
static uint32_t *group_ranks(const struct window *w, MPI_Group group, uint32_t *count, int *class)
{
    int size = 0;
    *class = group == MPI_GROUP_NULL ? MPI_ERR_GROUP : PMPI_Group_size(group, &size);
    if (*class != MPI_SUCCESS) {
        return NULL;
    }
    uint32_t *ranks = malloc(((size_t)size + 1) * sizeof(*ranks));
    int *of = malloc(((size_t)size + 1) * 2 * sizeof(*of));
    *class = ranks != NULL && of != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (*class == MPI_SUCCESS) {
        int *ours = of + size;
        for (int i = 0; i < size; i++) {
            of[i] = i;
        }
        if (size > 0) {
            *class = PMPI_Group_translate_ranks(group, size, of, w->group, ours);
        }
        for (int i = 0; i < size && *class == MPI_SUCCESS; i++) {
            *class = ours[i] == MPI_UNDEFINED ? MPI_ERR_GROUP : MPI_SUCCESS;
            ranks[i] = (uint32_t)ours[i];
        }
    }
    free(of);
    if (*class != MPI_SUCCESS) {
        free(ranks);
        return NULL;
    }
    *count = (uint32_t)size;
    return ranks;
}

int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    OURS(Win_post, group, assert, win)
    uint32_t count;
    int class;
    if ((assert & ~(MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT)) != 0) {
        return window_error(w, MPI_ERR_ASSERT, "MPI_Win_post: assert %d", assert);
    }
    if (w->exposed || (w->fenced && w->fence_used)) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_post: an exposure epoch has not ended");
    }
    uint32_t *ranks = group_ranks(w, group, &count, &class);
    if (ranks == NULL) {
        return window_error(w, class, "MPI_Win_post: a group that is not the window's");
    }
    atomic_thread_fence(memory_order_seq_cst);
    pthread_mutex_lock(&job.notes_lock);
    sync_post(&w->exposure, ranks, count, (assert &MPI_MODE_NOCHECK) == 0);
    pthread_mutex_unlock(&job.notes_lock);
    free(w->exposed_to); /* of the exposure before */
    w->exposed = true;
    w->exposed_to = ranks;
    w->tested = (struct watch){0};
    KILL_POINT("mpi-posted");
    return epoch_ended(w, "MPI_Win_post", sync_error(&w->exposure));
}
ALSO_MPI(Win_post);

/* There is no epoch: what a start has prepared is undone. */
static void not_started(struct window *w, uint32_t *ranks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct target *t = target_find(w, ranks[i]);
        if (t != NULL) {
            t->started = false;
        }
    }
    free(ranks);
}

static int start_failed(struct window *w, int code)
{
    return code == -EPROTO ? window_error(w, MPI_ERR_RMA_SYNC,
                                          "MPI_Win_start: a rank of the group has posted with "
                                          "MPI_MODE_NOCHECK, this start is without it")
                           : epoch_ended(w, "MPI_Win_start", code);
}

static int exposure_ended(struct window *w, const char *call, bool unchecked, int code)
{
    return code == -EPROTO
               ? window_error(w, MPI_ERR_RMA_SYNC,
                              "%s: MPI_MODE_NOCHECK was given at one end only: %s", call,
                              unchecked ? "by the post" : "by the start of another rank")
               : epoch_ended(w, call, code);
}

int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win)
{
    OURS(Win_start, group, assert, win)
    uint32_t count;
    int class;
    if ((assert & ~MPI_MODE_NOCHECK) != 0) {
        return window_error(w, MPI_ERR_ASSERT, "MPI_Win_start: assert %d", assert);
    }
    int rc = epoch_begin(w, "MPI_Win_start");
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    uint32_t *ranks = group_ranks(w, group, &count, &class);
    for (uint32_t i = 0; ranks != NULL && i < count; i++) {
        struct target *t = target_made(w, ranks[i]);
        if (t == NULL) {
            not_started(w, ranks, i);
            ranks = NULL;
            class = MPI_ERR_NO_MEM;
            break;
        }
        t->started = true;
    }
    if (ranks == NULL) {
        return window_error(w, class, "MPI_Win_start: a group that is not the window's");
    }
    pthread_mutex_lock(&w->acquire);
    w->starting = true;
    pthread_mutex_lock(&job.notes_lock);
    sync_start(&w->sync, ranks, count, (assert &MPI_MODE_NOCHECK) == 0);
    pthread_mutex_unlock(&job.notes_lock);
    rc = carry_wait(w, &w->sync);
    w->starting = false;
    pthread_mutex_unlock(&w->acquire);
    if (rc != 0) {
        not_started(w, ranks, count);
        return start_failed(w, rc);
    }
    w->started = ranks;
    w->started_count = count;
    KILL_POINT("mpi-started");
    return epoch_ended(w, "MPI_Win_start", rc);
}
ALSO_MPI(Win_start);

int PMPI_Win_complete(MPI_Win win)
{
    OURS(Win_complete, win)
    int code = 0;
    if (w->started == NULL) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_complete: there was no MPI_Win_start");
    }
    for (uint32_t i = 0; i < w->started_count; i++) {
        struct target *t = target_find(w, w->started[i]);
        int rc = t->peer != NULL ? watch_flush(w, t->peer, w->started[i]) : 0;
        code = code == 0 ? rc : code;
        t->started = false;
    }
    KILL_POINT("mpi-flushed");
    pthread_mutex_lock(&w->acquire);
    sync_complete(&w->sync, w->started, w->started_count);
    int rc = sync_error(&w->sync);
    pthread_mutex_unlock(&w->acquire);
    free(w->started);
    w->started = NULL;
    return epoch_ended(w, "MPI_Win_complete", code != 0 ? code : rc);
}
ALSO_MPI(Win_complete);

int PMPI_Win_wait(MPI_Win win)
{
    OURS(Win_wait, win)
    if (!w->exposed) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_wait: there was no MPI_Win_post");
    }
    bool unchecked = w->exposure.exposed_unchecked;
    sync_wait(&w->exposure);
    int rc = carry_wait(w, &w->exposure);
    w->exposed = false;
    KILL_POINT("mpi-waited");
    return exposure_ended(w, "MPI_Win_wait", unchecked, rc);
}
ALSO_MPI(Win_wait);

int PMPI_Win_test(MPI_Win win, int *flag)
{
    OURS(Win_test, win, flag)
    struct idle idle = {0};
    if (!w->exposed) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_test: there was no MPI_Win_post");
    }
    bool unchecked = w->exposure.exposed_unchecked;
    pthread_mutex_lock(&job.notes_lock);
    *flag = sync_test(&w->exposure);
    int rc = sync_error(&w->exposure);
    pthread_mutex_unlock(&job.notes_lock);
    if (*flag || rc != 0) {
        w->exposed = false;
    } else {
        job_idle(&idle);
        watch_turn(w, &w->exposure, &w->tested);
    }
    return exposure_ended(w, "MPI_Win_test", unchecked, rc);
}
ALSO_MPI(Win_test);
