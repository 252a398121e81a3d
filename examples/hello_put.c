/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first program: each process puts a greeting into the memory of the next.
 *
 *      rank 0 ──put──► rank 1 ──put──► ... ──put──► rank 0
 *
 *      $ pinwheel run -n 3 ./hello_put
 *
 * What one needs of Portals for it: an interface (NI); at the receiver a place in
 * the portal table (PT) with an entry (ME) that describes memory, and a counter
 * (CT) that tells when something has come; at the sender a memory descriptor (MD).
 */
#include <pinwheel.h>
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 4, GREETING = 7 };

/* Programs check every return code; this one ends at the first that is not PTL_OK. */
static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fprintf(stderr, "hello_put: %s gave %d\n", call, code);
        exit(1);
    }
}

static void check_job(int code, struct pinwheel_job *job)
{
    if (code != 0) {
        fprintf(stderr, "hello_put: %s\n", pinwheel_job_error(job));
        exit(1);
    }
}

int main(void)
{
    static char inbox[64], outbox[64];
    struct pinwheel_job *job;
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    ptl_pt_index_t index;
    ptl_ct_event_t count;

    /* Who am I, and how many are we? */
    check_job(pinwheel_job_init(&job), NULL);
    int rank = pinwheel_job_rank(job), size = pinwheel_job_size(job);

    /* An interface with match bits, on which peers are named by rank. */
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check_job(pinwheel_job_set_map(job, ni), job);

    /* Where greetings land: puts with match bits GREETING, from anybody, counted. */
    check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, INDEX, &index), "PtlPTAlloc");
    check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    ptl_me_t entry = {.start = inbox,
                      .length = sizeof(inbox),
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                      .match_id.rank = PTL_RANK_ANY,
                      .match_bits = GREETING};
    check(PtlMEAppend(ni, index, &entry, PTL_PRIORITY_LIST, NULL, &me), "PtlMEAppend");
    check_job(pinwheel_job_barrier(job), job); /* everyone's entry is there now */

    /* The put: it names the target's entry, not its memory. */
    ptl_md_t range = {outbox, sizeof(outbox), 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_process_t next = {.rank = (ptl_rank_t)((rank + 1) % size)};
    snprintf(outbox, sizeof(outbox), "hello from rank %d of %d", rank, size);
    check(PtlMDBind(ni, &range, &md), "PtlMDBind");
    check(PtlPut(md, 0, strlen(outbox) + 1, PTL_NO_ACK_REQ, next, INDEX, GREETING, 0, NULL, 0),
          "PtlPut");

    /* The greeting of the one before. A failure would be counted apart. */
    check(PtlCTWait(ct, 1, &count), "PtlCTWait");
    if (count.failure != 0) {
        fprintf(stderr, "hello_put: a put to rank %d failed\n", rank);
        return 1;
    }
    printf("rank %d received \"%s\"\n", rank, inbox);

    check_job(pinwheel_job_barrier(job), job); /* nobody leaves while others send to it */
    PtlNIFini(ni);
    PtlFini();
    pinwheel_job_finalize(job);
    return 0;
}
