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
 * Each contribution has a slot of its own in HPU memory and a chunk of the vector has a
 * counter, so nothing is locked; and as the slots are combined in a fixed order, the
 * result is the same, bit by bit, at all ranks and in every run. A vector of no elements
 * makes a barrier.
 *
 * The two entries are there for any number of rounds, one after the other: a rank may
 * start its next round when it has the result of this one.
 */
#ifndef HANDLERS_ALLREDUCE_H
#define HANDLERS_ALLREDUCE_H

#include "combine.h"
#include "portals4.h"
#include "spin.h"
#include "tree.h"

/* HPU memory of either entry: set by the host. Behind that of the up entry, at the next
 * multiple of 64, chunk by chunk: a line with the counter and the head of the chunk that
 * goes up, then the slots. */
struct allreduce_state {
    ptl_process_t child[TREE_CHILDREN]; /* largest subtree first: the last one has slot 1 */
    ptl_process_t self, parent;
    uint64_t length;   /* bytes of the vector */
    uint64_t data;     /* bytes of a chunk */
    uint64_t slot;     /* from one slot to the next */
    uint64_t up, down; /* match bits */
    uint32_t children;
    uint32_t slot_at_parent;
    uint32_t is_root;
    uint32_t op, type;
    uint32_t unused;
};

/* An allreduce: alike at all ranks but for the rank. */
struct allreduce {
    struct tree_group group;
    ptl_op_t op; /* PTL_MIN to PTL_BXOR */
    ptl_datatype_t type;
    uint64_t count;            /* elements; 0: a barrier */
    ptl_match_bits_t up, down; /* match bits of the two entries */
    ptl_size_t packet;         /* max_payload_size of PtlSpinLimits() */
};

/* allreduce_memory() is the size of the HPU memory of the up entry. Of a vector that is
 * too long it is more than max_handler_mem. */
uint64_t allreduce_memory(const struct allreduce *a);

/* allreduce_up() fills in the handlers of the up entry, whose memory is this rank's
 * contribution, a vector; `memory` is HPU memory of allreduce_memory() bytes, zeroed.
 * allreduce_down() does so for the down entry, whose memory receives the result; it may
 * be the same memory. Both entries are at the same portal table index at all ranks, and
 * *state must last until its entry is appended. PTL_ARG_INVALID: no such rank, or the
 * operation is not defined for the type, or not for a reduction. */
int allreduce_up(const struct allreduce *a, ptl_handle_hpu_mem_t memory,
                 struct allreduce_state *state, ptl_handlers_t *handlers);
int allreduce_down(const struct allreduce *a, struct allreduce_state *state,
                   ptl_handlers_t *handlers);

/* allreduce_start() contributes to the next round, when both entries are there at all
 * ranks. `md` is any MD of the NI. The result is there when the down entry has ended
 * allreduce_messages() messages more than after the round before. */
int allreduce_start(const struct allreduce *a, ptl_handle_md_t md, ptl_pt_index_t pt);
uint64_t allreduce_messages(const struct allreduce *a);

#endif
