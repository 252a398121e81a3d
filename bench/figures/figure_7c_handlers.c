/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of figure_7c.c, as appendix C.3.5 of the paper has them: a data server's handler
 * puts the difference of each packet to the parity server, whose handler applies it; when all of a
 * part is applied it tells the data server, which tells the client.
 *
 * hdr_data is the length of the part. Of two packets for one unit of the parity one waits for the
 * other, by a lock in HPU memory.
 */
#include "figure_7c_handlers.h"

#include "bytes.h"

__handler int stripe_data(const ptl_payload_t p, void *state)
{
    uint8_t old[STRIPE_UNIT];
    ptl_header_t h;
    (void)state;
    if (p.length > sizeof(old) || PtlHandlerHeader(&h) != PTL_OK) {
        return FAIL;
    }
    PtlHandlerDMAFromHostB(p.offset, old, p.length, PTL_ME_HOST_MEM);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    bytes_xor(p.base, old, p.length);
    return PtlHandlerPutFromDevice(p.base, p.length, PTL_NO_ACK_REQ,
                                   (ptl_process_t){.rank = STRIPE_PARITY}, STRIPE_DIFFERENCE,
                                   p.offset, NULL, h.length) == PTL_OK
               ? SUCCESS
               : FAIL;
}
PTL_HANDLER(stripe_data);

__handler int stripe_parity(const ptl_payload_t p, void *state)
{
    struct stripe_parity *s = state;
    uint8_t parity[STRIPE_UNIT];
    uint64_t before;
    ptl_header_t h;
    if (PtlHandlerHeader(&h) != PTL_OK || p.length > sizeof(parity) ||
        h.source_id.rank >= STRIPE_RANKS) {
        return FAIL;
    }
    uint64_t *lock = &s->lock[(uint32_t)h.offset / STRIPE_UNIT % STRIPE_LOCKS];
    while (!PtlHandlerCAS(lock, 0, 1)) {
    }
    PtlHandlerDMAFromHostB(h.offset, parity, p.length, PTL_ME_HOST_MEM);
    bytes_xor(parity, p.base, p.length);
    PtlHandlerDMAToHostB(parity, h.offset, p.length, PTL_ME_HOST_MEM);
    PtlHandlerCAS(lock, 1, 0);
    PtlHandlerFAdd(&s->applied[h.source_id.rank], &before, p.length);
    if (before + p.length != h.hdr_data) {
        return SUCCESS;
    }
    return PtlHandlerPutFromDevice(p.base, 1, PTL_NO_ACK_REQ, h.source_id, STRIPE_APPLIED, 0, NULL,
                                   0) == PTL_OK
               ? SUCCESS
               : FAIL;
}
PTL_HANDLER(stripe_parity);

__handler int stripe_applied(const ptl_header_t h, void *state)
{
    uint8_t done = 1;
    (void)h;
    (void)state;
    return PtlHandlerPutFromDevice(&done, 1, PTL_NO_ACK_REQ, (ptl_process_t){.rank = STRIPE_CLIENT},
                                   STRIPE_DONE, 0, NULL, 0) == PTL_OK
               ? DROP
               : FAIL;
}
PTL_HANDLER(stripe_applied);
