/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows are made and freed.
 *
 *      ranks of the communicator, a slot       allreduce over the communicator
 *      memory, its region, the slot's words    each rank for itself
 *      did all succeed?                        the engine's creation, over Portals; nobody leaves
 *                                              before all have exposed their memory
 *
 * Where a rank cannot, all of them let the MPI make the window, and the first one says why. A
 * window ends by a fence of all: after that no message for it is under way.
 */
#include "create.h"

#include "dynamic.h"
#include "epoch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---- */

int window_register(void *start, size_t length, struct pw_rma_region **region)
{
    unsigned access = PW_RMA_READ | PW_RMA_WRITE;
    int rc = pw_rma_register(job.rma, start, length, access | PW_RMA_PAIRS, region);
    /* without handlers there are no operations on pairs, but all others */
    return rc == -EOPNOTSUPP ? pw_rma_register(job.rma, start, length, access, region) : rc;
}

/* Memory that other ranks of the host can map. */
static int allocate(size_t length, void **start, struct pw_rma_region **region)
{
    unsigned access = PW_RMA_READ | PW_RMA_WRITE;
    int rc = pw_rma_allocate(job.rma, length, access | PW_RMA_PAIRS, start, region);
    return rc == -EOPNOTSUPP ? pw_rma_allocate(job.rma, length, access, start, region) : rc;
}

/* Is there room for what all ranks of a host are about to allocate? Collective. */
static enum reason find_room(const struct wish *wish, const struct ranks *ranks)
{
    uint64_t mine = (uint64_t)wish->size, sum = 0;
    PMPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, wish->comm);
    return pw_rma_room(ranks->one_host ? sum : mine) == 0 ? REASON_NONE : REASON_ROOM;
}

void window_unregister(struct pw_rma_region *region)
{
    struct idle idle = {0};
    while (region != NULL && pw_rma_unregister(region) == -EBUSY) {
        job_idle(&idle);
    }
}

/* Gets the memory of a window, and lets others access it. */
static enum reason expose(struct window *w, const struct wish *wish)
{
    enum reason reason = REASON_NONE;
    if (wish->flavor == MPI_WIN_FLAVOR_SHARED) {
        reason = shared_make(w, wish, &w->base);
    } else if (wish->flavor == MPI_WIN_FLAVOR_ALLOCATE && wish->size > 0) {
        int rc = allocate((size_t)w->size, &w->base, &w->region);
        reason = rc == 0 ? REASON_NONE : rc == -ENOMEM ? REASON_ROOM : REASON_REGION;
    } else {
        w->base = wish->base;
    }
    if (reason == REASON_NONE && wish->flavor != MPI_WIN_FLAVOR_DYNAMIC && w->size > 0 &&
        w->region == NULL) {
        int rc = window_register(w->base, (size_t)w->size, &w->region);
        reason = rc == 0 ? REASON_NONE : rc == -ENOMEM ? REASON_MEMORY : REASON_REGION;
    }
    w->slot->base = (uintptr_t)w->base;
    w->slot->length = (uint64_t)w->size;
    w->slot->disp_unit = (uint64_t)w->disp_unit;
    if (w->region != NULL) {
        pw_rma_key_pack(w->region, w->slot->key, sizeof(w->slot->key));
    }
    return reason;
}

void window_end(struct window *w)
{
    struct targets *t = atomic_load(&w->targets);
    for (uint32_t i = 0; t != NULL && i < t->room; i++) {
        struct target *is = atomic_load(&t->at[i]);
        if (is != NULL) {
            dynamic_drop(is);
            if (is->key != NULL) {
                pw_rma_key_close(is->key);
            }
            free(is);
        }
    }
    for (struct targets *older; t != NULL; t = older) {
        older = t->older;
        free(t);
    }
    dynamic_end(w);
    window_unregister(w->region);
    shared_end(w->shared);
    free(w->started);
    free(w->exposed_to);
    watch_leave(w);
    pthread_mutex_lock(&job.lock);
    atomic_store(&job.windows[w->slot_number], NULL);
    pthread_mutex_unlock(&job.lock);
    pthread_mutex_lock(&job.notes_lock); /* now nobody takes notes for it */
    pthread_mutex_unlock(&job.notes_lock);
    if (watch_rank(w) == UINT32_MAX) { /* else messages may come: it stays taken (W2) */
        slot_give_back(w->slot_number);
    }
    sync_fini(&w->sync);
    sync_fini(&w->exposure);
    if (w->group != MPI_GROUP_NULL) {
        PMPI_Group_free(&w->group);
    }
    if (w->info != MPI_INFO_NULL) {
        PMPI_Info_free(&w->info);
    }
    ranks_drop(w->ranks);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->acquire);
    free(w);
}

/* ---- Making ---- */

static enum reason engines(struct window *w)
{
    uint32_t rank = w->ranks->rank, size = w->ranks->size;
    if (sync_init(&w->sync, &carry_ops, w, w->slot->shared, rank, size, w->slot_number) != 0 ||
        sync_init(&w->exposure, &carry_ops, w, w->slot->shared, rank, size, w->slot_number) != 0) {
        return REASON_MEMORY;
    }
    sync_fini(&w->exposure); /* it creates nothing */
    w->exposure.agreement = NULL;
    return REASON_NONE;
}

/* The struct, with nothing that others know of; NULL: no memory. */
static struct window *begin(const struct wish *wish, struct ranks *ranks)
{
    struct window *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    w->ranks = ranks;
    w->flavor = wish->flavor;
    w->model = MPI_WIN_UNIFIED;
    w->size = wish->size;
    w->disp_unit = wish->disp_unit;
    w->unit = (int)wish->disp_unit;
    w->limit = info_says(wish->info, "pinwheel_rma_path", "native")    ? PW_RMA_NATIVE
               : info_says(wish->info, "pinwheel_rma_path", "handler") ? PW_RMA_HANDLER
                                                                       : PW_RMA_DIRECT;
    w->group = MPI_GROUP_NULL;
    w->info = MPI_INFO_NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->acquire, NULL);
    return w;
}

static void give_up(const struct wish *wish, const struct ranks *ranks, enum reason reason)
{
    if (ranks->rank == 0 && reason != REASON_WANTED) {
        fprintf(stderr, "pinwheel rma: a window of %u ranks (%s) is the MPI's: %s\n", ranks->size,
                wish->call, reason_text[reason]);
    }
}

/* All ranks cannot, for the same reason: the MPI shall, unless it is that there is no room. */
static int all_stop(const struct wish *wish, const struct ranks *ranks, enum reason reason)
{
    if (reason == REASON_ROOM) {
        return comm_error(wish->comm, MPI_ERR_NO_MEM, "%s: %td bytes: %s", wish->call, wish->size,
                          reason_text[reason]);
    }
    give_up(wish, ranks, reason);
    return MPI_SUCCESS;
}

/* All ranks have a slot: what is left is each one's own, and that they agree. */
static int make_in(struct window *w, const struct wish *wish, MPI_Win *win, void **base,
                   enum reason *reason)
{
    void *nothing;
    w->slot = &job.slots[w->slot_number];
    *reason = engines(w);
    if (*reason == REASON_NONE) {
        *reason = expose(w, wish);
    }
    if (real.Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &nothing, &w->handle) !=
        MPI_SUCCESS) {
        w->handle = MPI_WIN_NULL;
        *reason = REASON_HANDLE;
    }
    PMPI_Comm_group(wish->comm, &w->group);
    info_begin(w, wish->info);
    atomic_store(&job.windows[w->slot_number], w);
    KILL_POINT("mpi-creates");
    sync_create(&w->sync, (uint64_t[SYNC_WORDS]){*reason});
    int rc = carry_wait(w, &w->sync);
    *reason = (enum reason)w->sync.agreed[0];
    if (rc != 0 || *reason != REASON_NONE || handle_add(w->handle, w) != MPI_SUCCESS) {
        *reason = *reason == REASON_NONE ? REASON_INTERFACE : *reason;
        if (w->handle != MPI_WIN_NULL) {
            real.Win_free(&w->handle);
        }
        return rc;
    }
    *win = w->handle;
    *base = w->base;
    return 0;
}

int window_make(const struct wish *wish, MPI_Win *win, void **base, bool *ours)
{
    struct ranks *ranks;
    *ours = false;
    int rc = job_ranks(wish->comm, &ranks);
    if (rc != MPI_SUCCESS) {
        return comm_error(wish->comm, rc, "%s: no memory for the ranks", wish->call);
    }
    struct window *w = begin(wish, ranks);
    enum reason reason = w == NULL ? REASON_MEMORY : ranks->reason;
    if (info_says(wish->info, "pinwheel_rma_path", "mpi")) {
        reason = REASON_WANTED;
    }
    if (wish->flavor == MPI_WIN_FLAVOR_SHARED && !ranks->one_host) {
        reason = REASON_HOSTS;
    }
    if (wish->flavor == MPI_WIN_FLAVOR_ALLOCATE || wish->flavor == MPI_WIN_FLAVOR_SHARED) {
        enum reason room = find_room(wish, ranks);
        reason = reason == REASON_NONE ? room : reason;
    }
    uint32_t slot = 0;
    rc = slot_agree(wish->comm, &reason, &slot);
    if (rc != MPI_SUCCESS) {
        rc = comm_error(wish->comm, rc, "%s: the ranks could not agree", wish->call);
    } else if (reason != REASON_NONE) {
        rc = all_stop(wish, ranks, reason);
    } else {
        w->slot_number = slot;
        rc = make_in(w, wish, win, base, &reason);
        *ours = rc == 0 && reason == REASON_NONE;
        if (!*ours) {
            rc = rc == 0 ? all_stop(wish, ranks, reason)
                         : comm_error(wish->comm, class_of(rc), "%s: error %d", wish->call, rc);
            window_end(w);
        }
        return rc;
    }
    free(w);
    ranks_drop(ranks);
    return rc;
}

/* ---- Freeing ---- */

static void tell(const struct window *w)
{
    static const struct {
        int flavor;
        const char *name;
    } names[] = {{MPI_WIN_FLAVOR_CREATE, "created"},
                 {MPI_WIN_FLAVOR_ALLOCATE, "allocated"},
                 {MPI_WIN_FLAVOR_SHARED, "shared"},
                 {MPI_WIN_FLAVOR_DYNAMIC, "dynamic"}};
    const char *wanted = getenv("PINWHEEL_RMA_STATS"), *name = "";
    if (wanted == NULL || strcmp(wanted, "1") != 0) {
        return;
    }
    struct pw_rma_statistics all;
    pw_rma_statistics(job.rma, &all);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        name = names[i].flavor == w->flavor ? names[i].name : name;
    }
    fprintf(stderr,
            "pinwheel rma: rank %u of %u, window %s of %td bytes: %llu puts, %llu gets, %llu "
            "atomics; of all windows %llu direct, %llu messages, %llu of them to handlers; calls "
            "of the MPI's windows: %llu\n",
            w->ranks->rank, w->ranks->size, name, w->size, (unsigned long long)w->puts,
            (unsigned long long)w->gets, (unsigned long long)w->atomics,
            (unsigned long long)all.direct, (unsigned long long)all.messages,
            (unsigned long long)all.handler, (unsigned long long)real_calls);
}

int PMPI_Win_free(MPI_Win *win)
{
    struct window *w = window_of(*win);
    if (w == NULL) {
        return real.Win_free(win);
    }
    if (w->all_locked || w->locks > 0 || w->started != NULL || w->exposed) {
        return window_error(w, MPI_ERR_RMA_SYNC, "MPI_Win_free: an epoch has not ended");
    }
    int code = pw_rma_flush_all(job.rma);
    KILL_POINT("mpi-frees");
    pthread_mutex_lock(&w->acquire);
    sync_fence(&w->sync);
    int rc = carry_wait(w, &w->sync);
    pthread_mutex_unlock(&w->acquire);
    int class = epoch_ended(w, "MPI_Win_free", code != 0 ? code : rc);
    tell(w);
    handle_remove(w->handle);
    window_end(w);
    int freed = real.Win_free(win);
    return class != MPI_SUCCESS ? class : freed;
}
ALSO_MPI(Win_free);
