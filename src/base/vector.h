/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in parts: a list of ranges that is read and written as one.
 *
 *      parts    | 5 bytes | 0 | 3 bytes   | 9 bytes          |
 *      offsets  0         5   5           8                  17
 *                                         ▲
 *                                         cursor {part 3, begin 8}
 *
 * The program has named the ranges, and perhaps the place of the list, so both may be bad
 * addresses: they are accessed with nic_copy() only. Each use of a part works on one copy of its
 * entry: a program that changes the list meanwhile gets its own data wrong, and breaks nothing of
 * the NIC's. A part whose end lies beyond the address space is not accessible, but its bytes count
 * in the offsets.
 *
 * A cursor remembers where the last access ended, so that accesses at rising offsets do not read
 * the entries of earlier parts again. It belongs to one walk over one vector. A zeroed cursor
 * stands at the beginning; an access to an offset before the cursor starts from the beginning
 * again.
 */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct vector {
    const struct iovec *parts;
    size_t count;
};

struct vector_cursor {
    size_t part;    /* the part in which the last access ended */
    uint64_t begin; /* the offset in the vector of that part's first byte */
};

/* vector_length() stores how many bytes the parts have together, at most UINT64_MAX.
 * Returns 0, or -EFAULT if the list of parts cannot be read. */
int vector_length(const struct vector *v, uint64_t *length);

/* vector_gather() copies the n bytes at `offset` to dst, vector_scatter() copies n bytes from
 * src there; dst and src must not overlap the parts. They return 0; or -EFAULT if one of the
 * bytes is not accessible or lies behind the vector's end: then a part of the bytes may have
 * been copied. */
int vector_gather(void *dst, const struct vector *v, struct vector_cursor *c, uint64_t offset,
                  size_t n);
int vector_scatter(const struct vector *v, struct vector_cursor *c, uint64_t offset,
                   const void *src, size_t n);

/* vector_pieces() lists the memory ranges of the n bytes at `offset`, at most `most` ranges, none
 * of them empty. It returns their number and stores in *bytes how many bytes they have: fewer than
 * n if `most` is reached or a later byte is not accessible. It returns -EFAULT if the first byte is
 * not accessible. */
int vector_pieces(const struct vector *v, struct vector_cursor *c, uint64_t offset, uint64_t n,
                  struct iovec *pieces, int most, uint64_t *bytes);

#endif
