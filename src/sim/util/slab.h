/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of memory that have much to do with each other: the tables of thousands of
 * ranks, looked up in turn. They lie side by side in large pages, so that they need few
 * entries of the processor's address cache; in blocks of malloc() that took a tenth of the time.
 *
 *   chunk:  | link | block | block | ... | left |     the next one is twice as large, up to a page
 *                      ^        ^
 *   free by size:      '--------'                     sizes are powers of two
 *
 * A block that would fill much of a chunk is reserved by itself.
 */
#ifndef SIM_SLAB_H
#define SIM_SLAB_H

#include <stddef.h>
#include <stdint.h>

enum { SLAB_CLASSES = 20 }; /* sizes from 2^0 to 2^19, of which the first are not used */

struct slab_link;

/* All bytes 0: empty. */
struct slab {
    struct slab_link *chunks;
    size_t size;   /* of the newest chunk */
    uint8_t *rest; /* part of the block that was never given out */
    size_t left;
    struct slab_link *free[SLAB_CLASSES];
};

/* slab_take() gives `size` bytes, all 0, for slab_give() with the same size; NULL if memory
 * is short. */
void *slab_take(struct slab *s, size_t size);
void slab_give(struct slab *s, void *block, size_t size);

/* slab_free() frees all chunks, and what is left of their blocks with them; but not blocks that
 * were reserved by themselves. */
void slab_free(struct slab *s);

#endif
