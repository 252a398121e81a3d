/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ping, answered by a network interface: the program of rank 1 is in a barrier all the time
 * and never sees one.
 *
 *      rank 0 ──put──► NIC of rank 1 ──same bytes──► rank 0
 *
 *      $ pinwheel run -n 2 ./pingpong [BYTES]
 *      $ pinwheel run -n 2 ./pingpong BYTES stored|streamed|rdma|triggered
 *
 * Twice: stored in rank 1's memory and put back from there when all has come, and streamed,
 * each packet put back when it comes. In the second form only in that way, or for comparison
 * without handlers: rank 1's program puts it back (rdma), or triggered puts do; then half of the
 * time of the tenth ping and its answer is printed.
 */
#include "start.h"

#include "pingpong.h"
#include "pinwheel_sim.h"

enum { PINGS = 20, TIMED = 10, LONGEST = 1 << 24 };

/* The ways without handlers are behind those with. */
enum { RDMA = PINGPONG_STREAMED + 1, TRIGGERED, WAYS };

static const char *const way_name[WAYS] = {[PINGPONG_STORED] = "stored",
                                           [PINGPONG_STREAMED] = "streamed",
                                           [RDMA] = "rdma",
                                           [TRIGGERED] = "triggered"};

/* Match bits: of pings 1 to 4, of their answers 11 to 14. */
static ptl_match_bits_t ping_bits(int way)
{
    return 1 + (ptl_match_bits_t)way;
}

/* Rank 1: an entry for each of the ways with handlers, from the first to the last. */
static void serve(const struct start *s, size_t length, enum pingpong_way first,
                  enum pingpong_way last)
{
    for (enum pingpong_way way = first; way <= last; way++) {
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
static int ping(const struct start *s, size_t length, int way)
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

/* Rank 1: what answers without handlers. */
struct server {
    uint8_t *data;
    ptl_handle_ct_t came;
    ptl_handle_md_t md;
};

static struct server serve_plainly(const struct start *s, size_t length, int way)
{
    struct server v = {.data = memory(length), .came = counter(s)};
    ptl_me_t me = entry(v.data, length, ping_bits(way), v.came);
    ptl_handle_me_t handle;
    v.md = source(s, v.data, length, PTL_CT_NONE);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    for (ptl_size_t i = 0; way == TRIGGERED && i < TIMED; i++) {
        check(PtlTriggeredPut(v.md, 0, length, PTL_NO_ACK_REQ, rank_id(0), INDEX,
                              10 + ping_bits(way), 0, NULL, 0, v.came, i + 1),
              "PtlTriggeredPut");
    }
    return v;
}

static void answer(const struct server *v, size_t length, int way)
{
    for (ptl_size_t i = 0; i < TIMED; i++) {
        await(v->came, i + 1);
        check(PtlPut(v->md, 0, length, PTL_NO_ACK_REQ, rank_id(0), INDEX, 10 + ping_bits(way), 0,
                     NULL, 0),
              "PtlPut");
    }
}

/* Rank 0: TIMED pings. Returns half of the time of the last, in ps; 0: other bytes came back. */
static uint64_t time_pings(const struct start *s, size_t length, int way)
{
    uint8_t *out = memory(length), *back = memory(length);
    ptl_handle_ct_t came = counter(s);
    ptl_handle_md_t md = source(s, out, length, PTL_CT_NONE);
    ptl_me_t me = entry(back, length, 10 + ping_bits(way), came);
    ptl_handle_me_t handle;
    uint64_t took = 0;
    me.options |= PTL_ME_EVENT_CT_BYTES; /* a streamed answer has a message for each packet */
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(s); /* both sides have their entries */
    for (size_t i = 0; i < TIMED; i++) {
        memset(out, (int)i + 1, length);
        uint64_t begin = PtlSimNow();
        check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id(1), INDEX, ping_bits(way), 0, NULL, 0),
              "PtlPut");
        await(came, length * (i + 1));
        took = memcmp(out, back, length) == 0 ? PtlSimNow() - begin : 0;
    }
    return took / 2;
}

/* One way, timed. Returns whether other bytes came back. */
static int timed(const struct start *s, size_t length, int way)
{
    uint64_t half = 1;
    if (s->rank == 0) {
        half = time_pings(s, length, way);
        printf("%zu bytes, %s: half of the round trip takes %llu ps\n", length, way_name[way],
               (unsigned long long)half);
    } else if (way <= PINGPONG_STREAMED) {
        serve(s, length, (enum pingpong_way)way, (enum pingpong_way)way);
        meet(s);
    } else {
        struct server v = serve_plainly(s, length, way);
        meet(s);
        if (way == RDMA) {
            answer(&v, length, way);
        }
    }
    return half == 0;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long length = 65536;
    int wrong = 0, way = 0;
    start(&s, 2, 2);
    while (way < WAYS && argc > 2 && strcmp(argv[2], way_name[way]) != 0) {
        way++;
    }
    if (argc > 3 || way == WAYS || (argc > 1 && !number(argv[1], 1, LONGEST, &length))) {
        usage(&s, "[BYTES [stored|streamed|rdma|triggered]]    1 to 16777216 bytes");
    }
    if (argc > 2) {
        return finish(&s, timed(&s, length, way));
    }
    if (s.rank == 1) {
        serve(&s, length, PINGPONG_STORED, PINGPONG_STREAMED);
    }
    meet(&s); /* the entries are there */
    if (s.rank == 0) {
        wrong = ping(&s, length, PINGPONG_STORED) + ping(&s, length, PINGPONG_STREAMED);
    }
    return finish(&s, wrong != 0);
}
