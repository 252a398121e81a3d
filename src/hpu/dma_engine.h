/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DMA engine: a thread that copies the large non-blocking transfers of a NIC's handlers (dma.h)
 * while these compute, part by part, the oldest one first. One of 1 MiB or more wakes it; shorter
 * ones it takes while it is awake: to wake a thread costs the handler more than to copy them. It
 * begins with the first one to wake it, and only where the process had more than one processor when
 * its DMA engine was made: on a single one nobody can do anything beside a handler.
 */
#ifndef HPU_DMA_ENGINE_H
#define HPU_DMA_ENGINE_H

struct hpu_dma;
struct hpu_dma_engine;

/* hpu_dma_engine_create() makes one that has not begun, NULL: no memory. hpu_dma_engine_destroy()
 * ends it; no transfer may be offered. NULL is legal. */
struct hpu_dma_engine *hpu_dma_engine_create(void);
void hpu_dma_engine_destroy(struct hpu_dma_engine *m);

/* hpu_dma_engine_offer() lets it copy parts of a transfer, until hpu_dma_engine_retract(), which
 * waits for the part that it is at. Both may be called by any thread. */
void hpu_dma_engine_offer(struct hpu_dma_engine *m, struct hpu_dma *dma);
void hpu_dma_engine_retract(struct hpu_dma_engine *m, struct hpu_dma *dma);

#endif
