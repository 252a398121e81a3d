/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process for nic.sh to look at. It sends itself 3 puts of 100 bytes, a get of 10, an
 * atomic of 8 and a put that matches nothing, says "ready", and stays until its input ends;
 * a line of input makes it send one more put of 1000.
 */
#include "subject.h"

int main(void)
{
    static char from[1000], to[1000];
    ptl_handle_ni_t ni;
    ptl_process_t self;
    ptl_pt_index_t pt;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    ptl_ct_event_t count;
    MUST(PtlInit());
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni));
    MUST(PtlGetPhysId(ni, &self));
    MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    MUST(PtlCTAlloc(ni, &ct));
    ptl_me_t entry = {.start = to,
                      .length = sizeof(to),
                      .ct_handle = PTL_CT_NONE,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
                      .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                      .match_bits = 7};
    MUST(PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &me));
    ptl_md_t memory = {.start = from,
                       .length = sizeof(from),
                       .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
                       .eq_handle = PTL_EQ_NONE,
                       .ct_handle = ct};
    MUST(PtlMDBind(ni, &memory, &md));
    for (int i = 0; i < 3; i++) {
        MUST(PtlPut(md, 0, 100, PTL_CT_ACK_REQ, self, pt, 7, 0, NULL, 0));
    }
    MUST(PtlGet(md, 0, 10, self, pt, 7, 0, NULL));
    MUST(PtlAtomic(md, 0, 8, PTL_CT_ACK_REQ, self, pt, 7, 0, NULL, 0, PTL_SUM, PTL_INT64_T));
    MUST(PtlCTWait(ct, 5, &count));
    MUST(PtlPut(md, 0, 20, PTL_CT_ACK_REQ, self, pt, 8, 0, NULL, 0));
    MUST(PtlCTWait(ct, 6, &count));
    puts("ready");
    fflush(stdout);
    for (ptl_size_t done = 6; getchar() != EOF; done++) {
        MUST(PtlPut(md, 0, 1000, PTL_CT_ACK_REQ, self, pt, 7, 0, NULL, 0));
        PtlCTWait(ct, done, &count);
    }
    MUST(PtlNIFini(ni));
    PtlFini();
    return 0;
}
