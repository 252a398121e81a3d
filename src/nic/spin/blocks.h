/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of messages at handlers (blocks.c): a block for each message while it is at its handlers,
 * as the entry asks for with PTL_HANDLER_MESSAGE_STATE() and PTL_HANDLER_KEEP_USER_HDR. The caller
 * of each function holds the NIC's lock.
 */
#ifndef NIC_SPIN_BLOCKS_H
#define NIC_SPIN_BLOCKS_H

#include "nic/rx.h"

/* block_kind() returns the kind of block that messages at these handlers take; 0: none. */
unsigned block_kind(const struct handlers *h);

/* blocks_begin() notes an entry whose messages take blocks of this kind (0: none). False: there is
 * no memory for a single block. blocks_end(), in nic/spin_calls.h, forgets the entry. */
bool blocks_begin(struct nic *nic, unsigned kind);

/* blocks_trim() frees the blocks that no message uses, but for one of each kind that entries
 * need. */
void blocks_trim(struct nic *nic);

/* block_ready() gives a message its block, with the state zeroed, and copies its user header there
 * if the entry asks for that. False: the message waits, or ends for want of memory; *step says
 * which. block_give(), in nic/spin_calls.h, takes the block back. */
bool block_ready(struct rx *rx, enum rx_step *step);

#endif
