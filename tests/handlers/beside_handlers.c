/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers with large transfers under way (beside.c). */
#include "beside_handlers.h"

/* Calls nobody. */
static void compute(void)
{
    for (volatile int i = 0; i < 100000; i++) {
    }
}

static void fall(void)
{
    volatile uint8_t *volatile nowhere = (uint8_t *)(uintptr_t)64;
    *nowhere = 1;
}

static void ask_until_done(struct beside_state *s, ptl_dma_h transfer)
{
    s->early = PtlHandlerDMATest(transfer);
    s->asked = 1;
    do {
        compute();
        s->asked++;
    } while (!PtlHandlerDMATest(transfer));
}

__handler static int beside_header(const ptl_header_t h, void *state)
{
    struct beside_state *s = state;
    ptl_size_t offset = h.hdr_data == BESIDE_FAR;
    ptl_dma_h transfer =
        h.hdr_data == BESIDE_BACK
            ? PtlHandlerDMAFromHostNB(offset, s->data, BESIDE_BYTES, PTL_HANDLER_HOST_MEM)
            : PtlHandlerDMAToHostNB(s->data, offset, BESIDE_BYTES, PTL_HANDLER_HOST_MEM);
    switch (h.hdr_data) {
    case BESIDE_COMPUTE:
    case BESIDE_BACK:
        ask_until_done(s, transfer);
        break;
    case BESIDE_FAULT:
        fall();
        break;
    case BESIDE_LOOP:
        PtlHandlerCounterAdd(0, 1);
        for (;;) {
            compute();
        }
    case BESIDE_CALLS:
        for (;;) {
            PtlHandlerCounterAdd(0, 1);
        }
    case BESIDE_YIELDS:
        PtlHandlerCounterAdd(0, 1);
        for (;;) {
            PtlHandlerYield();
        }
    default:
        break;
    }
    return DROP;
}
PTL_HANDLER(beside_header);

const ptl_handlers_t beside_handlers = {
    .header_handler = beside_header,
    .hpu_mem = PTL_HPU_MEM_NONE,
};
