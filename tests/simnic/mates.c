/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that share a host's NIC (--per-host): mates plain|handlers BYTES FROM:TO... At 20 us of
 * virtual time each FROM puts a message to its TO, which prints its rank, and when the message was
 * counted, in picoseconds from then on.
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

#include <time.h>

enum { BITS = 1, BEGIN_US = 20, MOST = 65536 };

static uint8_t bytes[MOST], target[MOST];

__handler static int mates_packet(const ptl_payload_t p, void *state)
{
    (void)p;
    (void)state;
    return SUCCESS;
}
PTL_HANDLER(mates_packet);

static ptl_handle_ct_t serve(const struct start *s, bool handlers)
{
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(target, sizeof(target), BITS, came);
    ptl_handlers_t h = {.payload_handler = mates_packet, .hpu_mem = PTL_HPU_MEM_NONE};
    ptl_handle_me_t handle;
    check(handlers ? PtlMEAppendHandlers(s->ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle)
                   : PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppend");
    return came;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long length = 0, from, to;
    start(&s, 2, 64);
    if (argc < 4 || !number(argv[2], 0, MOST, &length)) {
        usage(&s, "plain|handlers BYTES FROM:TO...");
    }
    memset(bytes, 7, sizeof(bytes));
    ptl_handle_ct_t came = serve(&s, strcmp(argv[1], "handlers") == 0), sent = counter(&s);
    ptl_handle_md_t md = source(&s, bytes, sizeof(bytes), sent);
    meet(&s);
    struct timespec begin = {1000, 1000 * BEGIN_US};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL);
    for (int i = 3; i < argc; i++) {
        if (sscanf(argv[i], "%lu:%lu", &from, &to) != 2) {
            usage(&s, "plain|handlers BYTES FROM:TO...");
        }
        if (s.rank == from) {
            check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id((uint32_t)to), INDEX, BITS, 0, NULL,
                         0),
                  "PtlPut");
        }
        if (s.rank == to) {
            await(came, 1);
            printf("%u %llu\n", s.rank,
                   (unsigned long long)(PtlSimNow() - UINT64_C(1000000) * BEGIN_US));
        }
    }
    return finish(&s, 0);
}
