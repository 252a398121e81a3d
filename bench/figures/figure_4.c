/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 4 of the sPIN paper, by running it: packets come as fast as a NIC can send them, and each
 * has a handler, whose time `pinwheel sim --handler` gives; the time from one packet that is
 * handled to the next.
 *
 *      $ PINWHEEL_PACKET_SIZE=BYTES pinwheel sim -n 2 --hpus 8 --handler 53ns PROGRAM BYTES WAY
 *
 * It is that of a message of many packets less that of one packet. WAY is a word for the line that
 * is printed.
 */
#include "figure.h"

#include "figure_4_handlers.h"

enum { PACKETS = 1000, LONGEST_PACKET = 4096 };

/* Both ranks: a message of so many packets; returns when its handlers have ended, at rank 1. */
static uint64_t message(const struct start *s, unsigned long bytes, size_t packets)
{
    static ptl_match_bits_t bits;
    const ptl_handlers_t handlers = {.payload_handler = consume_packet,
                                     .hpu_mem = PTL_HPU_MEM_NONE};
    size_t length = bytes * packets;
    uint8_t *data = memory(length);
    bits++;
    if (s->rank == 0) {
        ptl_handle_md_t md = source(s, data, length, PTL_CT_NONE);
        meet(s);
        figure_put(md, length, 1, bits);
        return 0;
    }
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(data, length, bits, came);
    figure_receive(s, &me, &handlers);
    meet(s);
    uint64_t begin = PtlSimNow();
    await(came, 1);
    return PtlSimNow() - begin;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long bytes = 0;
    start(&s, 2, 2);
    if (argc != 3 || !number(argv[1], 1, LONGEST_PACKET, &bytes)) {
        usage(&s, "BYTES WAY    1 to 4096 bytes");
    }
    if (bytes % 64 != 0 || s.packet != bytes) {
        fail("%lu bytes: a multiple of 64, and that of PINWHEEL_PACKET_SIZE", bytes);
    }
    uint64_t one = message(&s, bytes, 1), all = message(&s, bytes, PACKETS);
    if (s.rank == 1) {
        figure_says(bytes, argv[2], (all - one + (PACKETS - 1) / 2) / (PACKETS - 1));
    }
    return finish(&s, 0);
}
