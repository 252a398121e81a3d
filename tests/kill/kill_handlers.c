/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of exchanges that have some: they put each packet where the message says, or get
 * from the peer. */
#include "kill_handlers.h"

#include "spin_handler.h"

/* HPU memory: where in its entry the message begins. */
__handler static int kill_header(const ptl_header_t h, void *state)
{
    *(uint64_t *)state = h.offset;
    return PROCESS_DATA;
}
PTL_HANDLER(kill_header);

__handler static int kill_payload(const ptl_payload_t p, void *state)
{
    uint64_t begin = *(uint64_t *)state;
    PtlHandlerDMAToHostB(p.base, begin + p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(kill_payload);

__handler static int kill_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    return SUCCESS;
}
PTL_HANDLER(kill_completion);

const ptl_handlers_t kill_handlers = {
    .header_handler = kill_header,
    .payload_handler = kill_payload,
    .completion_handler = kill_completion,
    .hpu_mem = PTL_HPU_MEM_NONE,
    .hpu_initial_length = sizeof(uint64_t),
};

__handler static int kill_ask_header(const ptl_header_t h, void *state)
{
    struct kill_ask *s = state;
    int code =
        PtlHandlerGetToDeviceEx(s->bytes, s->length, s->from, (ptl_pt_index_t)s->pt, 0, s->at);
    if (code == PTL_OK) {
        PtlHandlerDMAToHostB(s->bytes, s->to, s->length, PTL_HANDLER_HOST_MEM);
    }
    return code == PTL_OK ? DROP : FAIL;
}
PTL_HANDLER(kill_ask_header);

const ptl_handlers_t kill_asking = {
    .header_handler = kill_ask_header,
    .hpu_mem = PTL_HPU_MEM_NONE,
    .hpu_initial_length = sizeof(struct kill_ask),
};
