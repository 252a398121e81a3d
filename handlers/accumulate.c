/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accumulating puts; see accumulate.h. No element lies across two packets or two blocks: packets
 * begin at multiples of 64 bytes of the message, a put begins at a whole element of the target, and
 * 64 and ACCUMULATE_BLOCK are multiples of the size of every element.
 */
#include "accumulate.h"

#include "bytes.h"
#include "host_lock.h"
#include "spin_handler.h"

_Static_assert(ACCUMULATE_BLOCK % COMBINE_LARGEST == 0, "a block holds whole elements");

__handler static int accumulate_header(const ptl_header_t h, void *state)
{
    const struct accumulate_state *s = state;
    uint32_t size = combine_size((ptl_datatype_t)s->type);
    if (h.offset % size != 0 || h.length % size != 0 ||
        !range_fits(h.offset, h.length, s->length)) {
        return FAIL;
    }
    return PROCESS_DATA;
}
PTL_HANDLER(accumulate_header);

/* Combines data with the part of one block of the target. Returns false if the block's lock could
 * not be taken. */
static bool one_block(const struct accumulate_state *s, uint64_t at, const uint8_t *data,
                      uint64_t length)
{
    _Alignas(64) uint8_t target[ACCUMULATE_BLOCK];
    uint64_t lock = at / ACCUMULATE_BLOCK % ACCUMULATE_LOCKS * sizeof(uint64_t);
    if (!host_lock(lock, PTL_HANDLER_HOST_MEM, HOST_LOCK_TRIES)) {
        return false;
    }
    PtlHandlerDMAFromHostB(at, target, length, PTL_ME_HOST_MEM);
    combine((ptl_op_t)s->op, (ptl_datatype_t)s->type, target, data, s->operand,
            length / combine_size((ptl_datatype_t)s->type));
    PtlHandlerDMAToHostB(target, at, length, PTL_ME_HOST_MEM);
    host_unlock(lock, PTL_HANDLER_HOST_MEM);
    return true;
}

__handler static int accumulate_payload(const ptl_payload_t p, void *state)
{
    const struct accumulate_state *s = state;
    ptl_header_t h; /* for the offset of the message in the entry */
    if (PtlHandlerHeader(&h) != PTL_OK) {
        return FAIL;
    }
    for (uint64_t done = 0; done < p.length;) {
        uint64_t at = h.offset + p.offset + done;
        uint64_t length = smaller(p.length - done, ACCUMULATE_BLOCK - at % ACCUMULATE_BLOCK);
        if (!one_block(s, at, p.base + done, length)) {
            return FAIL;
        }
        done += length;
    }
    return SUCCESS;
}
PTL_HANDLER(accumulate_payload);

int accumulate_handlers(ptl_op_t op, ptl_datatype_t type, const void *operand, ptl_size_t length,
                        struct accumulate_locks *locks, struct accumulate_state *state,
                        ptl_handlers_t *handlers)
{
    if (!combine_defined(op, type) || (op > PTL_SWAP && operand == NULL) || locks == NULL) {
        return PTL_ARG_INVALID;
    }
    *state = (struct accumulate_state){.length = length, .op = op, .type = type};
    if (op > PTL_SWAP) {
        bytes_copy(state->operand, operand, combine_size(type));
    }
    *handlers = (ptl_handlers_t){
        .header_handler = accumulate_header,
        .payload_handler = accumulate_payload,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = locks,
        .handler_host_length = sizeof(*locks),
    };
    return PTL_OK;
}
