/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a handle of the MPI to our window, and from a rank to what a window knows of it.
 *
 * The first is asked in each call, by any thread, while others make and free windows: a hash table
 * with open addressing that readers take no lock for. A writer makes `changes` odd while it moves
 * entries, and a reader who saw that looks again. Tables that have become too small stay, because a
 * reader may be in one; together they are smaller than the one in use.
 */
#include "create.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    _Atomic uintptr_t handle; /* 0: free; it stays when its window is gone */
    struct window *_Atomic window;
};

struct table {
    size_t room; /* power of two */
    struct table *older;
    struct entry at[];
};

static struct table *_Atomic table;
static _Atomic unsigned changes;
static size_t handles, windows; /* entries that are not free; those with a window */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t number_of(MPI_Win handle)
{
    return (uintptr_t)handle;
}

static size_t place_of(const struct table *t, uintptr_t handle)
{
    return (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (t->room - 1);
}

/* The entry of a handle, or the free one where it would be. */
static struct entry *find(struct table *t, uintptr_t handle)
{
    size_t at = place_of(t, handle);
    for (;;) {
        uintptr_t is = atomic_load_explicit(&t->at[at].handle, memory_order_acquire);
        if (is == handle || is == 0) {
            return &t->at[at];
        }
        at = (at + 1) & (t->room - 1);
    }
}

struct window *window_of(MPI_Win handle)
{
    for (;;) {
        unsigned before = atomic_load_explicit(&changes, memory_order_acquire);
        struct table *t = atomic_load_explicit(&table, memory_order_acquire);
        struct window *w = NULL;
        if (t == NULL) {
            return NULL;
        }
        if (before % 2 == 0) {
            w = atomic_load_explicit(&find(t, number_of(handle))->window, memory_order_acquire);
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&changes, memory_order_relaxed) == before) {
                return w;
            }
        }
    }
}

/* Copies the entries that have a window to a table that has none. */
static void copy(struct table *to, const struct entry *from, size_t room)
{
    handles = 0;
    for (size_t i = 0; i < room; i++) {
        struct window *w = atomic_load(&from[i].window);
        if (w != NULL) {
            struct entry *e = find(to, atomic_load(&from[i].handle));
            atomic_store(&e->window, w);
            atomic_store(&e->handle, atomic_load(&from[i].handle));
            handles++;
        }
    }
}

/* Makes room for one more: in a larger table, or by forgetting handles whose window is gone. */
static bool make_room(void)
{
    struct table *t = atomic_load(&table);
    if (t != NULL && 2 * (handles + 1) <= t->room) {
        return true;
    }
    size_t room = t == NULL ? 64 : 4 * (windows + 1) > t->room ? 2 * t->room : t->room;
    size_t bytes = room * sizeof(struct entry);
    if (t != NULL && room == t->room) {
        struct entry *old = malloc(bytes);
        if (old == NULL) {
            return false;
        }
        memcpy(old, t->at, bytes);
        atomic_fetch_add(&changes, 1);
        for (size_t i = 0; i < room; i++) {
            atomic_store(&t->at[i].window, NULL);
            atomic_store(&t->at[i].handle, 0);
        }
        copy(t, old, room);
        atomic_fetch_add(&changes, 1);
        free(old);
        return true;
    }
    struct table *larger = calloc(1, sizeof(*larger) + bytes);
    if (larger == NULL) {
        return false;
    }
    larger->room = room;
    larger->older = t;
    if (t != NULL) {
        copy(larger, t->at, t->room);
    }
    atomic_store(&table, larger);
    return true;
}

int handle_add(MPI_Win handle, struct window *w)
{
    pthread_mutex_lock(&lock);
    bool room = make_room();
    if (room) {
        struct entry *e = find(atomic_load(&table), number_of(handle));
        handles += atomic_load(&e->handle) == 0;
        windows++;
        atomic_store(&e->window, w);
        atomic_store(&e->handle, number_of(handle));
    }
    pthread_mutex_unlock(&lock);
    return room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void handle_remove(MPI_Win handle)
{
    pthread_mutex_lock(&lock);
    atomic_store(&find(atomic_load(&table), number_of(handle))->window, NULL);
    windows--;
    pthread_mutex_unlock(&lock);
}

/* ---- Targets ---- */

static uint32_t target_place(const struct targets *t, uint32_t rank)
{
    return (rank * 2654435761u >> 5) & (t->room - 1);
}

/* The place of a rank, or the free one where it would be. */
static struct target *_Atomic *target_at(struct targets *t, uint32_t rank)
{
    uint32_t at = target_place(t, rank);
    for (;;) {
        struct target *is = atomic_load_explicit(&t->at[at], memory_order_acquire);
        if (is == NULL || is->rank == rank) {
            return &t->at[at];
        }
        at = (at + 1) & (t->room - 1);
    }
}

struct target *target_find(struct window *w, uint32_t rank)
{
    struct targets *t = atomic_load_explicit(&w->targets, memory_order_acquire);
    return t == NULL ? NULL : atomic_load_explicit(target_at(t, rank), memory_order_acquire);
}

/* A table with room for one more; NULL: no memory. */
static struct targets *targets_room(struct window *w)
{
    struct targets *t = atomic_load(&w->targets);
    uint32_t used = 0;
    for (uint32_t i = 0; t != NULL && i < t->room; i++) {
        used += atomic_load(&t->at[i]) != NULL;
    }
    if (t != NULL && 2 * (used + 1) <= t->room) {
        return t;
    }
    uint32_t room = t == NULL ? 4 : 2 * t->room;
    struct targets *larger = calloc(1, sizeof(*larger) + room * sizeof(larger->at[0]));
    if (larger == NULL) {
        return NULL;
    }
    larger->room = room;
    larger->older = t; /* a reader may be in it */
    for (uint32_t i = 0; t != NULL && i < t->room; i++) {
        struct target *is = atomic_load(&t->at[i]);
        if (is != NULL) {
            atomic_store(target_at(larger, is->rank), is);
        }
    }
    atomic_store(&w->targets, larger);
    return larger;
}

struct target *target_made(struct window *w, uint32_t rank)
{
    struct target *is = target_find(w, rank);
    if (is != NULL) {
        return is;
    }
    pthread_mutex_lock(&w->lock);
    is = target_find(w, rank);
    struct targets *t = is == NULL ? targets_room(w) : NULL;
    if (t != NULL) {
        is = calloc(1, sizeof(*is));
        if (is != NULL) {
            is->rank = rank;
            atomic_store(target_at(t, rank), is);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return is;
}

/* Reads the slot of a rank: what its memory is. */
static int read_slot(struct window *w, struct target *t)
{
    struct pw_rma_key *control = peer_control(w->ranks->peers[t->rank]);
    struct slot is;
    struct pw_rma_request request;
    size_t from = offsetof(struct slot, base);
    if (control == NULL) {
        return MPI_ERR_NO_MEM;
    }
    int rc = pw_rma_get(control, &is.base, sizeof(is) - from,
                        w->slot_number * sizeof(struct slot) + from, &request);
    rc = rc == 0 ? pw_rma_wait(&request) : rc;
    if (rc != 0) {
        return class_of(rc);
    }
    t->length = is.length;
    t->disp_unit = is.disp_unit;
    t->peer = pw_rma_key_peer(control);
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC || is.length == 0) {
        return MPI_SUCCESS;
    }
    struct pw_rma_key *key;
    rc = pw_rma_key_open(job.rma, is.key, sizeof(is.key), &key);
    if (rc == 0) {
        if (w->limit != PW_RMA_DIRECT) { /* else what PINWHEEL_RMA_PATH says holds */
            pw_rma_key_limit(key, w->limit);
        }
        if (w->shared != NULL) { /* where paths are limited operations go by messages */
            pw_rma_key_memory(key, shared_part(w->shared, t->rank));
        }
        t->peer = pw_rma_key_peer(key);
        t->key = key;
    }
    return class_of(rc);
}

int window_target(struct window *w, uint32_t rank, struct target **target)
{
    struct target *t = target_made(w, rank);
    int rc = MPI_SUCCESS;
    if (t == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (__atomic_load_n(&t->peer, __ATOMIC_ACQUIRE) == NULL) {
        pthread_mutex_lock(&w->lock);
        if (t->peer == NULL) {
            struct target fresh = {.rank = rank};
            rc = read_slot(w, &fresh);
            if (rc == MPI_SUCCESS) {
                t->key = fresh.key;
                t->length = fresh.length;
                t->disp_unit = fresh.disp_unit;
                __atomic_store_n(&t->peer, fresh.peer, __ATOMIC_RELEASE);
            }
        }
        pthread_mutex_unlock(&w->lock);
    }
    *target = t;
    return rc;
}
