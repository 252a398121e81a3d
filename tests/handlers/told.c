/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program is told when it appends handlers that do not fit: the code is the same for all
 * of them, the line on standard error names what is wrong, its value and what would do.
 */
#include "kit.h"

#include <inttypes.h>

static struct kit k;

static void refused(const ptl_handlers_t *h, const char *wanted)
{
    char text[512];
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(&k.p, NULL, 0, PTL_ME_OP_PUT);
    begin_capture();
    int code = PtlMEAppendHandlers(k.p.ni, k.p.pt, &me, h, PTL_PRIORITY_LIST, NULL, &handle);
    end_capture(text, sizeof(text));
    CHECK_CODE(code, PTL_ARG_INVALID);
    if (strstr(text, wanted) == NULL) {
        ptest_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", text, wanted);
    }
}

PTEST(each_reason, 1)
{
    char wanted[128];
    ptl_handle_hpu_mem_t memory;
    const ptl_handlers_t good = {.hpu_mem = PTL_HPU_MEM_NONE};
    kit_open(&k, rank, size);
    ptl_handlers_t h = good;
    h.options = PTL_HANDLER_IOVEC | 1u << 7;
    refused(&h, "no option 0x80");
    h = good;
    if (k.spin.num_hpus < 64) {
        h.hpu_mask = UINT64_C(1) << k.spin.num_hpus | 1;
        snprintf(wanted, sizeof(wanted), "hpu_mask 0x%" PRIx64 " names an HPU beyond the %u ",
                 h.hpu_mask, (unsigned)k.spin.num_hpus);
        refused(&h, wanted);
    }
    h = good;
    h.user_hdr_length = k.spin.max_user_hdr_size + 1;
    snprintf(wanted, sizeof(wanted), "user_hdr_length %" PRIu64 " is more than max_user_hdr_size",
             (uint64_t)h.user_hdr_length);
    refused(&h, wanted);
    h = good;
    h.hpu_initial_length = k.spin.max_initial_state + 1;
    snprintf(wanted, sizeof(wanted), "is more than max_initial_state, %" PRIu64,
             (uint64_t)k.spin.max_initial_state);
    refused(&h, wanted);
    h = good;
    h.handler_host_length = 4;
    refused(&h, "handler_host_mem is NULL, handler_host_length 4");
    h = good;
    h.hpu_mem = k.p.eq;
    refused(&h, "hpu_mem is no HPU memory of this interface");
    OK(PtlHPUAllocMem(k.p.ni, 64, &memory));
    h.hpu_mem = memory;
    h.hpu_initial_length = 65;
    refused(&h, "hpu_initial_length 65 is more than hpu_mem has, 64");
    OK(PtlHPUFreeMem(memory));
    h.hpu_initial_length = 64;
    refused(&h, "hpu_mem is no HPU memory");
    kit_close(&k);
}
