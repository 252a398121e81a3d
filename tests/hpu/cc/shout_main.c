/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts a text to itself, through the handler of shout.c, and prints what has become of it. */
#include "shout.h"

#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        printf("%s gave %d\n", call, code);
        exit(1);
    }
}

int main(void)
{
    static char sent[] = "a handler is plain code", text[sizeof(sent)];
    struct shout_state state = {0};
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_handle_me_t me;
    ptl_handle_hpu_mem_t memory;
    ptl_pt_index_t pt;
    ptl_process_t self;
    ptl_ct_event_t count;
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check(PtlGetPhysId(ni, &self), "PtlGetPhysId");
    check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt), "PtlPTAlloc");
    check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    check(PtlHPUAllocMem(ni, sizeof(state), &memory), "PtlHPUAllocMem");
    const ptl_handlers_t handlers = {.payload_handler = shout_payload,
                                     .hpu_mem = memory,
                                     .hpu_initial_state = &state,
                                     .hpu_initial_length = sizeof(state)};
    const ptl_me_t entry = {.start = text,
                            .length = sizeof(text),
                            .ct_handle = ct,
                            .uid = PTL_UID_ANY,
                            .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                            .match_id = self};
    const ptl_md_t range = {sent, sizeof(sent), 0, PTL_EQ_NONE, PTL_CT_NONE};
    check(PtlMEAppendHandlers(ni, pt, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &me),
          "PtlMEAppendHandlers");
    check(PtlMDBind(ni, &range, &md), "PtlMDBind");
    check(PtlPut(md, 0, sizeof(sent), PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0), "PtlPut");
    check(PtlCTWait(ct, 1, &count), "PtlCTWait");
    check(PtlHPURead(memory, 0, &state, sizeof(state)), "PtlHPURead");
    printf("%s: %d letters, %u-bit pointers\n", text, (int)state.letters, 8 * state.pointer);
    PtlNIFini(ni);
    PtlFini();
    return 0;
}
