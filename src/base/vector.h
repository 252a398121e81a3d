/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory in parts: a list of ranges that is read and written as one.
 *
 *      parts    | 5 bytes | 0 | 3 bytes   | 9 bytes          |
 *      offsets  0         5   5           8                  17
 *                                         ▲
 *                                         cursor {part 3, begin 8}
 *
 * The ranges are named by others, and so may be the list of them: both are touched
 * through nic_copy() only. Each use of a part works on one copy of its entry, so that a
 * list that changes meanwhile misleads nobody but those who named it.
 * A part whose end lies beyond the address space is not accessible; its bytes count.
 *
 * A cursor remembers where the last access ended, so that a walk over a vector does not
 * look again at the parts that it has left behind. It belongs to one walk over one vector;
 * a zeroed one stands at the beginning, and an access before it starts from there again.
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
    size_t part;    /* where the last access ended */
    uint64_t begin; /* the offset of that part's first byte */
};

/* vector_length() stores how many bytes the parts have together, at most UINT64_MAX.
 * Returns 0, or -EFAULT if the list of parts cannot be read. */
int vector_length(const struct vector *v, uint64_t *length);

/* vector_gather() copies the n bytes at `offset` to dst, vector_scatter() copies n bytes
 * from src there; dst and src must not overlap the parts. They return 0; or -EFAULT if one
 * of the bytes is not accessible or lies behind the end, and then some may have been copied. */
int vector_gather(void *dst, const struct vector *v, struct vector_cursor *c, uint64_t offset,
                  size_t n);
int vector_scatter(const struct vector *v, struct vector_cursor *c, uint64_t offset,
                   const void *src, size_t n);

/* vector_pieces() lists where the n bytes at `offset` are, as far as `most` pieces
 * reach; none is empty. Returns how many it wrote and stores how many bytes they have:
 * fewer than n too if those behind them have no address; -EFAULT if that is so of the
 * first. */
int vector_pieces(const struct vector *v, struct vector_cursor *c, uint64_t offset, uint64_t n,
                  struct iovec *pieces, int most, uint64_t *bytes);

#endif
