/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More handler calls at once than a NIC has HPUs, for the reports: rank 1 puts so many packets
 * as one message; a payload handler at rank 0 counts them.
 *
 *      $ pinwheel sim -n 2 simnic_burst PACKETS [dies]
 *
 * With "dies" rank 1 is killed when they have left.
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

#include <signal.h>
#include <unistd.h>

enum { BITS = 1, MOST = 1000 };

__handler static int burst_packet(const ptl_payload_t p, void *state)
{
    PtlHandlerCTInc(*(const ptl_handle_ct_t *)state, (ptl_ct_event_t){1, 0});
    return SUCCESS;
}
PTL_HANDLER(burst_packet);

int main(int argc, char **argv)
{
    static uint8_t from[MOST * 4096];
    struct start s;
    unsigned long packets = 0;
    start(&s, 2, 2);
    if (argc < 2 || argc > 3 || !number(argv[1], 1, MOST, &packets)) {
        usage(&s, "PACKETS [dies]");
    }
    ptl_handle_ct_t came = counter(&s);
    ptl_handle_md_t md = source(&s, from, packets * s.packet, PTL_CT_NONE);
    if (s.rank == 0) {
        ptl_handlers_t h = {.payload_handler = burst_packet,
                            .hpu_mem = PTL_HPU_MEM_NONE,
                            .hpu_initial_state = &came,
                            .hpu_initial_length = sizeof(came)};
        ptl_me_t me = entry(NULL, 0, BITS, PTL_CT_NONE);
        ptl_handle_me_t handle;
        me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
        check(PtlMEAppendHandlers(s.ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    }
    meet(&s);
    if (s.rank == 1) {
        check(
            PtlPut(md, 0, packets * s.packet, PTL_NO_ACK_REQ, rank_id(0), INDEX, BITS, 0, NULL, 0),
            "PtlPut");
        if (argc > 2) {
            PtlSimCompute(100000);
            kill(getpid(), SIGKILL);
        }
    } else {
        await(came, packets);
    }
    return finish(&s, 0);
}
