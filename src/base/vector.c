/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory in parts; see vector.h. All accesses find their bytes with next_piece(). */
#include "base/vector.h"

#include "base/nic_copy.h"

#include <errno.h>
#include <stdbool.h>

/* Reads the entry of one part; -EFAULT also if the list itself cannot be read. */
static int read_part(const struct vector *v, size_t index, struct iovec *part)
{
    const void *at = (const void *)((uintptr_t)v->parts + index * sizeof(*part));
    return index < v->count ? nic_copy(part, at, sizeof(*part)) : -EFAULT;
}

/* Finds the address of the byte at `offset`, and how many of the up to n bytes from there lie in
 * the same part. */
static int next_piece(const struct vector *v, struct vector_cursor *c, uint64_t offset, uint64_t n,
                      struct iovec *piece)
{
    if (n > UINT64_MAX - offset) {
        return -EFAULT;
    }
    if (offset < c->begin) {
        *c = (struct vector_cursor){0};
    }
    for (;;) {
        struct iovec part;
        if (read_part(v, c->part, &part) != 0) {
            return -EFAULT;
        }
        uint64_t inside = offset - c->begin;
        if (inside < part.iov_len) {
            uintptr_t base = (uintptr_t)part.iov_base;
            uint64_t rest = part.iov_len - inside;
            *piece = (struct iovec){(void *)(base + inside), rest < n ? rest : n};
            return base + part.iov_len < base ? -EFAULT : 0;
        }
        c->begin += part.iov_len;
        c->part++;
    }
}

int vector_length(const struct vector *v, uint64_t *length)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < v->count; i++) {
        struct iovec part;
        if (read_part(v, i, &part) != 0) {
            return -EFAULT;
        }
        sum = part.iov_len <= UINT64_MAX - sum ? sum + part.iov_len : UINT64_MAX;
    }
    *length = sum;
    return 0;
}

/* Copies n bytes from `bytes` to the vector, or, if `into` is false, from the vector to `bytes`.
 * `into` is a constant at each call. */
static inline __attribute__((always_inline)) int copy_pieces(uint8_t *bytes, const struct vector *v,
                                                             struct vector_cursor *c,
                                                             uint64_t offset, size_t n,
                                                             const bool into)
{
    while (n != 0) {
        struct iovec piece;
        if (next_piece(v, c, offset, n, &piece) != 0 ||
            nic_copy(into ? piece.iov_base : bytes, into ? bytes : piece.iov_base, piece.iov_len) !=
                0) {
            return -EFAULT;
        }
        bytes += piece.iov_len;
        offset += piece.iov_len;
        n -= piece.iov_len;
    }
    return 0;
}

int vector_gather(void *dst, const struct vector *v, struct vector_cursor *c, uint64_t offset,
                  size_t n)
{
    return copy_pieces(dst, v, c, offset, n, false);
}

int vector_scatter(const struct vector *v, struct vector_cursor *c, uint64_t offset,
                   const void *src, size_t n)
{
    return copy_pieces((uint8_t *)src, v, c, offset, n, true);
}

int vector_pieces(const struct vector *v, struct vector_cursor *c, uint64_t offset, uint64_t n,
                  struct iovec *pieces, int most, uint64_t *bytes)
{
    int count = 0;
    *bytes = 0;
    while (count < most && *bytes < n) {
        struct iovec *piece = &pieces[count];
        if (next_piece(v, c, offset + *bytes, n - *bytes, piece) != 0) {
            return count != 0 ? count : -EFAULT;
        }
        *bytes += piece->iov_len;
        count++;
    }
    return count;
}
