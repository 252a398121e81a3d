/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first handler: a text becomes capitals on its way into memory, and its
 * lines are counted, while it passes the network interface. The receiving
 * program sees the result only.
 *
 *      rank 0 ──put of many packets──► rank 1's NIC: capitals() on each packet ──DMA──► memory
 *                                                    finish() at the end ──DMA──► the count
 *
 *      $ pinwheel run -n 2 ./hello_handler
 *      $ PINWHEEL_HPU=rv32 pinwheel run -n 2 ./hello_handler     # on RISC-V cores
 *
 * This is the program. Its handlers have a file of their own, hello_capitals.c, which is compiled
 * for this machine and for the RISC-V cores.
 */
#include "hello_capitals.h"

#include <pinwheel.h>
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 4, TEXT = 1, LINES = 2000, LENGTH = LINES * 32 };

static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fprintf(stderr, "hello_handler: %s gave %d\n", call, code);
        exit(1);
    }
}

static void check_job(int code, struct pinwheel_job *job)
{
    if (code != 0) {
        fprintf(stderr, "hello_handler: %s\n", pinwheel_job_error(job));
        exit(1);
    }
}

/* Rank 1: an entry with handlers, and a wait for the message. */
static int receive(struct pinwheel_job *job, ptl_handle_ni_t ni, ptl_handle_ct_t ct)
{
    static char text[LENGTH];
    static uint64_t lines; /* the second range that handlers may write to */
    ptl_handle_me_t me;
    ptl_ct_event_t count;
    struct hello_state initial = {0};
    ptl_handlers_t handlers = {.payload_handler = capitals,
                               .completion_handler = finish,
                               .hpu_mem = PTL_HPU_MEM_NONE, /* some of its own */
                               .hpu_initial_state = &initial,
                               .hpu_initial_length = sizeof(initial),
                               .handler_host_mem = &lines,
                               .handler_host_length = sizeof(lines)};
    ptl_me_t entry = {.start = text,
                      .length = sizeof(text),
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                      .match_id.rank = PTL_RANK_ANY,
                      .match_bits = TEXT};
    check(PtlMEAppendHandlers(ni, INDEX, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &me),
          "PtlMEAppendHandlers");
    check_job(pinwheel_job_barrier(job), job);
    check(PtlCTWait(ct, 1, &count), "PtlCTWait");
    if (count.failure != 0) {
        fprintf(stderr, "hello_handler: a handler failed\n");
        return 1;
    }
    printf("rank 1: %llu lines, the last one is \"%.31s\"\n", (unsigned long long)lines,
           text + LENGTH - 32);
    return lines == LINES && memcmp(text + LENGTH - 32, "LINE  2000", 10) == 0 ? 0 : 1;
}

/* Rank 0: a text of LINES lines of 32 bytes. */
static int send(struct pinwheel_job *job, ptl_handle_ni_t ni)
{
    static char text[LENGTH + 1];
    ptl_handle_md_t md;
    ptl_md_t range = {text, LENGTH, 0, PTL_EQ_NONE, PTL_CT_NONE};
    for (int i = 0; i < LINES; i++) {
        snprintf(text + i * 32, 33, "line %5d of a text to shout. \n", i + 1);
    }
    check(PtlMDBind(ni, &range, &md), "PtlMDBind");
    check_job(pinwheel_job_barrier(job), job); /* the entry is there */
    check(
        PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 1}, INDEX, TEXT, 0, NULL, 0),
        "PtlPut");
    return 0;
}

int main(void)
{
    struct pinwheel_job *job;
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_pt_index_t index;
    check_job(pinwheel_job_init(&job), NULL);
    if (pinwheel_job_size(job) != 2) {
        fprintf(stderr, "hello_handler: needs two processes: pinwheel run -n 2 ./hello_handler\n");
        return 1;
    }
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check_job(pinwheel_job_set_map(job, ni), job);
    check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, INDEX, &index), "PtlPTAlloc");
    check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    int status = pinwheel_job_rank(job) == 0 ? send(job, ni) : receive(job, ni, ct);
    check_job(pinwheel_job_barrier(job), job); /* nobody leaves while others send to it */
    PtlNIFini(ni);
    PtlFini();
    pinwheel_job_finalize(job);
    return status;
}
