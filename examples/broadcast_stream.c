/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of broadcast.c: puts a packet to each child from where it lies, then stores it. */
#include "broadcast_stream.h"

__handler int broadcast_stream_packet(const ptl_payload_t p, void *state)
{
    const struct stream_state *s = state;
    ptl_header_t h;
    int result = PtlHandlerHeader(&h) == PTL_OK ? SUCCESS : FAIL;
    for (uint32_t i = 0; result == SUCCESS && i < s->children; i++) {
        if (PtlHandlerPutFromDevice(p.base, p.length, PTL_NO_ACK_REQ, s->child[i], s->bits,
                                    h.offset + p.offset, NULL, 0) != PTL_OK) {
            result = FAIL;
        }
    }
    PtlHandlerDMAToHostB(p.base, h.offset + p.offset, p.length, PTL_ME_HOST_MEM);
    return result;
}
PTL_HANDLER(broadcast_stream_packet);
