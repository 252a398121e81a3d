/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPU memory: what the handlers of an entry share.
 *
 *      | guard page | (up to 63 bytes of padding before and after) memory | guard page |
 *
 * The memory is zeroed, and starts at a multiple of 64. It ends at the upper guard page if its
 * length is a multiple of 64, else less than 64 bytes below: so a handler that runs over the end
 * soon faults. Its owner counts the users.
 */
#ifndef HPU_MEMORY_H
#define HPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct hpu_mem {
    void *base;    /* the handlers' memory */
    size_t length; /* length that the owner has asked for */
    void *mapping;
    size_t mapping_length;
};

/* hpu_mem_create() maps `length` bytes, or returns NULL with errno set. With length 0 every access
 * faults. */
struct hpu_mem *hpu_mem_create(size_t length);

/* hpu_mem_renew() makes a piece without users one of `length` zeroed bytes, if that takes as many
 * pages; false: it does not. */
bool hpu_mem_renew(struct hpu_mem *mem, size_t length);

/* hpu_mem_destroy() unmaps a piece. NULL is legal. */
void hpu_mem_destroy(struct hpu_mem *mem);

#endif
