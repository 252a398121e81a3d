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

/* block_take() gives the message its block, zeroed as far as it is state; false: none is free, and
 * PINWHEEL_HPU_MEMORY has no room for one more. block_give(), in nic/spin_calls.h, takes it back.
 */
bool block_take(struct rx *rx);

/* Whether the message wants a block and has none. */
static inline bool block_lacks(const struct rx *rx)
{
    return unlikely(rx->at.le->handlers->block != 0) && rx->run->block == NULL && !rx->tick;
}

/* block_keep() keeps the user header, which is at `first`, if the entry asks for that. */
void block_keep(struct rx *rx, const void *first);

#endif
