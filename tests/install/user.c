/* SPDX-License-Identifier: BSD-3-Clause */
/* A stranger's first program: puts eight bytes to itself. */
#include <portals4.h>
#include <spin.h>
#include <stdio.h>

int main(void)
{
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    ptl_pt_index_t pt;
    ptl_process_t self;
    ptl_ct_event_t value;
    long from = 4711, to = 0;
    if (PtlInit() != PTL_OK ||
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                  &ni) != PTL_OK ||
        PtlGetPhysId(ni, &self) != PTL_OK || PtlCTAlloc(ni, &ct) != PTL_OK ||
        PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt) != PTL_OK) {
        return 1;
    }
    ptl_me_t entry = {.start = &to,
                      .length = sizeof(to),
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                      .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                      .match_bits = 1};
    ptl_md_t range = {&from, sizeof(from), 0, PTL_EQ_NONE, PTL_CT_NONE};
    if (PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &me) != PTL_OK ||
        PtlMDBind(ni, &range, &md) != PTL_OK ||
        PtlPut(md, 0, sizeof(from), PTL_NO_ACK_REQ, self, pt, 1, 0, NULL, 0) != PTL_OK ||
        PtlCTWait(ct, 1, &value) != PTL_OK || value.failure != 0 || to != from) {
        return 1;
    }
    PtlNIFini(ni);
    PtlFini();
    return 0;
}
