/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trees along which collectives run. The `place` of a rank is its distance from the root: place
 * p is rank (root + p) mod size.
 *
 *      BINOMIAL, 8 places                     CHAIN
 *      0 ─┬─ 4 ─┬─ 6 ── 7                     0 ── 1 ── 2 ── 3 ── ...
 *         │     └─ 5
 *         ├─ 2 ── 3        p's parent is p without its lowest 1 bit
 *         └─ 1
 *
 * Children are listed with the largest subtree first, since its messages have the longest way to
 * go.
 */
#ifndef HANDLERS_TREE_H
#define HANDLERS_TREE_H

#include <stdint.h>

#include "portals4.h"

enum tree_shape { TREE_BINOMIAL, TREE_CHAIN };

enum { TREE_CHILDREN = 32 }; /* children of a rank, at most, among up to 2^32 ranks */

/* The ranks of a collective. */
struct tree_group {
    uint32_t rank, size; /* rank of this process; number of ranks */
    /* IDs of all ranks; NULL: the NI is logical, and a rank is its own ID */
    const ptl_process_t *ids;
};

static inline ptl_process_t tree_id(const struct tree_group *g, uint32_t rank)
{
    ptl_process_t id = {.phys = {0, 0}};
    if (g->ids != NULL) {
        return g->ids[rank];
    }
    id.rank = rank;
    return id;
}

/* tree_children() stores the IDs of this rank's children and returns their number. */
static inline uint32_t tree_children(const struct tree_group *g, enum tree_shape shape,
                                     uint32_t root, ptl_process_t child[TREE_CHILDREN])
{
    uint64_t place = ((uint64_t)g->rank + g->size - root) % g->size, step = 1;
    uint32_t children = 0;
    if (shape == TREE_BINOMIAL) {
        while (step < g->size && (place & step) == 0) {
            step *= 2;
        }
        step /= 2;
    }
    for (; step != 0; step /= 2) {
        if (place + step < g->size) {
            child[children++] = tree_id(g, (uint32_t)((root + place + step) % g->size));
        }
    }
    return children;
}

/* tree_parent() returns the rank of this rank's parent; this rank must not be the root. */
static inline uint32_t tree_parent(const struct tree_group *g, enum tree_shape shape, uint32_t root)
{
    uint64_t place = ((uint64_t)g->rank + g->size - root) % g->size;
    place = shape == TREE_CHAIN ? place - 1 : place & (place - 1);
    return (uint32_t)((root + place) % g->size);
}

/* tree_valid() is true if the group is valid and `root` is a rank of it. */
static inline int tree_valid(const struct tree_group *g, uint32_t root)
{
    return g->rank < g->size && root < g->size;
}

#endif
