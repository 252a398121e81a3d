/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking transfers between a handler and its host: those from HPU_DMA_LATER bytes on
 * are noted when the handler asks for them, and done part by part
 *
 *      by the DMA engine (dma_engine.h), while the handler goes on,
 *      by the handler itself: a part with each test that finds that nothing has happened since the
 *      one before, the rest when it waits, and what nobody asked about again when it has returned.
 *
 * Smaller ones are done at once: they take less time than telling somebody. A handler that is
 * ended leaves its transfers as far as they have come; nobody touches its memory afterwards.
 */
#ifndef HPU_DMA_H
#define HPU_DMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "spin_handler.h"

/* To note a transfer and to look whether it is done costs a hundredth of copying so much. */
#define HPU_DMA_LATER ((size_t)65536)

#define HPU_DMA_PENDING 8 /* of a handler, not done; the next one is done at once */

struct hpu_dma_engine;

struct hpu_dma {
    struct list link; /* of the engine, while it may take parts */
    ptl_dma_h handle; /* 0: none */
    size_t looked;    /* bytes that were taken at the last test that found it not done */
    void *to;
    const void *from;
    size_t length;
    bool to_host;
    _Atomic size_t taken; /* where the next part begins, if below length */
    _Atomic size_t done;  /* bytes */
    _Atomic bool failed;  /* some of its memory is not there */
};

/* The transfers of a handler that are not known to be done; NULL: it has none. */
struct hpu_dmas {
    struct hpu_dma_engine *engine; /* NULL: nobody helps */
    struct hpu_dma dma[HPU_DMA_PENDING];
};

/* hpu_dma_local() tells whether memory of a handler can be read, or written as well: where a
 * transfer has failed and it can, the host's memory is not there. */
bool hpu_dma_local(const void *local, size_t length, bool write);

/* hpu_dma_begin() notes a transfer. False: there is no place, or no memory; do it at once. */
bool hpu_dma_begin(struct hpu_dmas **dmas, struct hpu_dma_engine *engine, ptl_dma_h handle,
                   void *to, const void *from, size_t length, bool to_host);

/* hpu_dma_test() says whether a transfer is done; hpu_dma_wait() returns when it is. Both give
 * -EFAULT when it failed, -EIO when that is for the host's memory, else 1 or 0. One that is not
 * noted is done. */
int hpu_dma_test(struct hpu_dmas *dmas, ptl_dma_h handle);
int hpu_dma_wait(struct hpu_dmas *dmas, ptl_dma_h handle);

/* hpu_dma_end() finishes all transfers of a handler, or without `finish` stops them where they are,
 * and forgets them. If one has failed it returns -EFAULT or -EIO, as hpu_dma_wait() does, else 1.
 */
int hpu_dma_end(struct hpu_dmas **dmas, bool finish);

/* hpu_dma_part() copies the next part; false: all are taken. */
bool hpu_dma_part(struct hpu_dma *dma);

#endif
