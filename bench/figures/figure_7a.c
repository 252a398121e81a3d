/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 7a of the sPIN paper: rank 0 puts 4 MiB, which are unpacked into blocks at every other
 * place of rank 1's memory; from the put on until all are there.
 *
 *      rdma   the NIC deposits the message, the program unpacks it, at the rate that HOST_COPY says
 *      spin   the handlers of handlers/strided.c do
 *
 * BYTES are those of a block.
 */
#include "figure.h"

#include "strided.h"

enum way { RDMA, SPIN };

static const char *const ways[] = {"rdma", "spin", NULL};

/* HOST_COPY: of a byte that the program unpacks, in 0.1 ps: 10.6 GB/s, with which the paper's RDMA
 * has the 8.7 GB/s that its section 5.2 tells. HOST_LATENCY: ns. */
enum { BITS = 1, MESSAGE = 4 << 20, HOST_COPY = 943, HOST_LATENCY = 51 };

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 256);
}

static void unpack(uint8_t *to, const uint8_t *from, size_t block)
{
    for (size_t at = 0; at < MESSAGE; at += block) {
        memcpy(to + 2 * at, from + at, block);
    }
    PtlSimCompute(HOST_LATENCY + (uint64_t)MESSAGE * HOST_COPY / 10 / 1000);
}

static int receive(const struct start *s, unsigned long block, enum way way)
{
    uint8_t *layout = memory(2 * (size_t)MESSAGE), *packed = memory(MESSAGE);
    const struct strided_state state = {
        .stride = 2 * (int64_t)block, .block = block, .blocks = MESSAGE / block};
    ptl_handlers_t handlers;
    ptl_handle_ct_t came = counter(s);
    size_t wrong = 0;
    if (way == RDMA) {
        ptl_me_t me = entry(packed, MESSAGE, BITS, came);
        figure_expose(s, &me);
    } else {
        ptl_me_t me = entry(layout, 2 * (size_t)MESSAGE, BITS, came);
        check(strided_handlers(&state, me.length, &handlers), "strided_handlers");
        figure_receive(s, &me, &handlers);
    }
    meet(s);
    uint64_t begin = PtlSimNow();
    await(came, 1);
    if (way == RDMA) {
        unpack(layout, packed, block);
    }
    uint64_t end = PtlSimNow();
    for (size_t i = 0; i < MESSAGE; i++) {
        wrong += layout[i / block * 2 * block + i % block] != byte_at(i);
    }
    if (wrong != 0) {
        fprintf(stderr, "%zu bytes are wrong\n", wrong);
    }
    figure_says(block, ways[way], end - begin);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long block = 0;
    enum way way = (enum way)figure_start(&s, 2, argc, argv, ways, &block);
    if (MESSAGE % block != 0) {
        usage(&s, "BYTES rdma|spin    BYTES of a block: a divisor of 4 MiB");
    }
    if (s.rank == 1) {
        return finish(&s, receive(&s, block, way));
    }
    uint8_t *out = memory(MESSAGE);
    for (size_t i = 0; i < MESSAGE; i++) {
        out[i] = byte_at(i);
    }
    ptl_handle_md_t md = source(&s, out, MESSAGE, PTL_CT_NONE);
    meet(&s);
    figure_put(md, MESSAGE, 1, BITS);
    return finish(&s, 0);
}
