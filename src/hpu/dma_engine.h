/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DMA engine: a thread that copies the large non-blocking transfers of a NIC's handlers (dma.h)
 * while these compute, part by part, the oldest transfer first. An offer of 1 MiB or more wakes it.
 * It takes shorter ones only while it is awake: to wake a thread costs the handler more than to
 * copy them. The thread begins with the first offer that would wake it, and only if the process had
 * more than one processor when the engine was made: on a single one it could not copy beside a
 * handler.
 */
#ifndef HPU_DMA_ENGINE_H
#define HPU_DMA_ENGINE_H

struct hpu_dma;
struct hpu_dma_engine;

/* hpu_dma_engine_create() makes an engine whose thread has not begun; NULL: no memory.
 * hpu_dma_engine_destroy() ends it; no transfer may be offered any more. NULL is legal. */
struct hpu_dma_engine *hpu_dma_engine_create(void);
void hpu_dma_engine_destroy(struct hpu_dma_engine *m);

/* hpu_dma_engine_offer() lets the engine copy parts of a transfer, until hpu_dma_engine_retract():
 * that waits until the engine has copied the part that it is at. Any thread may call both. */
void hpu_dma_engine_offer(struct hpu_dma_engine *m, struct hpu_dma *dma);
void hpu_dma_engine_retract(struct hpu_dma_engine *m, struct hpu_dma *dma);

#endif
