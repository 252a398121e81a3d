/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handler of figure_3d.c, as section 4.4.2 of the paper has it: one read, one write for each
 * packet. Nobody else may write to the memory meanwhile. Numbers of a message begin at multiples of
 * 16 bytes, and so do packets.
 */
#include "figure_3d_handlers.h"

enum { NUMBERS = 4096 / sizeof(struct multiply_number) };

__handler int multiply_packet(const ptl_payload_t p, void *state)
{
    struct multiply_number mine[NUMBERS];
    const struct multiply_number *came = (const struct multiply_number *)p.base;
    (void)state;
    if (p.length > sizeof(mine)) {
        return FAIL;
    }
    PtlHandlerDMAFromHostB(p.offset, mine, p.length, PTL_ME_HOST_MEM);
    for (unsigned i = 0; i < p.length / sizeof(*mine); i++) {
        mine[i] = multiply_numbers(mine[i], came[i]);
    }
    PtlHandlerDMAToHostB(mine, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(multiply_packet);
