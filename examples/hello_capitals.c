/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of hello_handler.c, in a file of their own: `pinwheel cc` (in CMake
 * pinwheel_add_handlers()) compiles it for the RISC-V cores, too, where there is no libc.
 *
 * Handlers may run in any order of the packets, and in parallel: each packet's bytes go to the
 * packet's own place, and the count is added to atomically.
 */
#include "hello_capitals.h"

/* A payload handler, called for each packet. The packet is the handler's to change. */
__handler int capitals(const ptl_payload_t p, void *state)
{
    struct hello_state *s = state;
    uint64_t lines = 0;
    for (ptl_size_t i = 0; i < p.length; i++) {
        uint8_t c = p.base[i];
        lines += c == '\n';
        p.base[i] = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
    }
    PtlHandlerFAdd(&s->lines, NULL, lines);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(capitals);

/* A completion handler, called once, after all payload handlers of the message. */
__handler int finish(ptl_size_t dropped_bytes, bool flow_control_triggered, void *state)
{
    const struct hello_state *s = state;
    PtlHandlerDMAToHostB(&s->lines, 0, sizeof(s->lines), PTL_HANDLER_HOST_MEM);
    return dropped_bytes == 0 && !flow_control_triggered ? SUCCESS : FAIL;
}
PTL_HANDLER(finish);
