/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unpacking into strides; see strided.h. A handler needs one division for a packet, and then goes
 * on block by block. It uses blocking transfers: it has nothing to do meanwhile, and to wait for a
 * nonblocking transfer costs as much as to copy a small block.
 */
#include "strided.h"

#include "bytes.h"
#include "spin_handler.h"

__handler static int strided_header(const ptl_header_t h, void *state)
{
    const struct strided_state *s = state;
    return h.length <= s->block * s->blocks ? PROCESS_DATA : FAIL;
}
PTL_HANDLER(strided_header);

__handler static int strided_payload(const ptl_payload_t p, void *state)
{
    const struct strided_state *s = state;
    uint64_t within, first = divide(p.offset, s->block, &within);
    uint64_t base = s->start + first * (uint64_t)s->stride;
    for (uint64_t done = 0; done < p.length;) {
        uint64_t length = smaller(s->block - within, p.length - done);
        PtlHandlerDMAToHostB(p.base + done, base + within, length, PTL_ME_HOST_MEM);
        done += length;
        within = 0;
        base += (uint64_t)s->stride;
    }
    return SUCCESS;
}
PTL_HANDLER(strided_payload);

/* True if a block that begins `index` strides behind block 0 is inside the entry. */
static bool block_fits(const struct strided_state *s, uint64_t index, uint64_t length)
{
    int64_t distance, at;
    return index <= INT64_MAX && !__builtin_mul_overflow((int64_t)index, s->stride, &distance) &&
           s->start <= INT64_MAX && !__builtin_add_overflow((int64_t)s->start, distance, &at) &&
           at >= 0 && range_fits((uint64_t)at, s->block, length);
}

int strided_handlers(const struct strided_state *layout, ptl_size_t length,
                     ptl_handlers_t *handlers)
{
    int64_t bytes;
    bool empty = layout->block == 0 || layout->blocks == 0;
    if (__builtin_mul_overflow(layout->block, layout->blocks, &bytes) ||
        (!empty &&
         (!block_fits(layout, 0, length) || !block_fits(layout, layout->blocks - 1, length)))) {
        return PTL_ARG_INVALID; /* all other blocks lie between these two */
    }
    *handlers = (ptl_handlers_t){
        .header_handler = strided_header,
        .payload_handler = strided_payload,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = layout,
        .hpu_initial_length = sizeof(*layout),
    };
    return PTL_OK;
}
