/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair over Portals: puts of eight bytes, counted; see pair.h. */
#include "pair.h"

#include <pinwheel.h>
#include <portals4.h>

enum { INDEX = 4 };

static ptl_handle_ni_t ni;
static ptl_handle_ct_t ct;
static ptl_handle_md_t md;
static ptl_process_t peer;
static uint64_t in, out;
static ptl_size_t came;

static void check(int code, const char *call)
{
    if (code != 0) {
        fprintf(stderr, "pair_ours: %s gave %d\n", call, code);
        exit(1);
    }
}

static void send_word(uint64_t word)
{
    out = word;
    check(PtlPut(md, 0, sizeof(out), PTL_NO_ACK_REQ, peer, INDEX, 0, 0, NULL, 0), "PtlPut");
}

static void await_word(void)
{
    ptl_ct_event_t v;
    check(PtlCTWait(ct, ++came, &v), "PtlCTWait");
}

static void exchange(uint64_t word)
{
    send_word(word);
    await_word();
}

int main(void)
{
    struct pinwheel_job *job;
    ptl_pt_index_t index;
    ptl_handle_le_t le;
    check(pinwheel_job_init(&job), "pinwheel_job_init");
    int rank = pinwheel_job_rank(job);
    peer.rank = (ptl_rank_t)(1 - rank);
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check(pinwheel_job_set_map(job, ni), "pinwheel_job_set_map");
    check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, INDEX, &index), "PtlPTAlloc");
    check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    ptl_le_t entry = {.start = &in,
                      .length = sizeof(in),
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
    ptl_md_t range = {&out, sizeof(out), 0, PTL_EQ_NONE, PTL_CT_NONE};
    check(PtlLEAppend(ni, INDEX, &entry, PTL_PRIORITY_LIST, NULL, &le), "PtlLEAppend");
    check(PtlMDBind(ni, &range, &md), "PtlMDBind");
    check(pinwheel_job_barrier(job), "pinwheel_job_barrier");
    if (rank == 0) {
        pair_measure(exchange);
    } else {
        do {
            await_word();
            send_word(0);
        } while (in != LAST);
    }
    check(pinwheel_job_barrier(job), "pinwheel_job_barrier");
    check(PtlNIFini(ni), "PtlNIFini");
    PtlFini();
    return pinwheel_job_finalize(job) != 0;
}
