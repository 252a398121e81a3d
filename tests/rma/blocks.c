/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of blocks and vectors, against copies block by block; and that a bad one stops all. */
#include "region.h"

enum { LENGTH = 65536, BLOCKS = 200, ROUNDS = 60 };

static _Alignas(64) unsigned char memory[LENGTH], model[LENGTH], mine[LENGTH], found[LENGTH],
    expected[LENGTH];

/* What each verb does to one block of the model. */
static void model_block(int verb, const struct pw_rma_block *b)
{
    unsigned char *there = model + b->offset;
    unsigned char *result = expected + ((unsigned char *)b->result - found);
    const unsigned char *from = b->local;
    if (verb == 1) {
        memcpy(expected + ((unsigned char *)b->local - found), there, b->length);
        return;
    }
    if (verb == 3) {
        memcpy(result, there, b->length);
    }
    for (size_t i = 0; i < b->length; i++) {
        there[i] = verb == 0 ? from[i] : (unsigned char)(there[i] + from[i]);
    }
}

static int do_blocks(struct pw_rma_key *key, int verb, const struct pw_rma_block *b, size_t n,
                     struct pw_rma_request *r)
{
    switch (verb) {
    case 0:
        return pw_rma_put_blocks(key, b, n, r);
    case 1:
        return pw_rma_get_blocks(key, b, n, r);
    case 2:
        return pw_rma_accumulate_blocks(key, b, n, PW_RMA_SUM, PW_RMA_UINT8, r);
    default:
        return pw_rma_get_accumulate_blocks(key, b, n, PW_RMA_SUM, PW_RMA_UINT8, r);
    }
}

static int do_vector(struct pw_rma_key *key, int verb, const struct pw_rma_vector *v,
                     struct pw_rma_request *r)
{
    switch (verb) {
    case 0:
        return pw_rma_put_vector(key, v, r);
    case 1:
        return pw_rma_get_vector(key, v, r);
    case 2:
        return pw_rma_accumulate_vector(key, v, PW_RMA_SUM, PW_RMA_UINT8, r);
    default:
        return pw_rma_get_accumulate_vector(key, v, PW_RMA_SUM, PW_RMA_UINT8, r);
    }
}

/* Begins with both ends known, and compares them at the end. */
static void prepare(struct pw_rma_key *key, unsigned seed)
{
    ptest_fill(model, LENGTH, seed);
    ptest_fill(mine, LENGTH, seed + 1);
    memset(found, 0x5a, LENGTH);
    memset(expected, 0x5a, LENGTH);
    DONE(pw_rma_put(key, model, LENGTH, 0, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
}

static void compare(struct pw_rma_key *key)
{
    CHECK_EQ(memcmp(found, expected, LENGTH), 0);
    DONE(pw_rma_get(key, found, LENGTH, 0, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    CHECK_EQ(memcmp(found, model, LENGTH), 0);
}

static void some_blocks(struct pw_rma_key *key, int verb, unsigned seed, uint64_t *state)
{
    struct pw_rma_block blocks[BLOCKS];
    struct pw_rma_request request;
    size_t count = splitmix(state) % (BLOCKS + 1), room = LENGTH / BLOCKS;
    prepare(key, seed);
    for (size_t i = 0; i < count; i++) {
        /* apart from each other at both ends; in the region in another order */
        size_t at = i * room + splitmix(state) % 30;
        blocks[i] = (struct pw_rma_block){
            .local = (verb == 1 ? found : mine) + at,
            .result = found + at,
            .offset = (i * 77 + 5) % count * room + splitmix(state) % 30,
            .length = splitmix(state) % (room - 30),
        };
    }
    if (count % 7 == 0 || count % 11 == 0) {
        count = count == 0 ? 0 : 1; /* 77 reaches not all of so many */
    }
    DONE(do_blocks(key, verb, blocks, count, &request));
    DONE(pw_rma_wait(&request));
    for (size_t i = 0; i < count; i++) {
        model_block(verb, &blocks[i]);
    }
    compare(key);
}

static void some_vector(struct pw_rma_key *key, int verb, unsigned seed, uint64_t *state)
{
    size_t length = splitmix(state) % 500, count = 1 + splitmix(state) % 60;
    ptrdiff_t stride = (ptrdiff_t)(length + splitmix(state) % 300);
    ptrdiff_t local = (ptrdiff_t)(length + splitmix(state) % 300);
    bool back = splitmix(state) % 2 == 0;
    struct pw_rma_vector v = {
        .local = (verb == 1 ? found : mine) + 8,
        .result = found + 8,
        .local_stride = local,
        .result_stride = local,
        .offset = back ? (uint64_t)stride * (count - 1) : 16,
        .stride = back ? -stride : stride,
        .length = length,
        .count = count,
    };
    prepare(key, seed);
    DONE(do_vector(key, verb, &v, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    for (size_t i = 0; i < count; i++) {
        struct pw_rma_block b = {(unsigned char *)v.local + (ptrdiff_t)i * local,
                                 (unsigned char *)v.result + (ptrdiff_t)i * local,
                                 v.offset + (uint64_t)(v.stride * (ptrdiff_t)i), length};
        model_block(verb, &b);
    }
    compare(key);
}

PTEST_MATCHING(blocks, 2)
{
    struct ends e;
    uint64_t state = 21;
    ends_serve(&e, kind, rank, size, 1, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    if (rank == 0) {
        struct pw_rma_key *key = e.key;
        for (unsigned i = 0; i < ROUNDS; i++) {
            some_blocks(key, (int)i % 4, i, &state);
            some_vector(key, (int)i % 4, i, &state);
        }
    }
    ends_served(&e);
}

/* The last block is wrong: nothing is done. */
PTEST_MATCHING(refused, 1)
{
    struct ends e;
    ends_open(&e, kind, rank, size);
    struct pw_rma_region *region = region_of(e.rma, memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    key_show(region);
    struct pw_rma_key *key = key_of(e.rma, 0);
    memset(mine, 1, LENGTH);
    struct pw_rma_block b[3] = {{mine, found, 0, 64}, {mine, found, 64, 64}, {mine, found, 0, 0}};
    for (int verb = 0; verb < 4; verb++) {
        b[2] = (struct pw_rma_block){mine, found, LENGTH - 7, 8};
        REFUSED(do_blocks(key, verb, b, 3, NULL), EINVAL);
        DONE(do_blocks(key, verb, NULL, 0, NULL));
        struct pw_rma_vector v = {mine, found, 8, 8, 16, -8, 8, 4};
        REFUSED(do_vector(key, verb, &v, NULL), EINVAL);
    }
    b[2] = (struct pw_rma_block){mine, found, 0, 7};
    REFUSED(pw_rma_accumulate_blocks(key, b, 3, PW_RMA_SUM, PW_RMA_UINT64, NULL), EINVAL);
    REFUSED(pw_rma_accumulate_blocks(key, b, 3, PW_RMA_BOR, PW_RMA_DOUBLE, NULL), EOPNOTSUPP);
    b[2] = (struct pw_rma_block){mine, NULL, 0, 8};
    REFUSED(pw_rma_get_accumulate_blocks(key, b, 3, PW_RMA_SUM, PW_RMA_UINT8, NULL), EINVAL);
    DONE(pw_rma_flush_all(e.rma));
    CHECK_BYTES(memory, LENGTH, 0);
    CHECK_BYTES(found, LENGTH, 0);
    pw_rma_key_close(key);
    region_end(region);
    ends_close(&e);
}
