/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers unpack a packed message into a strided layout while it arrives: the vector datatype of
 * MPI.
 *
 *      message   |  block 0  |  block 1  |  block 2  |         packets cut it anywhere
 *                      │           └───────────┐
 *      memory    start |  block 0  |···gap···|  block 1  |···gap···|  block 2  |
 *                      |◄──── stride ───────►|
 *
 * A handler computes from the packet's offset in the message where each of its bytes goes. The
 * state is constant, so an entry serves any number of messages at once.
 */
#ifndef HANDLERS_STRIDED_H
#define HANDLERS_STRIDED_H

#include <stdint.h>

#include "portals4.h"
#include "spin.h"

/* HPU memory of an entry: the layout, which the host sets. */
struct strided_state {
    uint64_t start; /* offset of block 0 in the entry */
    /* distance from the start of a block to the start of the next; may be negative */
    int64_t stride;
    uint64_t block;  /* bytes of a block */
    uint64_t blocks; /* number of blocks */
};

/* strided_handlers() fills in the handlers of an entry of `length` bytes. PTL_ARG_INVALID: some
 * block is not inside the entry, or the layout has 2^63 bytes or more. *layout must last until
 * the entry is appended. Blocks may overlap, if the stride is shorter than a block; then the
 * bytes that two blocks share come from either of them. A message may be shorter than the
 * layout; a longer one ends with PTL_NI_HANDLER_FAIL, and nothing of it is written. The offset
 * of a put is ignored. */
int strided_handlers(const struct strided_state *layout, ptl_size_t length,
                     ptl_handlers_t *handlers);

#endif
