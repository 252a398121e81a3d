/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pi, by all ranks: each integrates 4 / (1 + x²) over its share of [0, 1], the NICs add the
 * shares up on their way through a tree, and every rank gets the same sum, bit by bit. They
 * take four times as many intervals until the sum no longer changes. Then a barrier, which is the
 * same without data: what a rank put before it is there for all behind it.
 *
 *      rank 3 ──► rank 2 ──┐                  ┌──► rank 2 ──► rank 3
 *                 rank 1 ──┴──► rank 0 ───────┴──► rank 1
 *                   contributions                result
 *
 *      $ pinwheel run -n 4 ./allreduce
 */
#include "start.h"

#include <math.h>

#include "allreduce.h"

enum { SUM_UP = 1, SUM_DOWN, BARRIER_UP, BARRIER_DOWN, BOARD };

/* An allreduce, and the number of rounds it has had. */
struct collective {
    struct allreduce a;
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    uint64_t rounds;
};

/* Its two entries: over what this rank contributes, and over what it gets. */
static void open_collective(const struct start *s, struct collective *c, void *mine, void *result)
{
    size_t length = c->a.count * sizeof(double);
    struct allreduce_state up, down;
    ptl_handle_hpu_mem_t hpu;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    c->a.group = (struct tree_group){s->rank, s->size, NULL};
    c->a.packet = s->packet;
    c->md = source(s, NULL, 0, PTL_CT_NONE);
    c->ct = counter(s);
    check(PtlHPUAllocMem(s->ni, allreduce_memory(&c->a), &hpu), "PtlHPUAllocMem");
    check(allreduce_up(&c->a, hpu, &up, &handlers), "allreduce_up");
    ptl_me_t me = entry(mine, length, c->a.up, PTL_CT_NONE);
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    check(allreduce_down(&c->a, &down, &handlers), "allreduce_down");
    me = entry(result, length, c->a.down, c->ct);
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static void round_of(struct collective *c)
{
    check(allreduce_start(&c->a, c->md, INDEX), "allreduce_start");
    await(c->ct, ++c->rounds * allreduce_messages(&c->a));
}

/* This rank's share of the integral, by the middles of so many intervals. */
static double share(const struct start *s, long intervals)
{
    double sum = 0;
    for (long i = s->rank; i < intervals; i += s->size) {
        double x = ((double)i + 0.5) / (double)intervals;
        sum += 4 / (1 + x * x);
    }
    return sum / (double)intervals;
}

/* Each rank's sum on a board at rank 0; behind the barrier all of them are there. */
static int compare(const struct start *s, struct collective *barrier, const double *sum,
                   const double *board)
{
    ptl_handle_ct_t acks = counter(s);
    ptl_handle_md_t md = source(s, sum, sizeof(*sum), acks);
    int others = 0;
    check(PtlPut(md, 0, sizeof(*sum), PTL_CT_ACK_REQ, rank_id(0), INDEX, BOARD,
                 s->rank * sizeof(*sum), NULL, 0),
          "PtlPut");
    await(acks, 1);
    round_of(barrier);
    for (uint32_t rank = 0; s->rank == 0 && rank < s->size; rank++) {
        others += memcmp(&board[rank], sum, sizeof(*sum)) != 0;
    }
    if (s->rank == 0) {
        printf("%u ranks, %d with other bits\n", s->size, others);
    }
    return others != 0 || fabs(*sum - M_PI) > 1e-10;
}

int main(int argc, char **argv)
{
    static double mine, sum;
    struct start s;
    struct collective add = {
        .a = {.op = PTL_SUM, .type = PTL_DOUBLE, .count = 1, .up = SUM_UP, .down = SUM_DOWN}};
    struct collective barrier = {
        .a = {.op = PTL_SUM, .type = PTL_DOUBLE, .up = BARRIER_UP, .down = BARRIER_DOWN}};
    ptl_handle_me_t handle;
    double before;
    start(&s, 1, 0);
    if (argc != 1) {
        usage(&s, "");
    }
    double *board = memory(s.size * sizeof(*board));
    ptl_me_t me = entry(board, s.size * sizeof(*board), BOARD, PTL_CT_NONE);
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    open_collective(&s, &add, &mine, &sum);
    open_collective(&s, &barrier, NULL, NULL);
    meet(&s); /* the entries are there, at all ranks */
    long intervals = 8;
    do {
        before = sum;
        intervals *= 4;
        mine = share(&s, intervals);
        round_of(&add);
        if (s.rank == 0) {
            printf("%8ld intervals: %.12f\n", intervals, sum);
        }
    } while (fabs(sum - before) > 1e-11);
    return finish(&s, compare(&s, &barrier, &sum, board));
}
