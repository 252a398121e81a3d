/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/strided against a loop that unpacks byte by byte: blocks of all lengths
 * around packets, any stride, messages that end anywhere, several of them at once.
 */
#include "kit.h"

#include "strided.h"

enum { BITS = 1 };

static void unpack(const struct strided_state *s, const unsigned char *packed, size_t length,
                   unsigned char *memory)
{
    for (size_t i = 0; i < length; i++) {
        memory[(int64_t)s->start + (int64_t)(i / s->block) * s->stride + (int64_t)(i % s->block)] =
            packed[i];
    }
}

/* A layout for at least `length` bytes; memory for it is *size. */
static struct strided_state layout_of(size_t length, size_t block, size_t gap, bool down,
                                      size_t *size)
{
    size_t blocks = (length + block - 1) / block + 1;
    struct strided_state s = {.block = block, .blocks = blocks};
    *size = 7 + blocks * (block + gap) + 5;
    s.stride = down ? -(int64_t)(block + gap) : (int64_t)(block + gap);
    s.start = 7 + (down ? (blocks - 1) * (block + gap) : 0);
    return s;
}

static void try_layout(struct kit *k, size_t length, size_t block, size_t gap, bool down)
{
    size_t size;
    struct strided_state s = layout_of(length, block, gap, down, &size);
    unsigned char *packed = kit_memory(length);
    ptest_fill(packed, length, (unsigned)(length + block));
    if (k->p.rank == 1) {
        unsigned char *memory = kit_memory(size), *want = kit_memory(size);
        ptl_handlers_t h;
        memset(memory, 0xa5, size);
        memset(want, 0xa5, size);
        OK(strided_handlers(&s, size, &h));
        ptl_handle_me_t entry = kit_entry(k, memory, size, BITS, 0, PTL_CT_NONE, &h);
        BARRIER();
        BARRIER();
        unpack(&s, packed, length, want);
        CHECK_SAME(memory, want, size);
        port_unlink(&k->p, entry);
        free(memory);
        free(want);
    } else {
        BARRIER();
        kit_put_once(k, packed, length, 1, BITS, 0, 0, PTL_NI_OK);
        BARRIER();
    }
    free(packed);
}

PTEST_LIMIT(layouts, 2, 120)
{
    struct kit k;
    kit_open(&k, rank, size);
    for (int i = 0; i < KIT_SIZES; i++) {
        size_t length = kit_size(&k, i);
        const size_t blocks[] = {
            1, 3, 64, 100, k.packet - 1, k.packet, k.packet + 1, 3 * k.packet + 7};
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
            if (length / blocks[b] < 200000) {
                try_layout(&k, length, blocks[b], blocks[b], false);
                try_layout(&k, length, blocks[b], 13, true);
                try_layout(&k, length, blocks[b], 0, false);
            }
        }
    }
    kit_close(&k);
}

/* The same layout for all: what several senders put at once ends as what one of them put,
 * where all put the same; and each in a column of its own. */
PTEST(columns, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    size_t block = 100, length = 20 * k.packet + 3;
    size_t blocks = (length + block - 1) / block, row = 3 * block, total = blocks * row;
    unsigned char *packed = kit_memory(length), *memory = kit_memory(total),
                  *want = kit_memory(total);
    ptl_handle_ct_t ct = port_ct(&k.p);
    for (int column = 0; rank == 3 && column < 3; column++) {
        struct strided_state s = {.start = (uint64_t)column * block,
                                  .stride = (int64_t)row,
                                  .block = block,
                                  .blocks = blocks};
        ptl_handlers_t h;
        OK(strided_handlers(&s, total, &h));
        kit_entry(&k, memory, total, (uint64_t)column, 0, ct, &h);
        ptest_fill(packed, length, (unsigned)column);
        unpack(&s, packed, length, want);
    }
    BARRIER();
    if (rank < 3) {
        struct kit_sender sender = kit_sender(&k, packed, length);
        ptest_fill(packed, length, (unsigned)rank);
        for (int m = 0; m < 10; m++) {
            kit_put(&sender, 0, length, 3, (uint64_t)rank, 0, 0);
        }
        kit_flush(&sender);
    } else {
        kit_wait(ct, 30);
        CHECK_SAME(memory, want, total);
    }
    kit_close(&k);
}

PTEST(refused, 2)
{
    struct kit k;
    ptl_handlers_t h;
    kit_open(&k, rank, size);
    const struct strided_state bad[] = {
        {0, 10, 11, 10},       {1, 10, 10, 10},
        {90, -10, 10, 11},     {0, INT64_MAX, 1, 3},
        {0, 1, UINT64_MAX, 2}, {UINT64_MAX, -1, 1, 2},
        {0, INT64_MIN, 1, 2},  {0, 8, 1u << 31, 1u << 31},
        {0, 1, 1, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        INVALID(strided_handlers(&bad[i], 100, &h));
    }
    const struct strided_state empty = {0, 10, 0, 10}, full = {0, 10, 10, 10};
    OK(strided_handlers(&empty, 100, &h));
    unsigned char memory[100] = {0}, data[101];
    memset(data, 1, sizeof(data));
    if (rank == 1) {
        kit_entry(&k, memory, 100, 1, 0, PTL_CT_NONE, &h);
        OK(strided_handlers(&full, 100, &h));
        kit_entry(&k, memory, 100, 2, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        kit_put_once(&k, data, 0, 1, 1, 0, 0, PTL_NI_OK);
        kit_put_once(&k, data, 1, 1, 1, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&k, data, 101, 1, 2, 0, 0, PTL_NI_HANDLER_FAIL);
    } else {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_BYTES(memory, 100, 0);
    }
    kit_close(&k);
}
