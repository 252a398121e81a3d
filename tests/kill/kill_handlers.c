/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of exchanges that have some: they put each packet where the message says. */
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
