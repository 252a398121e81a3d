/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault-tolerant broadcast: the handlers of each rank send the first copy of a chunk on to all
 * neighbours in a binomial graph, and drop further copies. Only the first copy is stored and
 * counted, so the program sees an ordinary broadcast.
 *
 *      neighbours of rank r:  r ± 1, r ± 2, r ± 4, ...  (mod size), below size
 *
 *      copy ──► its handler: seen before? ── yes ──► dropped, not counted
 *                                 └── no ──► to all neighbours, to memory
 *
 * The connectivity of the graph equals its degree: if fewer than ftbcast_degree() ranks are dead,
 * whichever they are, all others get the broadcast. It needs no failure detector and repeats
 * nothing.
 */
#ifndef HANDLERS_FTBCAST_H
#define HANDLERS_FTBCAST_H

#include "chunk.h"
#include "portals4.h"
#include "spin.h"
#include "tree.h"

enum { FTBCAST_NEIGHBOURS = 64 };

/* HPU memory of an entry, which the host sets: this struct is constant; behind it is a bit for each
 * chunk. */
struct ftbcast_state {
    ptl_process_t neighbour[FTBCAST_NEIGHBOURS];
    uint64_t length; /* bytes of the broadcast */
    uint64_t data;   /* data bytes of a chunk */
    uint64_t bits;   /* match bits of the entries at all ranks */
    uint32_t neighbours;
    uint32_t is_root;
};

/* ftbcast_degree() returns the number of neighbours of each rank. The broadcast survives one dead
 * rank less than that. */
uint32_t ftbcast_degree(uint32_t size);

/* ftbcast_memory() returns the size of an entry's HPU memory. */
uint64_t ftbcast_memory(ptl_size_t length, ptl_size_t packet);

/* ftbcast_handlers() fills in the handlers of this process's entry for a broadcast of `length`
 * bytes from `root`; `memory` is HPU memory of ftbcast_memory() bytes, zeroed again for each
 * broadcast. All else is as with broadcast_handlers(): the broadcast has come when the entry has
 * completed broadcast_messages() messages, and broadcast_start() starts it. The entry must stay
 * until all ranks have the broadcast. */
int ftbcast_handlers(const struct tree_group *group, uint32_t root, ptl_size_t length,
                     ptl_match_bits_t bits, ptl_size_t packet, ptl_handle_hpu_mem_t memory,
                     struct ftbcast_state *state, ptl_handlers_t *handlers);

#endif
