/* SPDX-License-Identifier: BSD-3-Clause */
/* What bytes must be: patterns, and memory in parts; atomics.c has atomics. */
#include "full.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

unsigned char pattern(unsigned number, size_t k)
{
    uint64_t v = (seed * 31 + (number < MESSAGES_MAX ? round_number : 0)) * 0x9e3779b97f4a7c15u +
                 (number + 1) * 0xd6e8feb86659fd93u;
    v ^= v >> 29;
    return (unsigned char)((v >> (8 * (k & 7))) + k * 131 + (k >> 8) * 17);
}

void *memory(size_t n)
{
    void *p = calloc(1, n != 0 ? n : 1);
    MUST(p != NULL, "no memory for %zu bytes", n);
    return p;
}

void parts_new(struct parts *p, size_t length, unsigned n, uint64_t *r)
{
    enum { GAP = 24 };
    p->n = length < n ? 1 : n;
    p->length = length;
    p->memory = memory(length + (size_t)GAP * p->n);
    size_t left = length, at = 0;
    for (unsigned i = 0; i < p->n; i++) {
        size_t most = left / (p->n - i) * 2;
        size_t n_i = i + 1 == p->n ? left : splitmix_below(r, (most < left ? most : left) + 1);
        p->v[i] = (ptl_iovec_t){p->memory + at, n_i};
        at += n_i + (p->n == 1 ? 0 : 1 + splitmix_below(r, GAP));
        left -= n_i;
    }
}

void parts_free(struct parts *p)
{
    free(p->memory);
    p->memory = NULL;
}

static void parts_move(const struct parts *p, size_t offset, unsigned char *bytes, size_t n,
                       bool write)
{
    for (unsigned i = 0; i < p->n && n > 0; i++) {
        size_t length = p->v[i].iov_len;
        if (offset >= length) {
            offset -= length;
            continue;
        }
        size_t here = length - offset < n ? length - offset : n;
        unsigned char *place = (unsigned char *)p->v[i].iov_base + offset;
        memcpy(write ? place : bytes, write ? bytes : place, here);
        bytes += here;
        n -= here;
        offset = 0;
    }
}

void parts_read(const struct parts *p, size_t offset, void *to, size_t n)
{
    parts_move(p, offset, to, n, false);
}

void parts_write(const struct parts *p, size_t offset, const void *from, size_t n)
{
    parts_move(p, offset, (unsigned char *)from, n, true);
}

void *parts_start(struct parts *p)
{
    return p->n == 1 ? p->v[0].iov_base : (void *)p->v;
}

size_t parts_count(const struct parts *p)
{
    return p->n == 1 ? p->length : p->n;
}
