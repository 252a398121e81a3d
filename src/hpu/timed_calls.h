/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handler calls take in virtual time (sched_virtual.c): transfers by the NIC's DMA engine, and
 * looks at what is not there yet. Of a call whose exec has no `env.timed` nothing here may be used.
 *
 *      write   the HPU is taken until the engine has taken the bytes; the host has them L_dma later
 *      read    the HPU is taken until the bytes are there, or with a handle until the handler waits
 *      atomic  as a read
 */
#ifndef HPU_TIMED_CALLS_H
#define HPU_TIMED_CALLS_H

#include "hpu/calls.h"

/* timed_write() has the engine write to a place of the host. A handle (0: none) is done when the
 * engine has the bytes; without one the function returns then. */
void timed_write(struct hpu_exec *exec, const char *name, const struct call_place *to,
                 const void *local, size_t length, ptl_dma_h handle);
/* timed_read() returns when the bytes are there, which the caller copies then. With a handle it
 * returns at once, and true: the handler's wait will copy. */
bool timed_read(struct hpu_exec *exec, const struct call_place *from, void *local, size_t length,
                ptl_dma_h handle);
/* timed_atomic() returns when the operation is over; with a handle at once. */
void timed_atomic(struct hpu_exec *exec, size_t size, ptl_dma_h handle);
/* timed_test() says whether a transfer is done; if not, that takes a look's time. timed_wait()
 * returns when it is, timed_settle() when all of the handler's are. */
bool timed_test(struct hpu_exec *exec, ptl_dma_h handle);
void timed_wait(struct hpu_exec *exec, ptl_dma_h handle);
void timed_settle(struct hpu_exec *exec);
/* timed_look() lets a native handler's look at nothing take its time: device code's has cycles. */
void timed_look(struct hpu_exec *exec);

#endif
