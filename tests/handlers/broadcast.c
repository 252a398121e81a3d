/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/broadcast: every root, both trees, all lengths; several broadcasts at once
 * from different roots; physical ids; and what is no chunk.
 */
#include "kit.h"

#include "broadcast.h"

struct one {
    unsigned char *memory;
    size_t length;
    uint64_t bits;
    uint32_t root;
    ptl_handle_ct_t ct;
    ptl_handle_me_t entry;
};

static struct tree_group group_of(const struct kit *k)
{
    return (struct tree_group){(uint32_t)k->p.rank, (uint32_t)k->p.size,
                               port_logical(&k->p) ? NULL : k->p.id};
}

static struct one post(struct kit *k, enum tree_shape shape, uint32_t root, size_t length,
                       uint64_t bits)
{
    struct one b = {.memory = kit_memory(length),
                    .length = length,
                    .bits = bits,
                    .root = root,
                    .ct = port_ct(&k->p)};
    struct tree_group group = group_of(k);
    struct broadcast_state state;
    ptl_handlers_t h;
    if ((uint32_t)k->p.rank == root) {
        ptest_fill(b.memory, length, (unsigned)bits);
    }
    OK(broadcast_handlers(&group, shape, root, length, bits, k->packet, &state, &h));
    b.entry = kit_entry(k, b.memory, length, bits, 0, b.ct, &h);
    return b;
}

static void start(struct kit *k, const struct one *b, ptl_handle_md_t md)
{
    if ((uint32_t)k->p.rank == b->root) {
        OK(broadcast_start(md, k->p.id[k->p.rank], k->p.pt, b->bits, b->length, k->packet));
    }
}

static void finish(struct kit *k, struct one *b)
{
    kit_wait(b->ct, broadcast_messages(b->length, k->packet));
    CHECK_FILL(b->memory, b->length, (unsigned)b->bits);
    port_unlink(&k->p, b->entry);
    OK(PtlCTFree(b->ct));
    free(b->memory);
}

static void all_lengths(int rank, int size, unsigned kind, enum tree_shape shape)
{
    struct kit k;
    kit_open_kind(&k, kind, rank, size);
    ptl_handle_md_t md = port_quiet_md(&k.p, NULL, 0, 0, PTL_CT_NONE);
    for (uint32_t root = 0; root < (uint32_t)size; root++) {
        for (int i = 0; i < KIT_SIZES; i++) {
            struct one b = post(&k, shape, root, kit_size(&k, i), 1000 + (uint64_t)i);
            BARRIER();
            start(&k, &b, md);
            finish(&k, &b);
        }
    }
    port_release(md);
    kit_close(&k);
}

PTEST(binomial, 4)
{
    all_lengths(rank, size, KIND_ML, TREE_BINOMIAL);
}

PTEST(binomial_of_seven, 7)
{
    all_lengths(rank, size, KIND_ML, TREE_BINOMIAL);
}

PTEST(chain, 4)
{
    all_lengths(rank, size, KIND_ML, TREE_CHAIN);
}

PTEST(physical_ids, 3)
{
    all_lengths(rank, size, KIND_MP, TREE_BINOMIAL);
}

PTEST(alone, 1)
{
    all_lengths(rank, size, KIND_ML, TREE_BINOMIAL);
}

/* Each rank is the root of some, in both trees, and all are under way at once. */
PTEST(many_at_once, 4)
{
    enum { EACH = 6 };
    struct kit k;
    kit_open(&k, rank, size);
    struct one b[4 * EACH];
    ptl_handle_md_t md = port_quiet_md(&k.p, NULL, 0, 0, PTL_CT_NONE);
    for (int i = 0; i < 4 * EACH; i++) {
        b[i] = post(&k, i % 2 ? TREE_BINOMIAL : TREE_CHAIN, (uint32_t)i / EACH,
                    (size_t)i * 3 * k.packet / 2 + 11, 1 + (uint64_t)i);
    }
    BARRIER();
    for (int i = 0; i < 4 * EACH; i++) {
        start(&k, &b[i], md);
    }
    for (int i = 0; i < 4 * EACH; i++) {
        finish(&k, &b[i]);
    }
    port_release(md);
    kit_close(&k);
}

/* The parent of each place is who has it as child. */
PTEST(trees, 1)
{
    for (uint32_t n = 1; n < 70; n++) {
        for (uint32_t root = 0; root < n; root += 1 + n / 7) {
            for (int shape = TREE_BINOMIAL; shape <= TREE_CHAIN; shape++) {
                uint32_t reached = 1;
                for (uint32_t r = 0; r < n; r++) {
                    ptl_process_t child[TREE_CHILDREN];
                    struct tree_group g = {r, n, NULL};
                    uint32_t children = tree_children(&g, (enum tree_shape)shape, root, child);
                    for (uint32_t c = 0; c < children; c++, reached++) {
                        struct tree_group of = {child[c].rank, n, NULL};
                        CHECK(child[c].rank != root);
                        CHECK_EQ(tree_parent(&of, (enum tree_shape)shape, root), r);
                    }
                }
                CHECK_EQ(reached, n);
            }
        }
    }
}

PTEST(refused, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct tree_group nobody = {2, 2, NULL}, group = group_of(&k);
    struct broadcast_state state;
    ptl_handlers_t h;
    INVALID(broadcast_handlers(&nobody, TREE_CHAIN, 0, 8, 1, k.packet, &state, &h));
    INVALID(broadcast_handlers(&group, TREE_CHAIN, 2, 8, 1, k.packet, &state, &h));
    struct one b = post(&k, TREE_CHAIN, 0, 20, 9);
    const struct {
        uint64_t offset, length;
        size_t bytes;
    } bad[] = {{0, 20, 15}, {0, 20, 37}, {1, 20, 36}, {21, 20, 16}, {0, 21, 36}, {~0ull, 20, 17}};
    BARRIER();
    for (size_t i = 0; rank == 0 && i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t chunk[8] = {bad[i].offset, bad[i].length, 0x0101010101010101};
        kit_put_once(&k, chunk, bad[i].bytes, 1, 9, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (size_t i = 0; rank == 1 && i < sizeof(bad) / sizeof(bad[0]); i++) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_BYTES(b.memory, 20, 0);
    }
    kit_close(&k);
}
