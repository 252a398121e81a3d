/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of shout.c in reals, for cores with F and D: a product that is added to is rounded
 * twice, on both targets. */
#include "shout.h"

__handler int shout_payload(const ptl_payload_t p, void *state)
{
    struct shout_state *s = state;
    double letters = 0, third = 8.0 / (double)p.length;
    for (uint64_t i = 0; i < p.length; i++) {
        float c = p.base[i];
        bool letter = c >= 'a' && c <= 'z';
        p.base[i] = (uint8_t)(letter ? c - 32.0F : c);
        letters += letter;
    }
    double exact = third * 3.0 - 1.0; /* fused it would not be 0 */
    s->letters = (uint64_t)letters + (exact != 0);
    s->pointer = sizeof(void *);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(shout_payload);
