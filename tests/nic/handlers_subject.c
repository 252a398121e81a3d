/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process with handlers for handlers.sh to look at. It has three execution contexts, numbers 1
 * to 3: one that takes 5 messages of 3 packets and drops the second packet of each, one that
 * faults once, one that is inactive; a fourth one takes one message and is gone. Then it says
 * "ready" and stays until its input ends; a line of input starts 100 more messages, and one more
 * fault.
 */
#include "handlers_subject.h"

#include "subject.h"

static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
static ptl_handle_ct_t ct;

static int append(const ptl_handlers_t *h, ptl_match_bits_t bits, unsigned options,
                  ptl_handle_me_t *me)
{
    static char memory[16384];
    ptl_me_t entry = {.start = memory,
                      .length = sizeof(memory),
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | options,
                      .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                      .match_bits = bits};
    return PtlMEAppendHandlers(ni, pt, &entry, h, PTL_PRIORITY_LIST, NULL, me);
}

int main(void)
{
    static const struct {
        uint64_t calls;
        char mark[24];
    } state = {0, "a mark to be found"};
    static char message[12288];
    ptl_handle_me_t normal, faulty, inactive, once;
    ptl_ct_event_t count;
    MUST(PtlInit());
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni));
    MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    MUST(PtlCTAlloc(ni, &ct));
    ptl_handlers_t h = subject_normal;
    h.hpu_initial_state = &state;
    h.hpu_initial_length = sizeof(state);
    MUST(append(&h, 7, 0, &normal));
    MUST(append(&subject_faulty, 8, 0, &faulty));
    h.options = PTL_HANDLER_INACTIVE;
    MUST(append(&h, 9, 0, &inactive));
    MUST(append(&subject_once, 10, PTL_ME_USE_ONCE, &once));
    for (int i = 0; i < 5; i++) {
        MUST(PtlHandlersInvoke(normal, message, sizeof(message)));
    }
    MUST(PtlHandlersInvoke(once, message, 100));
    MUST(PtlCTWait(ct, 6, &count));
    MUST(PtlHandlersInvoke(faulty, message, 100));
    while (count.failure == 0) {
        MUST(PtlCTGet(ct, &count));
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
        for (int i = 0; i < 100; i++) {
            MUST(PtlHandlersInvoke(normal, message, sizeof(message)));
        }
        MUST(PtlHandlersInvoke(faulty, message, 100));
    }
    MUST(PtlNIFini(ni));
    PtlFini();
    return 0;
}
