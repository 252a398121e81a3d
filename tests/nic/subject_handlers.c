/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of handlers_subject.c. */
#include "handlers_subject.h"

__handler static int header(const ptl_header_t h, void *state)
{
    PtlHandlerFAdd(state, NULL, 1);
    PtlHandlerPrintf("message of %lu\n", (unsigned long)h.length);
    return PROCESS_DATA;
}

__handler static int payload(const ptl_payload_t p, void *state)
{
    return p.offset == 4096 ? DROP : SUCCESS;
}

__handler static int completion(ptl_size_t dropped, bool flow_control, void *state)
{
    return SUCCESS;
}

/* What it does on purpose is not for a sanitizer to end the program over. */
__attribute__((no_sanitize("undefined"), no_sanitize("address"))) __handler static int
fault(const ptl_header_t h, void *state)
{
    volatile int *volatile nowhere = NULL;
    return *nowhere;
}
PTL_HANDLER(header);
PTL_HANDLER(payload);
PTL_HANDLER(completion);
PTL_HANDLER(fault);

const ptl_handlers_t subject_normal = {.header_handler = header,
                                       .payload_handler = payload,
                                       .completion_handler = completion,
                                       .hpu_mem = PTL_HPU_MEM_NONE,
                                       .hpu_mask = 1};
const ptl_handlers_t subject_faulty = {.header_handler = fault, .hpu_mem = PTL_HPU_MEM_NONE};
const ptl_handlers_t subject_once = {.completion_handler = completion, .hpu_mem = PTL_HPU_MEM_NONE};
