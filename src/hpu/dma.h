/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking transfers between a handler and its host. One of HPU_DMA_LATER bytes or more is
 * noted when the handler asks for it, and copied part by part: by the DMA engine (dma_engine.h),
 * while the handler goes on; and by the handler's thread: one part at each test which finds that no
 * part was begun since the last test; the rest when the handler waits; and when it has returned,
 * what is left of all transfers.
 *
 * A smaller one is copied at once, which takes less time than to hand it over. The transfers of a
 * handler that is ended stay as far as they have come; no thread touches the handler's memory
 * afterwards.
 */
#ifndef HPU_DMA_H
#define HPU_DMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "spin_handler.h"

/* To note a transfer and to test whether it is done costs a hundredth of copying so many bytes. */
#define HPU_DMA_LATER ((size_t)65536)

/* Transfers of a handler that may be not done; one more is copied at once. */
#define HPU_DMA_PENDING 8

struct hpu_dma_engine;

struct hpu_dma {
    struct list link; /* in the engine's list, while the engine may take parts */
    ptl_dma_h handle; /* 0: the place is free */
    size_t looked;    /* `taken` at the last test that found it not done */
    void *to;
    const void *from;
    size_t length;
    bool to_host;
    uint64_t due;         /* in virtual time: when it is done */
    _Atomic size_t taken; /* where the next part begins, if below length */
    _Atomic size_t done;  /* bytes that have been copied */
    _Atomic bool failed;  /* some of the memory is not there */
};

/* The transfers of a handler that it does not know to be done; a NULL pointer to it means none. */
struct hpu_dmas {
    struct hpu_dma_engine *engine; /* NULL: the handler's thread copies alone */
    struct hpu_dma dma[HPU_DMA_PENDING];
};

/* hpu_dma_local() tells whether a handler's memory can be read, or with `write` also written. If a
 * transfer has failed although it can, the host's memory is at fault. */
bool hpu_dma_local(const void *local, size_t length, bool write);

/* hpu_dma_begin() notes a transfer. False: no place or no memory; the caller copies at once. */
bool hpu_dma_begin(struct hpu_dmas **dmas, struct hpu_dma_engine *engine, ptl_dma_h handle,
                   void *to, const void *from, size_t length, bool to_host);

/* hpu_dma_test() says whether a transfer is done (1 or 0); hpu_dma_wait() returns when it is (1).
 * Both return -EFAULT if it failed, or -EIO if that was for the host's memory. A transfer that is
 * not noted counts as done. */
int hpu_dma_test(struct hpu_dmas *dmas, ptl_dma_h handle);
int hpu_dma_wait(struct hpu_dmas *dmas, ptl_dma_h handle);

/* hpu_dma_due() is where the time of a transfer that is noted is kept, in virtual time; NULL: it is
 * not noted. */
uint64_t *hpu_dma_due(struct hpu_dmas *dmas, ptl_dma_h handle);

/* hpu_dma_end() finishes all transfers of a handler, or without `finish` stops them where they are,
 * and frees them. If one has failed it returns -EFAULT or -EIO, as hpu_dma_wait() does; else 1. */
int hpu_dma_end(struct hpu_dmas **dmas, bool finish);

/* hpu_dma_part() copies the next part of a transfer; false: all parts are taken. */
bool hpu_dma_part(struct hpu_dma *dma);

#endif
