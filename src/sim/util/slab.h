/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allocator for many small blocks, the tables of thousands of ranks, which a simulation looks up
 * in turn. The blocks lie side by side in large pages, so that they need few TLB entries; with
 * blocks of malloc() TLB misses took a tenth of the time.
 *
 *   chunk:  | link | block | block | ... | left |     the next one is twice as large, up to a page
 *                      ^        ^
 *   free by size:      '--------'                     sizes are powers of two
 *
 * A block that is too large for a chunk is a reservation of its own (reserve.h).
 */
#ifndef SIM_SLAB_H
#define SIM_SLAB_H

#include <stddef.h>
#include <stdint.h>

enum { SLAB_CLASSES = 20 }; /* sizes from 2^0 to 2^19; the smallest classes are not used */

struct slab_link;

/* A zeroed struct is an empty slab. */
struct slab {
    struct slab_link *chunks;
    size_t size;   /* bytes of the newest chunk */
    uint8_t *rest; /* the part of the newest chunk that was never given out */
    size_t left;
    struct slab_link *free[SLAB_CLASSES];
};

/* slab_take() returns a zeroed block of `size` bytes, or NULL if memory is short. slab_give() takes
 * it back, and must be told the same size. */
void *slab_take(struct slab *s, size_t size);
void slab_give(struct slab *s, void *block, size_t size);

/* slab_free() frees all chunks with all their blocks, but not the blocks that are reservations of
 * their own. */
void slab_free(struct slab *s);

#endif
