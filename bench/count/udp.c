/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows over UDP, on a scripted socket (script.c): a put and its answer, a put each, so that the
 * acknowledgements ride on what the program sends, as they do in a ping-pong.
 */
#include "count.h"

enum { BITS = 7, SMALL = 8, MEET_LOOKS = 100000 };

static ptl_handle_md_t from_a, from_b;
static struct count_mark at_a, at_b;

static void put(ptl_handle_md_t md, const struct count_nic *to)
{
    count_ok(PtlPut(md, 0, SMALL, PTL_NO_ACK_REQ, to->id, to->counted, BITS, 0, NULL, 0), "PtlPut");
}

/* First contact takes several packets from either side, so both look in turn. */
static void meet(struct count_mark *at)
{
    ptl_ct_event_t event;
    ptl_size_t reached = ++at->reached;
    unsigned which;
    for (int i = 0; PtlCTPoll(&at->ct, &reached, 1, 0, &event, &which) != PTL_OK; i++) {
        count_ok(PtlCTGet(at_a.ct, &event), "PtlCTGet");
        count_ok(PtlCTGet(at_b.ct, &event), "PtlCTGet");
        if (i == MEET_LOOKS) {
            count_fail("the first contact over the scripted socket", i);
        }
    }
}

static void open_put(void)
{
    at_a = count_entry(&count_a, BITS, PTL_ME_OP_PUT, NULL);
    at_b = count_entry(&count_b, BITS, PTL_ME_OP_PUT, NULL);
    from_a = count_md(&count_a, 0, PTL_EQ_NONE, PTL_CT_NONE);
    from_b = count_md(&count_b, 0, PTL_EQ_NONE, PTL_CT_NONE);
    put(from_a, &count_b);
    meet(&at_b);
    put(from_b, &count_a);
    meet(&at_a);
}

static void exchange(void)
{
    put(from_a, &count_b);
    count_reached(&at_b, 1);
    put(from_b, &count_a);
    count_reached(&at_a, 1);
}

static void verify(unsigned operations)
{
    count_is(&at_a, operations / 2 + 1); /* and the first */
    count_is(&at_b, operations / 2 + 1);
}

static const struct count_row rows[] = {
    {"udp_put", "native", 2, open_put, NULL, exchange, verify},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    return count_main(argc, argv, "udp", rows);
}
