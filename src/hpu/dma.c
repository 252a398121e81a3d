/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking transfers; see dma.h. */
#include "hpu/dma.h"

#include <errno.h>
#include <stdlib.h>

#include "base/nic_copy.h"
#include "base/sys.h"
#include "hpu/dma_engine.h"

#define PART ((size_t)32768)
#define SPINS 100 /* looks before a waiting handler yields the core */

bool hpu_dma_local(const void *local, size_t length, bool write)
{
    enum { PAGE = 4096 };
    char *at = (char *)local, *end = at + length, byte;
    while (at < end && nic_copy(write ? at : &byte, at, 1) == 0) {
        at = (char *)((uintptr_t)at / PAGE * PAGE + PAGE);
    }
    return at >= end;
}

bool hpu_dma_part(struct hpu_dma *d)
{
    size_t at = atomic_load_explicit(&d->taken, memory_order_relaxed);
    if (at < d->length) {
        at = atomic_fetch_add_explicit(&d->taken, PART, memory_order_relaxed);
    }
    if (at >= d->length) {
        return false;
    }
    size_t n = d->length - at < PART ? d->length - at : PART;
    if (nic_copy((char *)d->to + at, (const char *)d->from + at, n) != 0) {
        atomic_store_explicit(&d->failed, true, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&d->done, n, memory_order_release);
    return true;
}

static bool is_done(const struct hpu_dma *d)
{
    return atomic_load_explicit(&d->done, memory_order_acquire) == d->length;
}

/* Removes a transfer that the engine copies no more, and returns its result. */
static int forget(struct hpu_dmas *dmas, struct hpu_dma *d)
{
    if (dmas->engine != NULL) {
        hpu_dma_engine_retract(dmas->engine, d);
    }
    d->handle = 0;
    if (!atomic_load_explicit(&d->failed, memory_order_relaxed)) {
        return 1;
    }
    return hpu_dma_local(d->to_host ? d->from : d->to, d->length, !d->to_host) ? -EIO : -EFAULT;
}

static struct hpu_dma *find(struct hpu_dmas *dmas, ptl_dma_h handle)
{
    for (unsigned i = 0; dmas != NULL && i < HPU_DMA_PENDING; i++) {
        if (dmas->dma[i].handle == handle) {
            return &dmas->dma[i];
        }
    }
    return NULL;
}

bool hpu_dma_begin(struct hpu_dmas **dmas, struct hpu_dma_engine *engine, ptl_dma_h handle,
                   void *to, const void *from, size_t length, bool to_host)
{
    if (*dmas == NULL) {
        *dmas = calloc(1, sizeof(**dmas));
    }
    struct hpu_dma *d = find(*dmas, 0);
    if (d == NULL) {
        return false;
    }
    (*dmas)->engine = engine;
    d->handle = handle;
    d->to = to;
    d->from = from;
    d->length = length;
    d->to_host = to_host;
    d->looked = SIZE_MAX;
    atomic_store_explicit(&d->taken, 0, memory_order_relaxed);
    atomic_store_explicit(&d->done, 0, memory_order_relaxed);
    atomic_store_explicit(&d->failed, false, memory_order_relaxed);
    list_init(&d->link);
    if (engine != NULL) {
        hpu_dma_engine_offer(engine, d);
    }
    return true;
}

uint64_t *hpu_dma_due(struct hpu_dmas *dmas, ptl_dma_h handle)
{
    struct hpu_dma *d = find(dmas, handle);
    return d != NULL ? &d->due : NULL;
}

int hpu_dma_test(struct hpu_dmas *dmas, ptl_dma_h handle)
{
    struct hpu_dma *d = find(dmas, handle);
    if (d == NULL) {
        return 1;
    }
    size_t taken = atomic_load_explicit(&d->taken, memory_order_relaxed);
    if (!is_done(d) && (dmas->engine == NULL || taken == d->looked)) {
        hpu_dma_part(d);
    }
    d->looked = taken;
    return is_done(d) ? forget(dmas, d) : 0;
}

int hpu_dma_wait(struct hpu_dmas *dmas, ptl_dma_h handle)
{
    struct hpu_dma *d = find(dmas, handle);
    if (d == NULL) {
        return 1;
    }
    while (hpu_dma_part(d)) {
    }
    for (unsigned turn = 0; !is_done(d); turn++) {
        if (turn < SPINS) {
            cpu_pause();
        } else {
            sys_yield();
        }
    }
    return forget(dmas, d);
}

int hpu_dma_end(struct hpu_dmas **dmas, bool finish)
{
    int rc = 1;
    if (*dmas == NULL) {
        return rc; /* true for most handlers, which are spared a call of free() */
    }
    for (unsigned i = 0; i < HPU_DMA_PENDING; i++) {
        struct hpu_dma *d = &(*dmas)->dma[i];
        if (d->handle != 0) {
            int one = finish ? hpu_dma_wait(*dmas, d->handle) : forget(*dmas, d);
            rc = one < 0 ? one : rc;
        }
    }
    free(*dmas);
    *dmas = NULL;
    return rc;
}
