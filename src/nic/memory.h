/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a program has named: a range, or a place in the parts of a PTL_IOVEC descriptor or
 * entry. All access is by nic_copy(), so a bad address gives -EFAULT instead of a signal; success
 * is 0. */
#ifndef NIC_MEMORY_H
#define NIC_MEMORY_H

#include "base/nic_copy.h"
#include "base/vector.h"

#include <stdint.h>

struct memory {
    void *base;
    /* NULL: the memory is a range that begins at `base`; else it lies in these parts */
    const struct vector *vector;
    uint64_t skip; /* offset in the parts at which the memory begins */
};

/* memory_at() returns start + offset, where a program or a peer has named both. A range may start
 * at null and span the address space, so this is arithmetic on addresses, not on pointers into an
 * object. */
static inline void *memory_at(const void *start, uint64_t offset)
{
    return (void *)((uintptr_t)start + offset);
}

/* memory_of() returns the memory of a descriptor or an entry from an offset on. `vector` has no
 * parts if the memory is a plain range. */
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

/* memory_address() returns the address of the first byte; NULL if the memory has none. */
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
