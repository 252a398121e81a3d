/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic windows. Each rank has a list of the memory that it has attached, with a key of each
 * piece, in memory that others read; the key of the list is in its slot. Attaching and detaching
 * are local. Others keep what they have read, and read it anew when they do not find an address, or
 * when a piece that they know is gone.
 *
 *      slot: version, regions, key of the list ──► list: {base, length, key} ...
 *
 * - Y1 The version is odd while slot or list change. Who reads the list reads the version before
 *   and after it, and reads again if it was odd or has changed.
 * - Y2 A list that has become too small is replaced by another one with another key: who reads the
 *   old one gets -ESTALE, and begins at the slot.
 */
#include "dynamic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct attached {
    uint64_t base, length;
    unsigned char key[PW_RMA_KEY];
};

struct dynamic {
    struct attached *list;
    struct pw_rma_region **regions; /* of each */
    uint32_t room;
    struct pw_rma_region *listed; /* the list's own */
};

static void change(struct slot *s)
{
    __atomic_fetch_add(&s->version, 1, __ATOMIC_SEQ_CST);
}

/* ---- The rank's own memory ---- */

/* A list with room for one more. The caller has w->lock. */
static int make_room(struct window *w)
{
    struct dynamic *d = w->dynamic;
    struct slot *s = w->slot;
    if (d == NULL) {
        d = w->dynamic = calloc(1, sizeof(*d));
        if (d == NULL) {
            return -ENOMEM;
        }
    }
    if (s->regions < d->room) {
        return 0;
    }
    uint32_t room = d->room == 0 ? 8 : 2 * d->room;
    struct attached *list = calloc(room, sizeof(*list));
    struct pw_rma_region **regions = calloc(room, sizeof(struct pw_rma_region *));
    struct pw_rma_region *listed = NULL;
    int rc = list != NULL && regions != NULL
                 ? pw_rma_register(job.rma, list, room * sizeof(*list), PW_RMA_READ, &listed)
                 : -ENOMEM;
    if (rc != 0) {
        free(list);
        free(regions);
        return rc;
    }
    for (uint64_t i = 0; i < s->regions; i++) {
        list[i] = d->list[i];
        regions[i] = d->regions[i];
    }
    change(s);
    pw_rma_key_pack(listed, s->key, sizeof(s->key));
    change(s);
    window_unregister(d->listed);
    free(d->list);
    free(d->regions);
    *d = (struct dynamic){list, regions, room, listed};
    return 0;
}

static int attach(struct window *w, void *base, MPI_Aint size)
{
    struct slot *s = w->slot;
    uint64_t low = (uintptr_t)base, high = low + (uint64_t)size;
    int rc = make_room(w);
    for (uint64_t i = 0; i < s->regions && rc == 0; i++) {
        const struct attached *a = &w->dynamic->list[i];
        if (low < a->base + a->length && a->base < high) {
            return MPI_ERR_RMA_ATTACH;
        }
    }
    struct pw_rma_region *region;
    struct attached is = {.base = low, .length = (uint64_t)size};
    rc = rc == 0 ? window_register(base, (size_t)size, &region) : rc;
    if (rc != 0) {
        return class_of(rc);
    }
    pw_rma_key_pack(region, is.key, sizeof(is.key));
    change(s);
    w->dynamic->regions[s->regions] = region;
    w->dynamic->list[s->regions] = is;
    s->regions++;
    change(s);
    return MPI_SUCCESS;
}

static int detach(struct window *w, const void *base)
{
    struct slot *s = w->slot;
    struct dynamic *d = w->dynamic;
    for (uint64_t i = 0; i < s->regions; i++) {
        if (d->list[i].base == (uintptr_t)base) {
            struct pw_rma_region *region = d->regions[i];
            change(s);
            s->regions--;
            d->list[i] = d->list[s->regions];
            d->regions[i] = d->regions[s->regions];
            change(s);
            window_unregister(region);
            return MPI_SUCCESS;
        }
    }
    return MPI_ERR_BASE;
}

int PMPI_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    struct window *w = window_of(win);
    if (w == NULL) {
        return REAL(Win_attach, win, base, size);
    }
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC) {
        return window_error(w, MPI_ERR_RMA_FLAVOR, "MPI_Win_attach: the window is not dynamic");
    }
    if (size < 0) {
        return window_error(w, MPI_ERR_SIZE, "MPI_Win_attach: size %td", size);
    }
    if (size == 0) {
        return MPI_SUCCESS;
    }
    pthread_mutex_lock(&w->lock);
    int class = attach(w, base, size);
    pthread_mutex_unlock(&w->lock);
    return class == MPI_SUCCESS
               ? class
               : window_error(w, class, "MPI_Win_attach: %td bytes at %p: %s", size, base,
                              class == MPI_ERR_RMA_ATTACH ? "some are attached" : "no room");
}
ALSO_MPI(Win_attach);

int PMPI_Win_detach(MPI_Win win, const void *base)
{
    struct window *w = window_of(win);
    if (w == NULL) {
        return REAL(Win_detach, win, base);
    }
    if (w->flavor != MPI_WIN_FLAVOR_DYNAMIC) {
        return window_error(w, MPI_ERR_RMA_FLAVOR, "MPI_Win_detach: the window is not dynamic");
    }
    pthread_mutex_lock(&w->lock);
    int class = detach(w, base);
    pthread_mutex_unlock(&w->lock);
    return class == MPI_SUCCESS
               ? class
               : window_error(w, class, "MPI_Win_detach: nothing is attached at %p", base);
}
ALSO_MPI(Win_detach);

void dynamic_end(struct window *w)
{
    struct dynamic *d = w->dynamic;
    if (d == NULL) {
        return;
    }
    for (uint64_t i = 0; i < w->slot->regions; i++) {
        window_unregister(d->regions[i]);
    }
    window_unregister(d->listed);
    free(d->list);
    free(d->regions);
    free(d);
    w->dynamic = NULL;
}

/* ---- Others' ---- */

static int get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset)
{
    struct pw_rma_request request;
    int rc = pw_rma_get(key, to, length, offset, &request);
    return rc == 0 ? pw_rma_wait(&request) : rc;
}

void dynamic_drop(struct target *t)
{
    for (uint32_t i = 0; i < t->piece_count; i++) {
        pw_rma_key_close(t->pieces[i].key);
    }
    free(t->pieces);
    t->pieces = NULL;
    t->piece_count = 0;
}

static int keep(struct target *t, const struct attached *list, uint64_t count)
{
    dynamic_drop(t);
    t->pieces = calloc(count + 1, sizeof(*t->pieces));
    for (uint64_t i = 0; t->pieces != NULL && i < count; i++) {
        struct pw_rma_key *key;
        int rc = pw_rma_key_open(job.rma, list[i].key, sizeof(list[i].key), &key);
        if (rc != 0) {
            return rc;
        }
        t->pieces[t->piece_count++] = (struct piece){list[i].base, list[i].length, key};
    }
    return t->pieces != NULL ? 0 : -ENOMEM;
}

/* Reads the list once; -ESTALE: it has changed meanwhile. */
static int read_once(const struct window *w, struct target *t)
{
    struct pw_rma_key *control = peer_control(w->ranks->peers[t->rank]), *key;
    uint64_t slot = w->slot_number * sizeof(struct slot), after;
    struct slot is;
    struct attached *list = NULL;
    int rc = get(control, &is.version, sizeof(is) - offsetof(struct slot, version),
                 slot + offsetof(struct slot, version));
    if (rc != 0 || is.version % 2 != 0) {
        return rc != 0 ? rc : -ESTALE;
    }
    if (is.regions > 0) {
        rc = pw_rma_key_open(job.rma, is.key, sizeof(is.key), &key);
        list = rc == 0 ? malloc(is.regions * sizeof(*list)) : NULL;
        if (rc == 0) {
            rc = list == NULL ? -ENOMEM : get(key, list, is.regions * sizeof(*list), 0);
            pw_rma_key_close(key);
        }
    }
    rc = rc == 0 ? get(control, &after, sizeof(after), slot + offsetof(struct slot, version)) : rc;
    rc = rc == 0 && after != is.version ? -ESTALE : rc;
    rc = rc == 0 ? keep(t, list, is.regions) : rc;
    free(list);
    return rc;
}

static struct piece *piece_of(const struct target *t, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0; i < t->piece_count; i++) {
        struct piece *p = &t->pieces[i];
        if (low >= p->base && high <= p->base + p->length) {
            return p;
        }
    }
    return NULL;
}

int dynamic_find(struct window *w, struct target *t, uint64_t low, uint64_t high,
                 struct pw_rma_key **key, uint64_t *base)
{
    struct idle idle = {0};
    int rc = 0;
    struct piece *p = piece_of(t, low, high);
    if (p == NULL) {
        while ((rc = read_once(w, t)) == -ESTALE) {
            job_idle(&idle);
        }
        p = piece_of(t, low, high);
    }
    if (p != NULL) {
        *key = p->key;
        *base = p->base;
    }
    return rc != 0 ? rc : p != NULL ? 0 : -ESTALE;
}
