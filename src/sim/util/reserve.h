/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large zeroed arrays that need memory only for the pages that are used: the address space is
 * reserved at once, and the kernel adds a page at its first access. An array never moves.
 *
 * A reservation of SIM_LARGE bytes or more begins and ends at multiples of 2 MiB, so that the
 * kernel can use pages of that size. Such a page costs the kernel as much as some hundred small
 * ones, so it is cheaper if at least a quarter of it is used.
 */
#ifndef SIM_RESERVE_H
#define SIM_RESERVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define SIM_LARGE_PAGE ((size_t)2 << 20)
#define SIM_LARGE (SIM_LARGE_PAGE / 4) /* smallest reservation for which 2 MiB pages are used */

/* Returns how many bytes of address space a reservation of `size` bytes takes. */
static inline size_t sim_reserved(size_t size)
{
    if (size >= SIM_LARGE) {
        return (size + SIM_LARGE_PAGE - 1) / SIM_LARGE_PAGE * SIM_LARGE_PAGE;
    }
    return size > 0 ? size : 1;
}

/* sim_reserve() returns zeroed memory, which sim_unreserve() gives back; NULL, with errno set, if
 * it fails. */
static inline void *sim_reserve(size_t size)
{
    size_t length = sim_reserved(size);
    /* room to find a multiple of 2 MiB in */
    size_t more = length >= SIM_LARGE ? SIM_LARGE_PAGE : 0;
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
