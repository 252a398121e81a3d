/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives that programs drive, as schedules of `pinwheel goal gen` have them. Each rank prints
 * the time at which it is done, in picoseconds from the start:
 *
 *      binomial BYTES         binomialtreebcast: rank r gets from r without its highest bit
 *      dissemination BYTES    to r + 1, r + 2, r + 4, ..., each after the message of the last round
 *      ring BYTES             allgather_ring: to r + 1, N - 1 times
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"

enum { LONGEST = 65536, ROUNDS = 64 };

static uint8_t from[LONGEST], to[LONGEST];
static ptl_handle_ct_t came[ROUNDS];
static ptl_handle_md_t md;

static void send_to(uint32_t rank, unsigned round, unsigned long bytes)
{
    check(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_id(rank), INDEX, round, 0, NULL, 0), "PtlPut");
}

static void binomial(const struct start *s, unsigned long bytes)
{
    uint32_t bit = 1;
    if (s->rank != 0) {
        await(came[0], 1);
        for (; bit <= s->rank; bit *= 2) {
        }
    }
    for (; s->rank + bit < s->size; bit *= 2) {
        send_to(s->rank + bit, 0, bytes);
    }
}

static void dissemination(const struct start *s, unsigned long bytes)
{
    unsigned round = 0;
    for (uint32_t step = 1; step < s->size; step *= 2, round++) {
        send_to((s->rank + step) % s->size, round, bytes);
        await(came[round], 1);
    }
}

static void ring(const struct start *s, unsigned long bytes)
{
    for (uint32_t i = 0; i + 1 < s->size; i++) {
        send_to((s->rank + 1) % s->size, i, bytes);
        await(came[i], 1);
    }
}

static const struct {
    const char *name;
    void (*run)(const struct start *, unsigned long);
} collectives[] = {{"binomial", binomial}, {"dissemination", dissemination}, {"ring", ring}};

int main(int argc, char **argv)
{
    struct start s;
    unsigned long bytes = 0;
    int which = 3;
    start(&s, 1, ROUNDS);
    if (argc == 3 && number(argv[2], 0, LONGEST, &bytes)) {
        for (which = 0; which < 3 && strcmp(argv[1], collectives[which].name) != 0; which++) {
        }
    }
    if (which == 3) {
        usage(&s, "binomial|dissemination|ring BYTES");
    }
    md = source(&s, from, bytes, PTL_CT_NONE);
    for (unsigned i = 0; i < ROUNDS; i++) {
        came[i] = counter(&s);
        ptl_me_t me = entry(to, sizeof(to), i, came[i]);
        ptl_handle_me_t handle;
        check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    }
    meet(&s);
    uint64_t begin = PtlSimNow();
    collectives[which].run(&s, bytes);
    printf("%llu\n", (unsigned long long)(PtlSimNow() - begin));
    return finish(&s, 0);
}
