/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that ask in a circle: each rank puts to the next one, whose handler asks the rank behind
 * it (get, fetch-atomic, swap) at an entry without handlers while the other way round the same goes
 * on. An ask passes the messages that wait for its answer, so that all handlers get what they ask
 * for, once.
 *
 *      rank 0 ──put──► rank 1 ──put──► rank 2 ──put──► rank 0
 *                        └── its handler asks rank 2    └── asks rank 1 ...
 *
 * In a circle of two each one asks whose message it has; in one of one it asks itself. A case has a
 * process for each rank of its circle, but `every_size`, whose 16 form one of 1, of 2 and so on.
 */
#include "kit.h"

#include "circle_handlers.h"

enum { ROUNDS = 12 * CIRCLE_KINDS }; /* messages of a rank in a small circle */

struct circle {
    struct kit k;
    uint64_t table[CIRCLE_WORDS];
    ptl_handle_me_t asking, asked;
    ptl_handlers_t h;
};

/* The entries of a rank of a circle of the first `size` ranks. */
static void enter(struct circle *c, int rank, int size)
{
    struct circle_state state = {.to = (uint32_t)((rank + 1) % size)};
    memset(c->table, 0, sizeof(c->table));
    c->table[CIRCLE_CONSTANT] = 1000u + (uint64_t)rank;
    c->h = circle_asking;
    OK(PtlHPUAllocMem(c->k.p.ni, sizeof(state), &c->h.hpu_mem));
    c->h.hpu_initial_state = &state;
    c->asking = kit_entry(&c->k, NULL, 0, CIRCLE_BITS, 0, PTL_CT_NONE, &c->h);
    c->asked = kit_entry(&c->k, c->table, sizeof(c->table), CIRCLE_TABLE, 0, PTL_CT_NONE, NULL);
}

static void leave(struct circle *c)
{
    port_unlink(&c->k.p, c->asking);
    port_unlink(&c->k.p, c->asked);
    OK(PtlHPUFreeMem(c->h.hpu_mem));
}

/* Each handler has had what it asked for, once. */
static void check_answers(struct circle *c, uint64_t rounds)
{
    struct circle_state s;
    OK(PtlHPURead(c->h.hpu_mem, 0, &s, sizeof(s)));
    CHECK_EQ(s.unknown, 0);
    CHECK_EQ(s.other, 0);
    CHECK_EQ(s.wrong, 0);
    CHECK_EQ(s.done, rounds / CIRCLE_KINDS * (CIRCLE_KINDS + 1));
    CHECK_EQ(s.added, rounds / CIRCLE_KINDS);
    CHECK_EQ(c->table[CIRCLE_COUNT], rounds / CIRCLE_KINDS);
    CHECK_EQ(c->table[CIRCLE_OWNER], 0);
}

/* One message after the other: each waits for the handler's end. */
static void take_turns(struct circle *c, int rank, int size, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        kit_put_once(&c->k, c->table, 8, (rank + 1) % size, CIRCLE_BITS, 0, i, PTL_NI_OK);
    }
}

/* All messages at once: the rings are full of them, and asks pass. */
static void flood(struct circle *c, int rank, int size, unsigned rounds)
{
    struct kit_sender s = kit_sender(&c->k, c->table, sizeof(c->table));
    for (unsigned i = 0; i < rounds; i++) {
        kit_put(&s, 0, i % 2 == 0 ? 8 : 0, (rank + 1) % size, CIRCLE_BITS, 0, i);
    }
    kit_flush(&s);
    kit_release(&s);
}

typedef void circle_way(struct circle *c, int rank, int size, unsigned rounds);

/* The first `size` ranks go round; the others wait for them. */
static void go_round(struct circle *c, circle_way *way, int rank, int size, unsigned rounds)
{
    bool member = rank < size;
    if (member) {
        enter(c, rank, size);
    }
    BARRIER();
    if (member) {
        way(c, rank, size, rounds);
    }
    BARRIER();
    if (member) {
        check_answers(c, rounds);
    }
    BARRIER();
    if (member) {
        leave(c);
    }
}

static void one_size(circle_way *way, int rank, int size, unsigned rounds)
{
    struct circle c;
    kit_open(&c.k, rank, size);
    go_round(&c, way, rank, size, rounds);
    kit_close(&c.k);
}

#define CIRCLE(size_)                                                                              \
    PTEST(turns_##size_, size_)                                                                    \
    {                                                                                              \
        one_size(take_turns, rank, size, ROUNDS);                                                  \
    }                                                                                              \
    PTEST(flood_##size_, size_)                                                                    \
    {                                                                                              \
        one_size(flood, rank, size, 4 * ROUNDS);                                                   \
    }
CIRCLE(1)
CIRCLE(2)
CIRCLE(3)

PTEST(every_size, PTEST_RANKS)
{
    struct circle c;
    kit_open(&c.k, rank, size);
    for (int members = 1; members <= size; members++) {
        go_round(&c, take_turns, rank, members, CIRCLE_KINDS);
        go_round(&c, flood, rank, members, 4 * CIRCLE_KINDS);
    }
    kit_close(&c.k);
}
