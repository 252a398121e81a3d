/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler for cc.sh and install.sh: capitals, and how many there were. */
#include "shout.h"

__handler int shout_payload(const ptl_payload_t p, void *state)
{
    struct shout_state *s = state;
    uint64_t start = PtlHandlerCycles(), letters = 0;
    for (uint64_t i = 0; i < p.length; i++) {
        uint8_t c = p.base[i];
        bool letter = c >= 'a' && c <= 'z';
        p.base[i] = letter ? (uint8_t)(c - 'a' + 'A') : c;
        letters += letter;
    }
    PtlHandlerFAdd(&s->letters, NULL, letters);
    s->cycles = (uint32_t)(PtlHandlerCycles() - start);
    s->pointer = sizeof(void *);
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(shout_payload);
