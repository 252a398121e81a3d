/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mover: a thread that copies the large non-blocking transfers of a NIC's handlers (dma.h)
 * while these compute, part by part, the oldest one first. One of 1 MiB or more wakes it; shorter
 * ones it takes while it is awake: to wake a thread costs the handler more than to copy them. It
 * begins with the first one to wake it, and only where the process had more than one processor when
 * its mover was made: on a single one nobody can do anything beside a handler.
 */
#ifndef HPU_MOVER_H
#define HPU_MOVER_H

struct hpu_dma;
struct hpu_mover;

/* hpu_mover_create() makes one that has not begun, NULL: no memory. hpu_mover_destroy() ends it; no
 * transfer may be offered. NULL is legal. */
struct hpu_mover *hpu_mover_create(void);
void hpu_mover_destroy(struct hpu_mover *m);

/* hpu_mover_offer() lets it copy parts of a transfer, until hpu_mover_retract(), which waits for
 * the part that it is at. Both may be called by any thread. */
void hpu_mover_offer(struct hpu_mover *m, struct hpu_dma *dma);
void hpu_mover_retract(struct hpu_mover *m, struct hpu_dma *dma);

#endif
