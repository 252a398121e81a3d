/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a program has named, as operations see it: a range, or a place in the
 * parts of a PTL_IOVEC descriptor or entry. All access is by nic_copy() and so survives a
 * bad address: 0, or -EFAULT.
 */
#ifndef NIC_MEMORY_H
#define NIC_MEMORY_H

#include "base/nic_copy.h"
#include "base/vector.h"

#include <stdint.h>

struct memory {
    void *base;
    const struct vector *vector; /* NULL: it begins at `base`; else it is in the vector */
    uint64_t skip;               /* its offset in the vector */
};

/* memory_at() is an address in memory that a program or a peer has named: a
 * range may start at null and span the address space, so this is arithmetic on
 * addresses, not on pointers into an object. */
static inline void *memory_at(const void *start, uint64_t offset)
{
    return (void *)((uintptr_t)start + offset);
}

/* memory_of() is the place at an offset of a descriptor or an entry; its vector has no
 * parts if it is a plain range. */
static inline struct memory memory_of(const void *start, const struct vector *vector,
                                      uint64_t offset)
{
    return likely(vector->parts == NULL) ? (struct memory){memory_at(start, offset), NULL, 0}
                                         : (struct memory){NULL, vector, offset};
}

static inline int memory_read(void *to, const struct memory *m, size_t n)
{
    struct vector_cursor cursor = {0, 0};
    return m->vector == NULL ? nic_copy(to, m->base, n)
                             : vector_gather(to, m->vector, &cursor, m->skip, n);
}

static inline int memory_write(const struct memory *m, const void *from, size_t n)
{
    struct vector_cursor cursor = {0, 0};
    return m->vector == NULL ? nic_copy(m->base, from, n)
                             : vector_scatter(m->vector, &cursor, m->skip, from, n);
}

/* memory_address() is where its first byte is; NULL if it has none. */
static inline void *memory_address(const struct memory *m)
{
    struct vector_cursor cursor = {0, 0};
    struct iovec first = {m->base, 0};
    uint64_t bytes;
    if (m->vector != NULL &&
        vector_pieces(m->vector, &cursor, m->skip, 1, &first, 1, &bytes) != 1) {
        return NULL;
    }
    return first.iov_base;
}

#endif
