/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/ftbcast: all lengths; every set of ranks that may be missing, by entries that
 * are not there; ranks that have really gone; and that each chunk is counted once.
 */
#include "kit.h"

#include "broadcast.h"
#include "ftbcast.h"

struct one {
    unsigned char *memory;
    size_t length;
    uint64_t bits;
    ptl_handle_ct_t ct;
    ptl_handle_me_t entry;
    ptl_handle_hpu_mem_t hpu;
};

static struct one post(struct kit *k, uint32_t root, size_t length, uint64_t bits)
{
    struct one b = {
        .memory = kit_memory(length), .length = length, .bits = bits, .ct = port_ct(&k->p)};
    struct tree_group group = {(uint32_t)k->p.rank, (uint32_t)k->p.size, NULL};
    struct ftbcast_state state;
    ptl_handlers_t h;
    if ((uint32_t)k->p.rank == root) {
        ptest_fill(b.memory, length, (unsigned)bits);
    }
    OK(PtlHPUAllocMem(k->p.ni, ftbcast_memory(length, k->packet), &b.hpu));
    OK(ftbcast_handlers(&group, root, length, bits, k->packet, b.hpu, &state, &h));
    b.entry = kit_entry(k, b.memory, length, bits, 0, b.ct, &h);
    return b;
}

static void finish(struct kit *k, struct one *b)
{
    kit_wait(b->ct, broadcast_messages(b->length, k->packet));
    CHECK_FILL(b->memory, b->length, (unsigned)b->bits);
}

/* When nobody needs it any more; by then all copies have come or never will. */
static void take_away(struct kit *k, struct one *b)
{
    port_unlink(&k->p, b->entry);
    ptl_ct_event_t count;
    OK(PtlCTGet(b->ct, &count));
    CHECK_EQ(count.success, broadcast_messages(b->length, k->packet));
    CHECK_EQ(count.failure, 0);
    OK(PtlHPUFreeMem(b->hpu));
    OK(PtlCTFree(b->ct));
    free(b->memory);
}

static void start(struct kit *k, const struct one *b)
{
    ptl_handle_md_t md = port_quiet_md(&k->p, NULL, 0, 0, PTL_CT_NONE);
    OK(broadcast_start(md, k->p.id[k->p.rank], k->p.pt, b->bits, b->length, k->packet));
    port_release(md);
}

/* Rank 0 broadcasts to all that are alive. */
static void broadcast(struct kit *k, struct one *b, bool alive)
{
    BARRIER();
    if (k->p.rank == 0) {
        start(k, b);
    }
    if (alive) {
        finish(k, b);
    }
    BARRIER();
}

static void all_lengths(int rank, int size)
{
    struct kit k;
    kit_open(&k, rank, size);
    for (int i = 0; i < KIT_SIZES; i++) {
        uint32_t root = (uint32_t)(i % size);
        struct one b = post(&k, root, kit_size(&k, i), 100 + (uint64_t)i);
        BARRIER();
        if ((uint32_t)rank == root) {
            start(&k, &b);
        }
        finish(&k, &b);
        BARRIER();
        take_away(&k, &b);
    }
    kit_close(&k);
}

PTEST(two, 2)
{
    all_lengths(rank, size);
}

PTEST(four, 4)
{
    all_lengths(rank, size);
}

PTEST(seven, 7)
{
    all_lengths(rank, size);
}

PTEST(alone, 1)
{
    all_lengths(rank, size);
}

/* Whoever of the others is missing, as long as they are fewer than the degree, those who
 * are there have it. */
static void every_set(int rank, int size)
{
    struct kit k;
    kit_open(&k, rank, size);
    for (unsigned dead = 0; dead < 1u << size; dead += 2) { /* not the root, rank 0 */
        if ((uint32_t)__builtin_popcount(dead) >= ftbcast_degree((uint32_t)size)) {
            continue;
        }
        struct one b = {0};
        bool alive = (dead >> rank & 1) == 0;
        if (alive) {
            b = post(&k, 0, 2 * k.packet, 1000 + dead);
        }
        broadcast(&k, &b, alive);
        if (alive) {
            take_away(&k, &b);
        }
    }
    kit_close(&k);
}

PTEST(any_missing_of_five, 5)
{
    every_set(rank, size);
}

PTEST(any_missing_of_eight, 8)
{
    every_set(rank, size);
}

/* Two ranks are gone from the machine's network when it starts. */
PTEST_OWN(gone, 6, "changes the environment")
{
    struct kit k;
    setenv("PINWHEEL_CONNECT_MS", "50", 1);
    kit_open(&k, rank, size);
    bool alive = rank != 1 && rank != 4;
    struct one b = {0};
    if (alive) {
        b = post(&k, 0, 5 * k.packet, 7);
    } else {
        OK(PtlNIFini(k.p.ni));
        PtlFini();
    }
    broadcast(&k, &b, alive);
    if (alive) {
        ptl_event_t e;
        while (PtlEQGet(k.p.eq, &e) == PTL_OK) { /* puts to the two */
            CHECK_EQ(e.type, PTL_EVENT_SEND);
            CHECK_EQ(e.ni_fail_type, PTL_NI_UNDELIVERABLE);
        }
        OK(PtlNIFini(k.p.ni));
        PtlFini();
    }
}

PTEST(refused, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct tree_group group = {(uint32_t)rank, 2, NULL};
    struct ftbcast_state state;
    ptl_handlers_t h;
    INVALID(ftbcast_handlers(&group, 2, 8, 1, k.packet, PTL_HPU_MEM_NONE, &state, &h));
    struct one b = post(&k, 0, 20, 9);
    const struct {
        uint64_t offset, length;
        size_t bytes;
    } bad[] = {{0, 20, 15}, {0, 20, 37}, {0, 20, 35}, {1, 20, 35}, {0, 21, 37}, {~0ull, 20, 17}};
    BARRIER();
    for (size_t i = 0; rank == 0 && i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t chunk[8] = {bad[i].offset, bad[i].length, 0x0101010101010101};
        kit_put_once(&k, chunk, bad[i].bytes, 1, 9, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    if (rank == 0) { /* who is not the root starts nothing */
        kit_put_once(&k, NULL, 0, 1, 9, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&k, NULL, 0, 0, 9, 0, 1, PTL_NI_HANDLER_FAIL);
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (size_t i = 0; rank == 1 && i < 1 + sizeof(bad) / sizeof(bad[0]); i++) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_BYTES(b.memory, 20, 0);
    }
    kit_close(&k);
}
