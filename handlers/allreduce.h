/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduce and barrier by the NICs: contributions go up a binomial tree and are combined
 * on the way, the result comes down the same tree.
 *
 *      up entry     own contribution ─┐ slot 0
 *                   child's chunk ────┤ slot 1      the last to arrive combines the slots
 *                   child's chunk ────┘ slot 2      in their order ──► parent's up entry
 *                                                   at the root ──► every down entry:
 *      down entry   chunk ──► children's down entries, and memory
 *
 * Each contribution has a slot of its own in HPU memory, and each chunk of the vector a counter, so
 * no locks are needed. The slots are combined in a fixed order, so the result is the same, bit by
 * bit, at all ranks and in every run. A vector without elements makes a barrier.
 *
 * The two entries serve any number of rounds, one after the other: a rank may start the next round
 * when it has the result of this one.
 */
#ifndef HANDLERS_ALLREDUCE_H
#define HANDLERS_ALLREDUCE_H

#include "combine.h"
#include "portals4.h"
#include "spin.h"
#include "tree.h"

/* HPU memory of either entry, set by the host. In the HPU memory of the up entry more follows, at
 * the next multiple of 64, for each chunk: a cache line with the counter and the head of the chunk
 * that goes up, then the slots. */
struct allreduce_state {
    /* children in the tree, largest subtree first, so that the last one has slot 1 */
    ptl_process_t child[TREE_CHILDREN];
    ptl_process_t self, parent;
    uint64_t length;   /* bytes of the vector */
    uint64_t data;     /* bytes of a chunk */
    uint64_t slot;     /* distance from one slot to the next */
    uint64_t up, down; /* match bits of the two entries */
    uint32_t children;
    uint32_t slot_at_parent;
    uint32_t is_root;
    uint32_t op, type;
    uint32_t unused;
};

/* The parameters of an allreduce: the same at all ranks, but for the rank. */
struct allreduce {
    struct tree_group group;
    ptl_op_t op; /* PTL_MIN to PTL_BXOR */
    ptl_datatype_t type;
    uint64_t count;            /* elements of the vector; 0: a barrier */
    ptl_match_bits_t up, down; /* match bits of the two entries */
    ptl_size_t packet;         /* max_payload_size of PtlSpinLimits() */
};

/* allreduce_memory() returns the size of the HPU memory of the up entry. If the vector is too long
 * that is more than max_handler_mem. */
uint64_t allreduce_memory(const struct allreduce *a);

/* allreduce_up() fills in the handlers of the up entry, whose memory is this rank's vector;
 * `memory` is HPU memory of allreduce_memory() bytes, zeroed. allreduce_down() fills in those of
 * the down entry, whose memory receives the result; it may be the same memory. Both entries must
 * be at the same portal table index at all ranks, and *state must last until its entry is
 * appended. PTL_ARG_INVALID: there is no such rank, or the operation is not defined for the type
 * or is no reduction. */
int allreduce_up(const struct allreduce *a, ptl_handle_hpu_mem_t memory,
                 struct allreduce_state *state, ptl_handlers_t *handlers);
int allreduce_down(const struct allreduce *a, struct allreduce_state *state,
                   ptl_handlers_t *handlers);

/* allreduce_start() contributes this rank's vector to the next round. Both entries must have been
 * appended at all ranks before the first round. `md` is any MD of the NI. The result has come when
 * the down entry has completed allreduce_messages() messages more than after the round before. */
int allreduce_start(const struct allreduce *a, ptl_handle_md_t md, ptl_pt_index_t pt);
uint64_t allreduce_messages(const struct allreduce *a);

#endif
