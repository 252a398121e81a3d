/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that put a message where the NIC would have put it, packet by packet; or let it. */
#include "churn_handlers.h"

static void add(uint64_t *count)
{
    uint64_t before;
    PtlHandlerFAdd(count, &before, 1);
}

__handler static int churn_header(const ptl_header_t h, void *state)
{
    add(&((struct churn_state *)state)->headers);
    return PROCESS_DATA;
}
PTL_HANDLER(churn_header);

__handler static int churn_payload(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(churn_payload);

__handler static int churn_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    add(&((struct churn_state *)state)->completions);
    return SUCCESS;
}
PTL_HANDLER(churn_completion);

const ptl_handlers_t churn_by_packet = {
    .header_handler = churn_header,
    .payload_handler = churn_payload,
    .completion_handler = churn_completion,
    .hpu_mem = PTL_HPU_MEM_NONE,
};

const ptl_handlers_t churn_deposited = {
    .header_handler = churn_header,
    .completion_handler = churn_completion,
    .hpu_mem = PTL_HPU_MEM_NONE,
};
