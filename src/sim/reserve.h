/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large zeroed arrays of which only what is touched costs memory: address space
 * is reserved at once, pages come at first use. Nothing ever moves. Large pages save
 * a tenth of a run's time where it is short for the memory that it touches.
 */
#ifndef SIM_RESERVE_H
#define SIM_RESERVE_H

#include <stddef.h>
#include <sys/mman.h>

#define SIM_LARGE ((size_t)2 << 20)

/* sim_reserve() gives zeroed memory for sim_unreserve(), or NULL with errno set. */
static inline void *sim_reserve(size_t size)
{
    void *p = mmap(NULL, size > 0 ? size : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED && size >= SIM_LARGE) {
        madvise(p, size, MADV_HUGEPAGE);
    }
    return p != MAP_FAILED ? p : NULL;
}

static inline void sim_unreserve(void *p, size_t size)
{
    if (p != NULL) {
        munmap(p, size > 0 ? size : 1);
    }
}

#endif
