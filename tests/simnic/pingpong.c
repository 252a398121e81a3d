/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong of ranks 0 and 1 on simulated NICs, in three ways: the program of rank 1 answers, a
 * triggered put does, a header handler does. Prints half of the round trip of the tenth exchange,
 * in picoseconds.
 *
 *      $ pinwheel sim -n 2 simnic_pingpong rdma|triggered|spin BYTES
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

enum { PING = 1, PONG = 2, ROUNDS = 10, LONGEST = 1 << 20 };

struct answer {
    uint64_t bytes;
    ptl_process_t to;
};

__handler static int answer_header(const ptl_header_t h, void *state)
{
    const struct answer *a = state;
    PtlHandlerPutFromDevice(h.user_hdr, a->bytes, PTL_NO_ACK_REQ, a->to, PONG, 0, NULL, 0);
    return DROP;
}
PTL_HANDLER(answer_header);

static ptl_handle_me_t append(struct start *s, ptl_me_t *me)
{
    ptl_handle_me_t handle;
    check(PtlMEAppend(s->ni, INDEX, me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    return handle;
}

int main(int argc, char **argv)
{
    static uint8_t from[LONGEST], to[LONGEST];
    struct start s;
    unsigned long bytes = 0;
    start(&s, 2, 2);
    if (argc != 3 || !number(argv[2], 0, LONGEST, &bytes)) {
        usage(&s, "rdma|triggered|spin BYTES");
    }
    bool triggered = strcmp(argv[1], "triggered") == 0, spin = strcmp(argv[1], "spin") == 0;
    ptl_handle_ct_t came = counter(&s);
    ptl_handle_md_t md = source(&s, from, bytes, PTL_CT_NONE);
    ptl_me_t me = entry(to, sizeof(to), s.rank == 0 ? PONG : PING, came);
    if (s.rank == 1 && spin) {
        struct answer a = {bytes, rank_id(0)};
        ptl_handlers_t h = {.header_handler = answer_header,
                            .user_hdr_length = bytes,
                            .hpu_mem = PTL_HPU_MEM_NONE,
                            .hpu_initial_state = &a,
                            .hpu_initial_length = sizeof(a)};
        ptl_handle_me_t handle;
        me.ct_handle = PTL_CT_NONE;
        me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
        check(PtlMEAppendHandlers(s.ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    } else {
        append(&s, &me);
    }
    for (unsigned i = 0; s.rank == 1 && triggered && i < ROUNDS; i++) {
        check(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_id(0), INDEX, PONG, 0, NULL, 0,
                              came, i + 1),
              "PtlTriggeredPut");
    }
    meet(&s);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t begin = PtlSimNow();
        if (s.rank == 0) {
            check(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_id(1), INDEX, PING, 0, NULL, 0),
                  "PtlPut");
            await(came, i + 1);
        } else if (!triggered && !spin) {
            await(came, i + 1);
            check(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_id(0), INDEX, PONG, 0, NULL, 0),
                  "PtlPut");
        }
        if (s.rank == 0 && i == ROUNDS - 1) {
            printf("%llu\n", (unsigned long long)(PtlSimNow() - begin) / 2);
        }
    }
    return finish(&s, 0);
}
