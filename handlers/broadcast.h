/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast by the NICs: a handler sends a chunk on to the children from the packet buffer, before
 * the whole broadcast has come, and whatever the programs are doing.
 *
 *      root       program ──empty put a chunk──► own NIC: fetch it from memory, send it
 *      others     packet ──► its handler ──► to each child, from where it lies
 *                                        └─► to memory
 *
 * With TREE_BINOMIAL a broadcast takes log2(size) steps. With TREE_CHAIN each rank sends every byte
 * only once, so a long broadcast has the full bandwidth of a link.
 *
 * An entry serves one broadcast, and must have been appended at every rank before the root starts.
 * Chunks are handled in any order, and in parallel.
 */
#ifndef HANDLERS_BROADCAST_H
#define HANDLERS_BROADCAST_H

#include "chunk.h"
#include "portals4.h"
#include "spin.h"
#include "tree.h"

/* HPU memory of an entry: the host sets all of it, and it stays constant. */
struct broadcast_state {
    ptl_process_t child[TREE_CHILDREN];
    uint64_t length; /* bytes of the broadcast */
    uint64_t data;   /* data bytes of a chunk */
    uint64_t bits;   /* match bits of the entries at all ranks */
    uint32_t children;
    uint32_t unused;
};

/* broadcast_handlers() fills in the handlers of this process's entry for a broadcast of `length`
 * bytes from `root`. The entry's memory has the data at the root, and receives them elsewhere;
 * its match bits are `bits`, and its portal table index is the same at all ranks. `packet` is
 * max_payload_size of PtlSpinLimits(). PTL_ARG_INVALID: there is no such rank. *state must last
 * until the entry is appended. The broadcast has come when the entry has completed
 * broadcast_messages() messages (PTL_ME_EVENT_CT_COMM); at the root all chunks have then been
 * sent to the children. If a child cannot be reached the entry's event queue gets a failed
 * PTL_EVENT_SEND. A message that is no chunk of this broadcast ends with PTL_NI_HANDLER_FAIL. */
int broadcast_handlers(const struct tree_group *group, enum tree_shape shape, uint32_t root,
                       ptl_size_t length, ptl_match_bits_t bits, ptl_size_t packet,
                       struct broadcast_state *state, ptl_handlers_t *handlers);

uint64_t broadcast_messages(ptl_size_t length, ptl_size_t packet);

/* broadcast_start() starts the broadcast, at the root. `md` is any MD of the NI, `self` the root's
 * own ID. It returns PTL_OK, or what PtlPut() returned. */
int broadcast_start(ptl_handle_md_t md, ptl_process_t self, ptl_pt_index_t pt,
                    ptl_match_bits_t bits, ptl_size_t length, ptl_size_t packet);

#endif
