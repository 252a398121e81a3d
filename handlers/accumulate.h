/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that accumulate: the data of a put is combined with what the entry's memory
 * holds, element by element, by any operation and type of Portals. Unlike PtlAtomic()
 * a message has any length, and so products of complex numbers stream in.
 *
 *      put ──packets──► each: lock a block of the target, fetch it, combine, write it back
 *
 *      target memory  | block 0 | block 1 | block 2 | ...     ACCUMULATE_BLOCK bytes each
 *      locks          |    0    |    1    |    2    | ...     shared, round and round
 *
 * An element is combined as a whole, towards all entries that share the locks: any
 * number of senders may accumulate to the same memory, and to the same entry.
 */
#ifndef HANDLERS_ACCUMULATE_H
#define HANDLERS_ACCUMULATE_H

#include "combine.h"
#include "portals4.h"
#include "spin.h"

enum { ACCUMULATE_BLOCK = 1024, ACCUMULATE_LOCKS = 64 };

/* The handler host memory: zeroed before the first message, common to all entries over
 * one piece of memory. */
struct accumulate_locks {
    uint64_t lock[ACCUMULATE_LOCKS];
};

/* HPU memory of an entry. */
struct accumulate_state {
    uint8_t operand[COMBINE_LARGEST]; /* of PTL_CSWAP to PTL_MSWAP; all set by the host */
    uint64_t length;                  /* of the entry */
    uint32_t op;
    uint32_t type;
};

/* accumulate_handlers() fills in the handlers of an entry over `length` bytes. `operand`
 * is one element, NULL without need of one. PTL_ARG_INVALID: the operation is not
 * defined for the type, or lacks its operand. *state must last until the entry is
 * appended.
 * The offset of a put and its length are whole elements and inside the entry, else
 * nothing of it is done and it ends with PTL_NI_HANDLER_FAIL. */
int accumulate_handlers(ptl_op_t op, ptl_datatype_t type, const void *operand, ptl_size_t length,
                        struct accumulate_locks *locks, struct accumulate_state *state,
                        ptl_handlers_t *handlers);

#endif
