/* SPDX-License-Identifier: BSD-3-Clause */
/* An allocator of blocks that lie side by side; see slab.h. */
#include "slab.h"

#include "reserve.h"

#include <string.h>

/* The head of a chunk; a free block begins with one, too. */
struct slab_link {
    struct slab_link *next;
    size_t size; /* size of the chunk */
};

/* The first chunk is small, since most runs are; blocks are aligned to cache lines. */
enum { LEAST = 64, FIRST_CHUNK = 65536 };
_Static_assert(SIM_LARGE == (size_t)1 << (SLAB_CLASSES - 1), "what is larger is reserved");
_Static_assert(sizeof(struct slab_link) <= LEAST, "a chunk's link takes a line");

static unsigned class_of(size_t size)
{
    return size <= LEAST ? (unsigned)__builtin_ctzl(LEAST)
                         : 64u - (unsigned)__builtin_clzll(size - 1);
}

static int add_chunk(struct slab *s, size_t block)
{
    size_t size = s->size > 0 ? 2 * s->size : FIRST_CHUNK;
    while (size < block + LEAST) {
        size *= 2;
    }
    size = size < SIM_LARGE_PAGE ? size : SIM_LARGE_PAGE;
    struct slab_link *chunk = sim_reserve(size);
    if (chunk == NULL) {
        return -1;
    }
    *chunk = (struct slab_link){s->chunks, size};
    s->chunks = chunk;
    s->size = size;
    s->rest = (uint8_t *)chunk + LEAST;
    s->left = size - LEAST;
    return 0;
}

void *slab_take(struct slab *s, size_t size)
{
    if (size >= SIM_LARGE) {
        return sim_reserve(size);
    }
    unsigned class = class_of(size);
    struct slab_link *block = s->free[class];
    size = (size_t)1 << class;
    if (block != NULL) {
        s->free[class] = block->next;
        return memset(block, 0, size);
    }
    if (s->left < size && add_chunk(s, size) != 0) {
        return NULL;
    }
    s->rest += size;
    s->left -= size;
    return s->rest - size;
}

void slab_give(struct slab *s, void *block, size_t size)
{
    if (size >= SIM_LARGE) {
        sim_unreserve(block, size);
    } else if (block != NULL) {
        struct slab_link *link = block;
        link->next = s->free[class_of(size)];
        s->free[class_of(size)] = link;
    }
}

void slab_free(struct slab *s)
{
    struct slab_link *next;
    for (struct slab_link *chunk = s->chunks; chunk != NULL; chunk = next) {
        next = chunk->next;
        sim_unreserve(chunk, chunk->size);
    }
    *s = (struct slab){0};
}
