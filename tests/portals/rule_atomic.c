/* SPDX-License-Identifier: BSD-3-Clause */
/* 3.15: what atomics promise besides their arithmetic: atomicity, sizes, events. */
#include "rule_kit.h"

#include <stdatomic.h>
#include <string.h>

enum { SIZE = 8192 };
static unsigned char from[SIZE], to[SIZE], back[SIZE];

static ptl_handle_me_t open_target(struct scene *s, void *start, ptl_size_t length)
{
    return suite_target(s, PTL_PRIORITY_LIST, start, length,
                        PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE, NULL);
}

/* ---- Several at one place -------------------------------------------------- */

enum { ADDS = 1500 };
struct ground {
    uint64_t sum, fetched, swapped, cpu;
    double real;
    uint32_t small[2];
    uint64_t wide[4];
};
static struct ground ground;

/* Every member, the target too, adds to the same words. */
static void add_together(struct scene *s)
{
    static struct {
        uint64_t one, zero, fetched;
        double real;
        uint32_t small[2];
    } mine = {1, 0, 0, 1.0, {1, 2}};
    static bool seen[CROWD * ADDS];
    if (s->target) {
        open_target(s, &ground, sizeof(ground));
    }
    crowd_step(s);
    ptl_handle_md_t md =
        suite_md_with(s, &mine, sizeof(mine), PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
    ptl_handle_md_t in = rule_md(s, &mine.fetched, 8);
    ptl_size_t acks = 0;
    for (int i = 0; i < ADDS; i++) {
        OK(PtlAtomic(md, 0, 8, PTL_CT_ACK_REQ, crowd.id[0], SUITE_PT, 0,
                     offsetof(struct ground, sum), NULL, 0, PTL_SUM, PTL_UINT64_T));
        OK(PtlAtomic(md, 24, 8, PTL_CT_ACK_REQ, crowd.id[0], SUITE_PT, 0,
                     offsetof(struct ground, real), NULL, 0, PTL_SUM, PTL_DOUBLE));
        OK(PtlAtomic(md, 32, 8, PTL_CT_ACK_REQ, crowd.id[0], SUITE_PT, 0,
                     offsetof(struct ground, small), NULL, 0, PTL_SUM, PTL_UINT32_T));
        acks += 3;
        if (i % 10 == 0) {
            OK(PtlFetchAtomic(in, 0, md, 0, 8, crowd.id[0], SUITE_PT, 0,
                              offsetof(struct ground, fetched), NULL, 0, PTL_SUM, PTL_UINT64_T));
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(8));
            CHECK(mine.fetched < CROWD * ADDS && !seen[mine.fetched]);
            seen[mine.fetched] = true;
        }
        if (s->target) { /* PTL_COHERENT_ATOMICS: the processor, too */
            __atomic_fetch_add(&ground.cpu, 1, __ATOMIC_RELAXED);
        }
        OK(PtlAtomic(md, 0, 8, PTL_CT_ACK_REQ, crowd.id[0], SUITE_PT, 0,
                     offsetof(struct ground, cpu), NULL, 0, PTL_SUM, PTL_UINT64_T));
        acks++;
    }
    EXPECT_CT(s->mdct, acks, 0);
    crowd_step(s);
    if (s->target) {
        uint64_t all = (uint64_t)crowd.size * ADDS;
        OK(PtlAtomicSync());
        CHECK_EQ(ground.sum, all);
        CHECK_EQ(ground.fetched, all / 10);
        CHECK(ground.real == (double)all);
        CHECK_EQ(ground.small[0], all);
        CHECK_EQ(ground.small[1], 2 * all);
        CHECK(s->limits.features & PTL_COHERENT_ATOMICS);
        CHECK_EQ(ground.cpu, all + ADDS);
    }
}

CASE(
    atomic_against_each_other, ALL_KINDS, BARE,
    "3.15: atomics of several processes, and of the target itself, on the same words lose nothing; "
    "fetches see each value once; with PTL_COHERENT_ATOMICS the processor may take part")
{
    crowd_run(s, 4, 0, 0, NULL, add_together);
}

/* Each member owns the lock for a while and adds to a plain word behind it. */
static void lock_together(struct scene *s)
{
    enum { TURNS = 40 };
    static uint64_t mine, zero, got, word;
    if (s->target) {
        open_target(s, &ground, sizeof(ground));
    }
    crowd_step(s);
    ptl_handle_md_t put = rule_md(s, &mine, 8), none = rule_md(s, &zero, 8),
                    in = rule_md(s, &got, 8), plain = rule_md(s, &word, 8);
    mine = (uint64_t)crowd.rank + 1;
    for (int i = 0; i < TURNS; i++) {
        do { /* 0 to mine */
            OK(PtlSwap(in, 0, put, 0, 8, crowd.id[0], SUITE_PT, 0, offsetof(struct ground, swapped),
                       NULL, 0, &zero, PTL_CSWAP, PTL_UINT64_T));
            EXPECT(s->mdeq, PTL_EVENT_REPLY);
        } while (got != 0);
        OK(PtlGet(plain, 0, 8, crowd.id[0], SUITE_PT, 0, offsetof(struct ground, sum), NULL));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        word++;
        OK(PtlPut(plain, 0, 8, PTL_ACK_REQ, crowd.id[0], SUITE_PT, 0, offsetof(struct ground, sum),
                  NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK);
        OK(PtlSwap(in, 0, none, 0, 8, crowd.id[0], SUITE_PT, 0, offsetof(struct ground, swapped),
                   NULL, 0, &mine, PTL_CSWAP, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY);
        CHECK_EQ(got, mine);
    }
    crowd_step(s);
    if (s->target) {
        CHECK_EQ(ground.sum, (uint64_t)crowd.size * TURNS);
    }
}

CASE(atomic_lock, ALL_KINDS, BARE, "3.15: PTL_CSWAP makes a lock between processes")
{
    crowd_run(s, 3, 0, 0, NULL, lock_together);
}

/* Values of 32 bytes are swapped; none is ever torn. */
static void swap_together(struct scene *s)
{
    enum { TURNS = 300 };
    static long double mine[2], got[2]; /* one PTL_LONG_DOUBLE_COMPLEX */
    _Static_assert(sizeof(mine) == 32, "the widest type");
    if (s->target) {
        open_target(s, ground.wide, sizeof(ground.wide));
    }
    crowd_step(s);
    ptl_handle_md_t put = rule_md(s, mine, 32), in = rule_md(s, got, 32);
    for (int i = 0; i < TURNS; i++) {
        mine[0] = mine[1] = (long double)(i * CROWD + crowd.rank);
        OK(PtlSwap(in, 0, put, 0, 32, crowd.id[0], SUITE_PT, 0, 0, NULL, 0, NULL, PTL_SWAP,
                   PTL_LONG_DOUBLE_COMPLEX));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(32));
        CHECK(got[0] == got[1]);
    }
}

CASE(atomic_widest, ALL_KINDS, BARE, "3.15: an element of the widest type is atomic as a whole")
{
    crowd_run(s, 3, 0, 0, NULL, swap_together);
}

/* ---- Sizes ----------------------------------------------------------------- */

CASE(
    atomic_sizes, ALL_KINDS, SELF | PAIR,
    "3.15: an atomic has up to max_atomic_size bytes, a fetch or swap up to max_fetch_atomic_size, "
    "in whole elements; more is an error of the call")
{
    memset(to, 0, SIZE);
    if (s->target) {
        open_target(s, to, SIZE);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE), in = rule_md(s, back, SIZE);
        ptl_size_t most = s->limits.max_atomic_size, fetch = s->limits.max_fetch_atomic_size;
        CHECK(most <= SIZE / 2 && fetch <= SIZE / 2);
        suite_fill(from, SIZE, 3);
        OK(PtlAtomic(md, 0, most, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_BOR,
                     PTL_UINT8_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(most));
        OK(PtlFetchAtomic(in, 0, md, 0, fetch, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_BOR,
                          PTL_UINT8_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(fetch));
        CHECK_FILL(back, fetch < most ? fetch : most, 3);
        OK(PtlSwap(in, 0, md, 0, fetch, s->to, SUITE_PT, 0, 0, NULL, 0, NULL, PTL_SWAP,
                   PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(fetch));
        INVALID(PtlAtomic(md, 0, most + 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                          PTL_UINT64_T));
        INVALID(PtlFetchAtomic(in, 0, md, 0, fetch + 8, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                               PTL_UINT64_T));
        INVALID(PtlAtomic(md, 0, 12, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM,
                          PTL_UINT64_T));
        uint64_t operand = 0;
        INVALID(PtlSwap(in, 0, md, 0, 16, s->to, SUITE_PT, 0, 0, NULL, 0, &operand, PTL_CSWAP,
                        PTL_UINT64_T));
        INVALID(PtlSwap(in, 0, md, 0, 16, s->to, SUITE_PT, 0, 0, NULL, 0, &operand, PTL_MSWAP,
                        PTL_UINT64_T));
        NO_EVENT(s->mdeq);
    }
}

CASE(atomic_truncates, ALL_KINDS, SELF | PAIR,
     "3.15: an entry that ends within an element is left as it is there; mlength counts whole ones")
{
    memset(to, 0, SIZE);
    if (s->target) {
        open_target(s, to, 20);
    }
    STEP();
    if (s->initiator) {
        memset(from, 0xff, SIZE);
        OK(PtlAtomic(rule_md(s, from, SIZE), 0, 64, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0,
                     PTL_BOR, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(16));
        OK(PtlFetchAtomic(rule_md(s, back, SIZE), 0, rule_md(s, from, SIZE), 0, 8, s->to, SUITE_PT,
                          0, 16, NULL, 0, PTL_BOR, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(0));
    }
    STEP();
    if (s->target) {
        CHECK_BYTES(to, 16, 0xff);
        CHECK_BYTES(to + 16, 48, 0);
    }
}

CASE(atomic_empty, ALL_KINDS, SELF | PAIR,
     "3.15: an atomic of no bytes matches, is counted and acknowledged, and changes nothing")
{
    if (s->target) {
        memset(to, 7, SIZE);
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE,
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, NULL, 0);
        OK(PtlAtomic(md, 0, 0, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(0));
        OK(PtlFetchAtomic(md, 0, md, 0, 0, s->to, SUITE_PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(0));
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_ATOMIC, .rlength = IS(0));
        EXPECT(s->eq, PTL_EVENT_FETCH_ATOMIC, .rlength = IS(0));
        EXPECT_CT(s->ct, 2, 0);
        CHECK_BYTES(to, SIZE, 7);
    }
}

/* ---- Events ---------------------------------------------------------------- */

CASE(atomic_events, ALL_KINDS, SELF | PAIR,
     "3.13: atomics are told as ATOMIC, fetches and swaps as FETCH_ATOMIC, with operation and type")
{
    memset(to, 0, SIZE);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, SIZE, PTL_ME_OP_PUT | PTL_ME_OP_GET, (void *)4);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = rule_md(s, from, SIZE), in = rule_md(s, back, SIZE);
        uint32_t operand = 0;
        OK(PtlAtomic(md, 0, 16, PTL_ACK_REQ, s->to, SUITE_PT, 11, 8, NULL, 21, PTL_MAX,
                     PTL_INT16_T));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(16), .remote_offset = IS(8));
        OK(PtlFetchAtomic(in, 0, md, 0, 24, s->to, SUITE_PT, 12, 16, NULL, 22, PTL_BAND,
                          PTL_UINT64_T));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(24), .remote_offset = IS(16));
        OK(PtlSwap(in, 0, md, 0, 4, s->to, SUITE_PT, 13, 4, NULL, 23, &operand, PTL_CSWAP_LE,
                   PTL_FLOAT));
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(4));
    }
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_ATOMIC, .op = IS(PTL_MAX), .datatype = IS(PTL_INT16_T),
               .start = IS(to + 8), .rlength = IS(16), .mlength = IS(16), .hdr_data = IS(21),
               .remote_offset = IS(8), .user_ptr = IS(4), .initiator = &s->from);
        EXPECT(s->eq, PTL_EVENT_FETCH_ATOMIC, .op = IS(PTL_BAND), .datatype = IS(PTL_UINT64_T),
               .start = IS(to + 16), .rlength = IS(24), .hdr_data = IS(22));
        EXPECT(s->eq, PTL_EVENT_FETCH_ATOMIC, .op = IS(PTL_CSWAP_LE), .datatype = IS(PTL_FLOAT),
               .start = IS(to + 4), .rlength = IS(4), .hdr_data = IS(23));
    }
}

CASE(atomic_reply_means_done, ALL_KINDS, SELF | PAIR,
     "3.15: behind the REPLY of a fetch its result stands in the target's memory")
{
    static uint64_t cell, one, got;
    cell = 0;
    one = 1;
    if (s->target) {
        open_target(s, &cell, 8);
    }
    STEP();
    for (uint64_t i = 1; i <= 10; i++) {
        if (s->initiator) {
            OK(PtlFetchAtomic(rule_md(s, &got, 8), 0, rule_md(s, &one, 8), 0, 8, s->to, SUITE_PT, 0,
                              0, NULL, 0, PTL_SUM, PTL_UINT64_T));
            EXPECT(s->mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(got, i - 1);
        }
        STEP();
        if (s->target) {
            OK(PtlAtomicSync());
            CHECK_EQ(cell, i);
        }
        STEP();
    }
}

CASE(atomic_sync, ALL_KINDS, SELF,
     "3.15: PtlAtomicSync may be called at any time, as often as wanted")
{
    for (int i = 0; i < 100; i++) {
        OK(PtlAtomicSync());
    }
}
