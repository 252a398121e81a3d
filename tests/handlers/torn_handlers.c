/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of messages that end before they are whole (torn.c). */
#include "torn_handlers.h"

static void add(uint64_t *count, uint64_t n)
{
    uint64_t before;
    PtlHandlerFAdd(count, &before, n);
}

__handler static int torn_header(const ptl_header_t h, void *state)
{
    struct torn_state *s = state;
    add(&s->headers, 1);
    return PROCESS_DATA;
}
PTL_HANDLER(torn_header);

__handler static int torn_payload(const ptl_payload_t p, void *state)
{
    struct torn_state *s = state;
    add(&s->bytes, p.length);
    return SUCCESS;
}
PTL_HANDLER(torn_payload);

__handler static int torn_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct torn_state *s = state;
    add(&s->completions, 1);
    s->dropped = dropped;
    return SUCCESS;
}
PTL_HANDLER(torn_completion);

const ptl_handlers_t torn_by_packet = {
    .header_handler = torn_header,
    .payload_handler = torn_payload,
    .completion_handler = torn_completion,
    .hpu_mem = PTL_HPU_MEM_NONE,
};

const ptl_handlers_t torn_deposited = {
    .header_handler = torn_header,
    .completion_handler = torn_completion,
    .hpu_mem = PTL_HPU_MEM_NONE,
};
