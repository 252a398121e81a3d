/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault-tolerant broadcast: every rank passes the first copy of a chunk on to all its
 * neighbours in a binomial graph, and drops the others. Only the first comes to memory
 * and is counted; the program sees a broadcast like any other.
 *
 *      neighbours of rank r:  r ± 1, r ± 2, r ± 4, ...  (mod size), below size
 *
 *      copy ──► its handler: seen before? ── yes ──► dropped, not counted
 *                                 └── no ──► to all neighbours, to memory
 *
 * The graph is as hard to part as its degree allows: with fewer than ftbcast_degree() ranks
 * dead, whichever they are, every other is reached. No failure detector is needed, nor is
 * anything done anew.
 */
#ifndef HANDLERS_FTBCAST_H
#define HANDLERS_FTBCAST_H

#include "chunk.h"
#include "portals4.h"
#include "spin.h"
#include "tree.h"

enum { FTBCAST_NEIGHBOURS = 64 };

/* HPU memory of an entry: set by the host, and constant; behind it a bit a chunk. */
struct ftbcast_state {
    ptl_process_t neighbour[FTBCAST_NEIGHBOURS];
    uint64_t length; /* of the broadcast */
    uint64_t data;   /* of a chunk */
    uint64_t bits;   /* match bits of the entries at all ranks */
    uint32_t neighbours;
    uint32_t is_root;
};

/* ftbcast_degree() is the number of neighbours of every rank: one less may fail. */
uint32_t ftbcast_degree(uint32_t size);

/* ftbcast_memory() is the size of an entry's HPU memory. */
uint64_t ftbcast_memory(ptl_size_t length, ptl_size_t packet);

/* ftbcast_handlers() fills in the handlers of this process's entry for a broadcast of
 * `length` bytes from `root`; `memory` is HPU memory of ftbcast_memory() bytes, zeroed,
 * and anew for each broadcast. All else is as with broadcast_handlers(): the broadcast is there
 * when the entry has ended broadcast_messages() messages, and broadcast_start() starts
 * it. The entry must stay until all ranks have the broadcast. */
int ftbcast_handlers(const struct tree_group *group, uint32_t root, ptl_size_t length,
                     ptl_match_bits_t bits, ptl_size_t packet, ptl_handle_hpu_mem_t memory,
                     struct ftbcast_state *state, ptl_handlers_t *handlers);

#endif
