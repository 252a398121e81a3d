/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host that computes and one that waits, for the reports: rank 1 computes, sleeps, and puts eight
 * bytes to rank 0, which waits for them; each of these is a phase.
 *
 *      $ pinwheel sim -n 2 simnic_works COMPUTE_NS SLEEP_NS
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"

#include <time.h>

enum { BITS = 1 };

int main(int argc, char **argv)
{
    static uint64_t word;
    struct start s;
    unsigned long computes = 0, sleeps = 0;
    start(&s, 2, 2);
    if (argc != 3 || !number(argv[1], 0, 999999999, &computes) ||
        !number(argv[2], 0, 999999999, &sleeps)) {
        usage(&s, "COMPUTE_NS SLEEP_NS");
    }
    ptl_handle_ct_t came = counter(&s);
    ptl_handle_md_t md = source(&s, &word, sizeof(word), PTL_CT_NONE);
    ptl_me_t me = entry(&word, sizeof(word), BITS, came);
    ptl_handle_me_t handle;
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(&s);
    if (s.rank == 1) {
        PtlSimMark("compute");
        PtlSimCompute(computes);
        PtlSimMark("sleep, \"long\"");
        nanosleep(&(struct timespec){.tv_nsec = (long)sleeps}, NULL);
        PtlSimMark("put");
        check(PtlPut(md, 0, sizeof(word), PTL_NO_ACK_REQ, rank_id(0), INDEX, BITS, 0, NULL, 0),
              "PtlPut");
    } else {
        await(came, 1);
    }
    return finish(&s, 0);
}
