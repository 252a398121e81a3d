/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chain of filters, multiplied by a network interface: each rank computes the response of
 * its own low-pass filter, a complex number a frequency, and puts it to rank 0, whose memory
 * holds ones at first. The NIC multiplies each put with what is there; in the end that is
 * the response of all filters one after the other.
 *
 *      rank 1 ──H1(f)──┐
 *      rank 2 ──H2(f)──┼─► NIC of rank 0: memory[f] *= H(f)
 *      rank 3 ──H3(f)──┘
 *
 *      $ pinwheel run -n 4 ./accumulate
 */
#include "start.h"

#include <complex.h>
#include <math.h>

#include "accumulate.h"

enum { BITS = 1, POINTS = 2000, SHOWN = 10 };

static double frequency(int i)
{
    return 20 * pow(1000, (double)i / (POINTS - 1)); /* 20 Hz to 20 kHz */
}

/* A resistor and a capacitor; the filter of rank 1 cuts at 500 Hz, of rank 2 at 1000 Hz, ... */
static double complex response(uint32_t rank, int i)
{
    return 1 / (1 + I * frequency(i) / (500.0 * rank));
}

/* Rank 0: one entry, for all messages. */
static void receive(const struct start *s, double complex *product, ptl_handle_ct_t came)
{
    static struct accumulate_locks locks;
    size_t length = POINTS * sizeof(*product);
    for (int i = 0; i < POINTS; i++) {
        product[i] = 1;
    }
    struct accumulate_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    ptl_me_t me = entry(product, length, BITS, came);
    check(
        accumulate_handlers(PTL_PROD, PTL_DOUBLE_COMPLEX, NULL, length, &locks, &state, &handlers),
        "accumulate_handlers");
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static void send(const struct start *s, double complex *mine)
{
    size_t length = POINTS * sizeof(*mine);
    ptl_handle_ct_t acks = counter(s);
    ptl_handle_md_t md = source(s, mine, length, acks);
    for (int i = 0; i < POINTS; i++) {
        mine[i] = response(s->rank, i);
    }
    check(PtlPut(md, 0, length, PTL_CT_ACK_REQ, rank_id(0), INDEX, BITS, 0, NULL, 0), "PtlPut");
    await(acks, 1);
}

/* Messages are multiplied in the order of their arrival, so the last bits may differ. */
static int compare(const struct start *s, const double complex *product)
{
    int wrong = 0;
    for (int i = 0; i < POINTS; i++) {
        double complex want = 1;
        for (uint32_t rank = 1; rank < s->size; rank++) {
            want *= response(rank, i);
        }
        wrong += !(cabs(product[i] - want) <= 1e-12 * cabs(want));
        if (i % (POINTS / SHOWN) == 0) {
            printf("%8.0f Hz  %7.2f dB  %7.1f degrees\n", frequency(i),
                   20 * log10(cabs(product[i])), carg(product[i]) * 180 / M_PI);
        }
    }
    printf("%u filters in a row, %d points, %d of them wrong\n", s->size - 1, POINTS, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    static double complex points[POINTS];
    struct start s;
    int status = 0;
    start(&s, 2, 0);
    if (argc != 1) {
        usage(&s, "");
    }
    ptl_handle_ct_t came = counter(&s);
    if (s.rank == 0) {
        receive(&s, points, came);
    }
    meet(&s); /* the entries are there */
    if (s.rank == 0) {
        await(came, s.size - 1);
        status = compare(&s, points);
    } else {
        send(&s, points);
    }
    return finish(&s, status);
}
