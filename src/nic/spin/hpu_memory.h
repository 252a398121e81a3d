/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of HPU memory (hpu_memory.c). */
#ifndef NIC_SPIN_HPU_MEMORY_H
#define NIC_SPIN_HPU_MEMORY_H

#include "nic/objects.h"

/* hpu_memory_new() makes a piece of HPU memory; NULL: there is no room for it or its handle. Lock
 * held. */
struct hpu_memory *hpu_memory_new(struct ni *ni, uint64_t length);
/* hpu_memory_has() says whether the NIC may have so many bytes more. To make room it frees blocks
 * that no message uses. */
bool hpu_memory_has(struct nic *nic, uint64_t length);

#endif
