/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large zeroed arrays of which only what is touched costs memory: address space
 * is reserved at once, pages come at first use. Nothing ever moves.
 *
 * What is large begins and ends where pages of 2 MiB do: one of them costs the kernel as
 * much as some hundred small ones, so that it is cheaper for all that fills a quarter of it.
 */
#ifndef SIM_RESERVE_H
#define SIM_RESERVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define SIM_LARGE_PAGE ((size_t)2 << 20)
#define SIM_LARGE (SIM_LARGE_PAGE / 4) /* smallest reservation that has large pages */

/* The bytes that are taken for so many. */
static inline size_t sim_reserved(size_t size)
{
    if (size >= SIM_LARGE) {
        return (size + SIM_LARGE_PAGE - 1) / SIM_LARGE_PAGE * SIM_LARGE_PAGE;
    }
    return size > 0 ? size : 1;
}

/* sim_reserve() gives zeroed memory for sim_unreserve(), or NULL with errno set. */
static inline void *sim_reserve(size_t size)
{
    size_t length = sim_reserved(size);
    size_t more = length >= SIM_LARGE ? SIM_LARGE_PAGE : 0; /* to find its beginning in */
    char *p = mmap(NULL, length + more, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    if (more > 0) {
        size_t before = -(uintptr_t)p % SIM_LARGE_PAGE;
        if (before > 0) {
            munmap(p, before);
        }
        p += before;
        munmap(p + length, more - before);
        madvise(p, length, MADV_HUGEPAGE);
    }
    return p;
}

static inline void sim_unreserve(void *p, size_t size)
{
    if (p != NULL) {
        munmap(p, sim_reserved(size));
    }
}

#endif
