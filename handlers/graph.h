/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relaxations of distributed graph traversals: breadth-first search, where every edge has
 * weight 1, and shortest paths from one source.
 *
 *      message   | record | record | record | ...        any number, many packets
 *                     │ distance shorter than the vertex has?
 *                     ├─► memory: its distance and parent, by compare-and-swap
 *                     └─► frontier: the vertex, once a round
 *
 *      handler host memory   | taken | a bit a vertex | vertices of the frontier |
 *
 * A record says that `vertex` can be reached over `parent` at `distance`. The handler updates the
 * vertex's word, and adds the vertex to the frontier only if that has improved it. Of several
 * shortest paths the one whose parent has the lowest number wins, in whatever order the records
 * come: so results are the same in every run.
 *
 * The program works in rounds. It relaxes the edges of its frontier's vertices, by puts of records
 * to the ranks that own the edges' ends; it waits until all puts of all ranks are acknowledged; and
 * it takes the new frontier. When the frontiers of all ranks are empty the distances are final.
 */
#ifndef HANDLERS_GRAPH_H
#define HANDLERS_GRAPH_H

#include "portals4.h"
#include "spin.h"

struct graph_record {
    uint64_t vertex; /* number in the whole graph */
    uint32_t parent;
    uint32_t distance;
};

/* The entry's memory has a word for each vertex: the distance in the upper half, the parent in the
 * lower half. Its first value is GRAPH_FAR. */
#define GRAPH_FAR UINT64_MAX

/* graph_word() reads a vertex's word while messages may be arriving. */
static inline uint64_t graph_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline uint32_t graph_distance(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint32_t graph_parent(uint64_t word)
{
    return (uint32_t)word;
}

/* HPU memory of the entry: the host sets it, and it stays constant. */
struct graph_state {
    uint64_t first, vertices; /* the vertices of this rank: first, first + 1, and so on */
};

/* graph_frontier_size() returns the size of the handler host memory, which the host zeroes, at a
 * multiple of 8. */
uint64_t graph_frontier_size(uint64_t vertices);

/* graph_handlers() fills in the handlers of a persistent entry over `vertices` words, the first
 * for vertex `first`. A message that is no whole number of records, or that has a record with a
 * vertex of another rank or with the distance UINT32_MAX, ends with PTL_NI_HANDLER_FAIL; its
 * other records may have been applied. PTL_ARG_INVALID: there are 2^32 vertices or more. *state
 * must last until the entry is appended. */
int graph_handlers(uint64_t first, uint64_t vertices, void *frontier, struct graph_state *state,
                   ptl_handlers_t *handlers);

/* graph_take() empties the frontier, between two rounds: it stores the frontier's vertices, counted
 * from `first`, in `taken`, and returns their number, at most `vertices`. */
uint64_t graph_take(void *frontier, uint64_t vertices, uint32_t *taken);

#endif
