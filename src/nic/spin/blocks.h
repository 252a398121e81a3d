/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of messages at handlers (blocks.c): what PTL_HANDLER_MESSAGE_STATE() and
 * PTL_HANDLER_KEEP_USER_HDR ask for, a block for each message while it is at its handlers. Every
 * function wants the NIC's lock.
 */
#ifndef NIC_SPIN_BLOCKS_H
#define NIC_SPIN_BLOCKS_H

#include "nic/rx.h"

/* block_kind() is the kind of block that messages at such handlers take, 0: none. */
unsigned block_kind(const struct handlers *h);

/* blocks_begin() notes an entry whose messages take blocks of a kind, which 0 is none of; false:
 * there is no memory for a single one. blocks_end(), in nic/spin_calls.h, forgets the entry. */
bool blocks_begin(struct nic *nic, unsigned kind);

/* blocks_trim() gives memory back that no message uses, but for one block of each kind in use. */
void blocks_trim(struct nic *nic);

/* block_ready() gives a message at such an entry its block, zeroed as far as it is state, and keeps
 * its user header there if it is to. False: the message waits, or has ended for want of memory, and
 * *step says which. block_give(), in nic/spin_calls.h, takes the block back. */
bool block_ready(struct rx *rx, enum rx_step *step);

#endif
