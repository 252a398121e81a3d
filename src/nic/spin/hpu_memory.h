/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of HPU memory (hpu_memory.c). */
#ifndef NIC_SPIN_HPU_MEMORY_H
#define NIC_SPIN_HPU_MEMORY_H

#include "nic/objects.h"

/* hpu_memory_new() makes one, NULL when there is no room for it or its handle. The lock is held. */
struct hpu_memory *hpu_memory_new(struct ni *ni, uint64_t length);
/* hpu_memory_has() says whether the NIC may have so many bytes more, if need be when blocks that no
 * message uses are given back. */
bool hpu_memory_has(struct nic *nic, uint64_t length);

#endif
