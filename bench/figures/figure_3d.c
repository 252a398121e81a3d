/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 3d of the sPIN paper: rank 0 puts double complex numbers, which are multiplied with those
 * in rank 1's memory; from the put on until the products are there.
 *
 *      rdma         the NIC deposits them, the program reads both arrays and writes one
 *      spin,cycles  a payload handler reads, multiplies and writes what its packet is for
 *      library      the same by handlers/accumulate.c, in blocks under locks of host memory
 */
#include "figure.h"

#include "accumulate.h"
#include "figure_3d_handlers.h"

enum way { RDMA, SPIN, CYCLES, LIBRARY };

static const char *const ways[] = {"rdma", "spin", "cycles", "library", NULL};

enum { BITS = 1 };

/* Rank 1: multiplies as a program, and says that it reads both arrays and writes one. */
static void multiply(struct multiply_number *product, const struct multiply_number *by, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        product[i] = multiply_numbers(product[i], by[i]);
    }
    PtlSimTouch(2 * n * sizeof(*by), n * sizeof(*by));
}

static struct multiply_number there(size_t i)
{
    return (struct multiply_number){(double)(i % 97) + 1, (double)(i % 31)};
}

static struct multiply_number comes(size_t i)
{
    return (struct multiply_number){(double)(i % 13), (double)(i % 7) + 1};
}

static int receive(const struct start *s, unsigned long bytes, enum way way)
{
    static struct accumulate_locks locks;
    struct multiply_number *mine = memory(bytes), *buffer = memory(bytes);
    struct accumulate_state state;
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(way == RDMA ? buffer : mine, bytes, BITS, came);
    ptl_handlers_t handlers = {.payload_handler = multiply_packet, .hpu_mem = PTL_HPU_MEM_NONE};
    size_t n = bytes / sizeof(*mine);
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        mine[i] = there(i);
    }
    if (way == LIBRARY) {
        check(accumulate_handlers(PTL_PROD, PTL_DOUBLE_COMPLEX, NULL, bytes, &locks, &state,
                                  &handlers),
              "accumulate_handlers");
    }
    if (way == RDMA) {
        figure_expose(s, &me);
    } else {
        figure_receive(s, &me, &handlers);
    }
    meet(s);
    uint64_t begin = PtlSimNow();
    await(came, 1);
    if (way == RDMA) {
        multiply(mine, buffer, n);
    }
    uint64_t end = PtlSimNow();
    for (size_t i = 0; i < n; i++) {
        struct multiply_number right = multiply_numbers(there(i), comes(i));
        wrong += mine[i].real != right.real || mine[i].imaginary != right.imaginary;
    }
    if (wrong != 0) {
        fprintf(stderr, "%d of %zu products are wrong\n", wrong, n);
    }
    figure_says(bytes, ways[way], end - begin);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long bytes = 0;
    enum way way = (enum way)figure_start(&s, 2, argc, argv, ways, &bytes);
    if (bytes % sizeof(struct multiply_number) != 0) {
        usage(&s, "BYTES WAY    BYTES: a multiple of 16");
    }
    if (s.rank == 1) {
        return finish(&s, receive(&s, bytes, way));
    }
    struct multiply_number *out = memory(bytes);
    for (size_t i = 0; i < bytes / sizeof(*out); i++) {
        out[i] = comes(i);
    }
    ptl_handle_md_t md = source(&s, out, bytes, PTL_CT_NONE);
    meet(&s);
    figure_put(md, bytes, 1, BITS);
    return finish(&s, 0);
}
