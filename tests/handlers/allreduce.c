/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/allreduce: all lengths, several operations and types, several numbers of
 * ranks, against a plain reduction in the order of the tree, so that sums of reals must
 * agree bit by bit; many rounds back to back with ranks out of step; barriers.
 */
#include "kit.h"

#include "allreduce.h"

struct one {
    struct allreduce a;
    void *mine, *result;
    ptl_handle_hpu_mem_t memory;
    ptl_handle_me_t up, down;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    uint64_t expected; /* messages of all rounds */
    size_t length;
};

static struct one open_one(struct kit *k, ptl_op_t op, ptl_datatype_t type, size_t count,
                           uint64_t bits)
{
    struct allreduce_state state;
    ptl_handlers_t h;
    struct one o = {.a = {.group = {(uint32_t)k->p.rank, (uint32_t)k->p.size,
                                    port_logical(&k->p) ? NULL : k->p.id},
                          .op = op,
                          .type = type,
                          .count = count,
                          .up = bits,
                          .down = bits + 1,
                          .packet = k->packet},
                    .length = count * combine_size(type)};
    o.mine = kit_memory(o.length);
    o.result = kit_memory(o.length);
    o.ct = port_ct(&k->p);
    o.md = port_quiet_md(&k->p, NULL, 0, 0, PTL_CT_NONE);
    OK(PtlHPUAllocMem(k->p.ni, allreduce_memory(&o.a), &o.memory));
    OK(allreduce_up(&o.a, o.memory, &state, &h));
    o.up = kit_entry(k, o.mine, o.length, o.a.up, 0, PTL_CT_NONE, &h);
    OK(allreduce_down(&o.a, &state, &h));
    o.down = kit_entry(k, o.result, o.length, o.a.down, 0, o.ct, &h);
    return o;
}

static void close_one(struct kit *k, struct one *o)
{
    BARRIER(); /* nobody needs this rank any more */
    port_unlink(&k->p, o->up);
    port_unlink(&k->p, o->down);
    OK(PtlHPUFreeMem(o->memory));
    OK(PtlCTFree(o->ct));
    port_release(o->md);
    free(o->mine);
    free(o->result);
}

static void start(struct kit *k, struct one *o)
{
    OK(allreduce_start(&o->a, o->md, k->p.pt));
    o->expected += allreduce_messages(&o->a);
}

/* What a rank contributes in a round. Reals that do not add up the same in any order. */
static void contribution(void *buffer, const struct one *o, uint32_t rank, int round)
{
    uint64_t r = rank * 7919 + (uint64_t)round;
    for (size_t i = 0; i < o->a.count; i++) {
        uint64_t n = splitmix(&r);
        if (o->a.type == PTL_DOUBLE) {
            ((double *)buffer)[i] = (double)(int64_t)n / 3e9;
        } else if (o->a.type == PTL_FLOAT_COMPLEX) {
            ((float *)buffer)[2 * i] = (float)(n % 1000) / 300;
            ((float *)buffer)[2 * i + 1] = (float)(n >> 40) / 3e6f;
        } else {
            memcpy((char *)buffer + i * combine_size(o->a.type), &n, combine_size(o->a.type));
        }
    }
}

/* The subtree of a rank, whose root is rank 0. */
static void subtree(void *into, const struct one *o, uint32_t rank, int round)
{
    void *other = kit_memory(o->length);
    contribution(into, o, rank, round);
    for (uint32_t step = 1; rank + step < o->a.group.size && (rank & step) == 0; step *= 2) {
        subtree(other, o, rank + step, round);
        combine(o->a.op, o->a.type, into, other, NULL, o->a.count);
    }
    free(other);
}

static void check(const struct one *o, int round)
{
    void *want = kit_memory(o->length);
    kit_wait(o->ct, o->expected);
    subtree(want, o, 0, round);
    CHECK_SAME(o->result, want, o->length);
    free(want);
}

static void lengths(int rank, int size, unsigned kind)
{
    struct kit k;
    static const struct {
        ptl_op_t op;
        ptl_datatype_t type;
    } kinds[] = {{PTL_SUM, PTL_DOUBLE},
                 {PTL_MAX, PTL_INT32_T},
                 {PTL_BXOR, PTL_UINT8_T},
                 {PTL_PROD, PTL_FLOAT_COMPLEX},
                 {PTL_MIN, PTL_UINT64_T}};
    kit_open_kind(&k, kind, rank, size);
    for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
        for (int i = 0; i < KIT_SIZES; i++) {
            size_t count = kit_size(&k, i) / combine_size(kinds[n].type);
            struct one o = open_one(&k, kinds[n].op, kinds[n].type, count, 10);
            contribution(o.mine, &o, (uint32_t)rank, i);
            BARRIER();
            start(&k, &o);
            check(&o, i);
            close_one(&k, &o);
        }
    }
    kit_close(&k);
}

PTEST(two, 2)
{
    lengths(rank, size, KIND_ML);
}

PTEST(four, 4)
{
    lengths(rank, size, KIND_ML);
}

PTEST(six_by_physical_ids, 6)
{
    lengths(rank, size, KIND_MP);
}

PTEST(alone, 1)
{
    lengths(rank, size, KIND_ML);
}

/* Rounds follow each other without a barrier; ranks are late in turn. Two allreduces are
 * under way at once, and the second works in place. */
PTEST(rounds, 4)
{
    enum { ROUNDS = 40 };
    struct kit k;
    kit_open(&k, rank, size);
    struct one a = open_one(&k, PTL_SUM, PTL_DOUBLE, 2 * k.packet / 8 + 3, 10);
    struct one b = open_one(&k, PTL_SUM, PTL_UINT64_T, 5, 20);
    BARRIER();
    for (int round = 0; round < ROUNDS; round++) {
        contribution(a.mine, &a, (uint32_t)rank, round);
        contribution(b.mine, &b, (uint32_t)rank, round);
        if (round % size == rank) {
            ptest_sleep_ms(1);
        }
        start(&k, &a);
        start(&k, &b);
        check(&b, round);
        check(&a, round);
    }
    close_one(&k, &a);
    close_one(&k, &b);
    kit_close(&k);
}

PTEST(in_place, 3)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct one o = open_one(&k, PTL_SUM, PTL_INT32_T, 3 * k.packet, 10);
    struct allreduce_state state;
    ptl_handlers_t h;
    port_unlink(&k.p, o.down);
    OK(allreduce_down(&o.a, &state, &h));
    free(o.result);
    o.result = o.mine;
    o.down = kit_entry(&k, o.result, o.length, o.a.down, 0, o.ct, &h);
    contribution(o.mine, &o, (uint32_t)rank, 1);
    BARRIER();
    start(&k, &o);
    check(&o, 1);
    o.result = NULL;
    close_one(&k, &o);
    kit_close(&k);
}

/* Nobody is through before all have come. */
PTEST(barrier, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct one o = open_one(&k, PTL_SUM, PTL_UINT8_T, 0, 10);
    BARRIER();
    for (int round = 1; round <= 100; round++) {
        if (round % 7 == rank) {
            ptest_sleep_ms(1);
        }
        ptest_show(0, (uint64_t)round);
        start(&k, &o);
        kit_wait(o.ct, o.expected);
        for (int r = 0; r < size; r++) {
            CHECK(ptest_look(r, 0) >= (uint64_t)round);
        }
    }
    close_one(&k, &o);
    kit_close(&k);
}

PTEST(refused, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct allreduce_state state;
    ptl_handlers_t h;
    struct one o = open_one(&k, PTL_SUM, PTL_INT32_T, 3, 10);
    struct allreduce bad = o.a;
    bad.op = PTL_SWAP;
    INVALID(allreduce_down(&bad, &state, &h));
    bad = o.a;
    bad.op = PTL_BOR;
    bad.type = PTL_FLOAT;
    INVALID(allreduce_down(&bad, &state, &h));
    bad = o.a;
    bad.group.rank = 2;
    INVALID(allreduce_down(&bad, &state, &h));
    bad = o.a;
    bad.count = UINT64_MAX / 2;
    INVALID(allreduce_up(&bad, o.memory, &state, &h));
    CHECK_EQ(allreduce_memory(&bad), UINT64_MAX);
    BARRIER();
    if (rank == 0) {
        const struct {
            uint64_t chunk, slot;
            size_t bytes;
        } wrong[] = {{0, 1, 8}, {0, 1, 24}, {0, 1, 32}, {1, 1, 28}, {~0ull, 1, 28}, {0, 0, 28}};
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
            uint64_t part[4] = {wrong[i].chunk, wrong[i].slot};
            kit_put_once(&k, part, wrong[i].bytes, 1, o.a.up, 0, 0, PTL_NI_HANDLER_FAIL);
        }
        kit_put_once(&k, NULL, 0, 1, o.a.up, 0, 1, PTL_NI_HANDLER_FAIL);
    } else {
        for (int i = 0; i < 7; i++) {
            EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        }
    }
    close_one(&k, &o);
    kit_close(&k);
}
