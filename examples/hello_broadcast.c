/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broadcast that the network interfaces carry out, with the handler library: while the
 * data passes through a rank, that rank's program computes and makes no call.
 *
 *      rank 0's program ──► its NIC ──► NICs of its children ──► NICs of theirs ...
 *
 *      $ pinwheel run -n 4 ./hello_broadcast
 */
#include <pinwheel.h>
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>

#include "broadcast.h"

enum { INDEX = 4, BITS = 1, LENGTH = 1000000 };

static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fprintf(stderr, "hello_broadcast: %s gave %d\n", call, code);
        exit(1);
    }
}

static void check_job(int code, struct pinwheel_job *job)
{
    if (code != 0) {
        fprintf(stderr, "hello_broadcast: %s\n", pinwheel_job_error(job));
        exit(1);
    }
}

/* Something to do meanwhile. */
static double compute(void)
{
    double sum = 0;
    for (int i = 1; i < 3000000; i++) {
        sum += 1.0 / i / i;
    }
    return sum;
}

/* Attaches the handlers to an entry over the buffer. */
static ptl_handle_ct_t receive(ptl_handle_ni_t ni, const struct tree_group *group,
                               ptl_size_t packet, unsigned char *buffer)
{
    struct broadcast_state state;
    ptl_handlers_t handlers;
    ptl_handle_ct_t ct;
    ptl_handle_me_t entry;
    check(PtlCTAlloc(ni, &ct), "PtlCTAlloc");
    check(broadcast_handlers(group, TREE_BINOMIAL, 0, LENGTH, BITS, packet, &state, &handlers),
          "broadcast_handlers");
    ptl_me_t me = {.start = buffer,
                   .length = LENGTH,
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                   .match_id.rank = PTL_RANK_ANY,
                   .match_bits = BITS};
    check(PtlMEAppendHandlers(ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &entry),
          "PtlMEAppendHandlers");
    return ct;
}

/* The broadcast itself; 0 if all of it has come. */
static int run(struct pinwheel_job *job, ptl_handle_ni_t ni, const struct tree_group *group)
{
    static unsigned char buffer[LENGTH];
    ptl_handle_md_t md;
    ptl_md_t nothing = {NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_spin_limits_t limits;
    ptl_ct_event_t count;
    int wrong = 0;
    for (int i = 0; group->rank == 0 && i < LENGTH; i++) {
        buffer[i] = (unsigned char)(i % 251);
    }
    check(PtlSpinLimits(ni, &limits), "PtlSpinLimits");
    check(PtlMDBind(ni, &nothing, &md), "PtlMDBind");
    ptl_handle_ct_t ct = receive(ni, group, limits.max_payload_size, buffer);
    check_job(pinwheel_job_barrier(job), job); /* the entries are there, at all ranks */
    if (group->rank == 0) {
        check(broadcast_start(md, (ptl_process_t){.rank = 0}, INDEX, BITS, LENGTH,
                              limits.max_payload_size),
              "broadcast_start");
    }
    double sum = compute();
    check(PtlCTWait(ct, broadcast_messages(LENGTH, limits.max_payload_size), &count), "PtlCTWait");
    for (int i = 0; i < LENGTH; i++) {
        wrong += buffer[i] != i % 251;
    }
    printf("rank %u: %d bytes are here, %d wrong; meanwhile %.6f was computed\n", group->rank,
           LENGTH, wrong, sum);
    return count.failure == 0 && wrong == 0 ? 0 : 1;
}

int main(void)
{
    struct pinwheel_job *job;
    ptl_handle_ni_t ni;
    ptl_pt_index_t index;
    check_job(pinwheel_job_init(&job), NULL);
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &ni),
          "PtlNIInit");
    check_job(pinwheel_job_set_map(job, ni), job);
    check(PtlPTAlloc(ni, 0, PTL_EQ_NONE, INDEX, &index), "PtlPTAlloc");
    struct tree_group group = {(uint32_t)pinwheel_job_rank(job), (uint32_t)pinwheel_job_size(job),
                               NULL};
    int status = run(job, ni, &group);
    check_job(pinwheel_job_barrier(job), job); /* nobody leaves while others send to it */
    PtlNIFini(ni);
    PtlFini();
    pinwheel_job_finalize(job);
    return status;
}
