/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ping, answered by a network interface: the program of rank 1 is in a barrier all the time
 * and never sees one.
 *
 *      rank 0 ──put──► NIC of rank 1 ──same bytes──► rank 0
 *
 *      $ pinwheel run -n 2 ./pingpong [BYTES]
 *
 * Twice: stored in rank 1's memory and put back from there when all has come, and streamed,
 * each packet put back when it comes.
 */
#include "start.h"

#include "pingpong.h"

enum { PINGS = 20, LONGEST = 1 << 24 };

static const char *const way_name[] = {
    [PINGPONG_STORED] = "stored", [PINGPONG_STREAMED] = "streamed"};

/* Match bits: of pings 1 and 2, of their answers 11 and 12. */
static ptl_match_bits_t ping_bits(enum pingpong_way way)
{
    return 1 + (ptl_match_bits_t)way;
}

/* Rank 1: an entry for each way. */
static void serve(const struct start *s, size_t length)
{
    for (enum pingpong_way way = PINGPONG_STORED; way <= PINGPONG_STREAMED; way++) {
        struct pingpong_state state;
        ptl_handlers_t handlers;
        ptl_handle_me_t handle;
        size_t stored = way == PINGPONG_STORED ? length : 0;
        ptl_me_t me = entry(memory(stored), stored, ping_bits(way), PTL_CT_NONE);
        pingpong_handlers(way, length, s->packet, 10 + ping_bits(way), &state, &handlers);
        check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    }
}

/* Rank 0: pings one after the other. Returns how many came back with other bytes. */
static int ping(const struct start *s, size_t length, enum pingpong_way way)
{
    uint8_t *out = memory(length), *back = memory(length);
    ptl_handle_ct_t came = counter(s);
    ptl_handle_md_t md = source(s, out, length, PTL_CT_NONE);
    ptl_me_t me = entry(back, length, 10 + ping_bits(way), came);
    ptl_handle_me_t handle;
    double best = 1e9, sum = 0;
    int wrong = 0;
    me.options |= PTL_ME_EVENT_CT_BYTES; /* a streamed answer has a message for each packet */
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    for (int i = 0; i < PINGS; i++) {
        for (size_t byte = 0; byte < length; byte++) {
            out[byte] = (uint8_t)(byte * 7 + byte / 256 + (size_t)i);
        }
        double begin = microseconds();
        check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id(1), INDEX, ping_bits(way), 0, NULL, 0),
              "PtlPut");
        await(came, length * (size_t)(i + 1));
        double took = microseconds() - begin;
        sum += took;
        best = took < best ? took : best;
        wrong += memcmp(out, back, length) != 0;
    }
    printf("%zu bytes, %s: %d pings answered by rank 1's NIC, %d wrong; %.1f us at best, "
           "%.1f on average\n",
           length, way_name[way], PINGS, wrong, best, sum / PINGS);
    return wrong;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long length = 65536;
    int wrong = 0;
    start(&s, 2, 2);
    if (argc > 2 || (argc == 2 && !number(argv[1], 1, LONGEST, &length))) {
        usage(&s, "[BYTES]    1 to 16777216");
    }
    if (s.rank == 1) {
        serve(&s, length);
    }
    meet(&s); /* the entries are there */
    if (s.rank == 0) {
        wrong = ping(&s, length, PINGPONG_STORED) + ping(&s, length, PINGPONG_STREAMED);
    }
    return finish(&s, wrong != 0);
}
