/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that accumulate: handlers combine the data of a put with the contents of the entry's memory,
 * element by element, by any operation and type of Portals. Unlike with PtlAtomic() a message may
 * have any length.
 *
 *      put ──packets──► each: lock a block of the target, fetch it, combine, write it back
 *
 *      target memory  | block 0 | block 1 | block 2 | ...     ACCUMULATE_BLOCK bytes each
 *      locks          |    0    |    1    |    2    | ...     shared, round and round
 *
 * Each element is updated atomically with respect to all entries that share the locks: any number
 * of senders may accumulate to the same memory at once, by the same entry or by several.
 */
#ifndef HANDLERS_ACCUMULATE_H
#define HANDLERS_ACCUMULATE_H

#include "combine.h"
#include "portals4.h"
#include "spin.h"

enum { ACCUMULATE_BLOCK = 1024, ACCUMULATE_LOCKS = 64 };

/* The handler host memory: zeroed by the host before the first message, and shared by all entries
 * over the same memory. */
struct accumulate_locks {
    uint64_t lock[ACCUMULATE_LOCKS];
};

/* HPU memory of an entry. */
struct accumulate_state {
    /* operand of PTL_CSWAP to PTL_MSWAP; the host sets all fields */
    uint8_t operand[COMBINE_LARGEST];
    uint64_t length; /* bytes of the entry */
    uint32_t op;
    uint32_t type;
};

/* accumulate_handlers() fills in the handlers of an entry over `length` bytes. `operand` is one
 * element; NULL if the operation has no operand. PTL_ARG_INVALID: the operation is not defined
 * for the type, or lacks its operand. *state must last until the entry is appended. The offset
 * and the length of a put must be whole elements and inside the entry; else the put changes
 * nothing and ends with PTL_NI_HANDLER_FAIL. */
int accumulate_handlers(ptl_op_t op, ptl_datatype_t type, const void *operand, ptl_size_t length,
                        struct accumulate_locks *locks, struct accumulate_state *state,
                        ptl_handlers_t *handlers);

#endif
