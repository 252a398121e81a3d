/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPU memory: what the handlers of an entry share.
 *
 *      | guard page | (up to 63 bytes of padding before and after) memory | guard page |
 *
 * It is zeroed and starts at a multiple of 64. It ends at the upper guard page if
 * its length is a multiple of 64, else less than 64 bytes below it, so that a
 * handler which runs over the end soon faults. References are counted by its
 * owner, not here.
 */
#ifndef HPU_MEMORY_H
#define HPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct hpu_mem {
    void *base;    /* the handlers' memory */
    size_t length; /* as asked for */
    void *mapping;
    size_t mapping_length;
};

/* hpu_mem_create() maps `length` bytes, or returns NULL with errno set. A length
 * of 0 gives memory of which every byte faults. */
struct hpu_mem *hpu_mem_create(size_t length);

/* hpu_mem_renew() makes a piece that nobody uses any more one of `length`, zeroed again, if that
 * takes as many pages; else false. */
bool hpu_mem_renew(struct hpu_mem *mem, size_t length);

/* hpu_mem_destroy() unmaps it. NULL is legal. */
void hpu_mem_destroy(struct hpu_mem *mem);

#endif
