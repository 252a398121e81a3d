/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of a slab: zeroed, apart from each other, used again, of all sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/util/slab.h"

enum { BLOCKS = 300, STEPS = 20000 };

struct block {
    uint8_t *at; /* NULL: given back */
    size_t size;
    uint8_t mark;
};

static uint64_t random_state = 1;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Mostly small ones; a few that are reserved by themselves. */
static size_t some_size(void)
{
    unsigned most = random_number() % 50 == 0 ? 21 : 12;
    return (size_t)(random_number() % ((uint64_t)1 << random_number() % most)) + 1;
}

/* A block's first and last bytes, and some between. */
static void check(const struct block *b, uint8_t mark)
{
    size_t step = b->size / 64 + 1;
    for (size_t i = 0; i < b->size; i += step) {
        assert_int_equal(b->at[i], mark);
    }
    assert_int_equal(b->at[b->size - 1], mark);
}

static void blocks_are_zeroed_and_apart(void **state)
{
    static struct block blocks[BLOCKS];
    struct slab slab = {0};
    (void)state;
    for (int step = 0; step < STEPS; step++) {
        struct block *b = &blocks[random_number() % BLOCKS];
        if (b->at != NULL) {
            check(b, b->mark);
            slab_give(&slab, b->at, b->size);
            b->at = NULL;
            continue;
        }
        b->size = some_size();
        b->mark = (uint8_t)(step % 255 + 1);
        b->at = slab_take(&slab, b->size);
        assert_non_null(b->at);
        assert_int_equal((uintptr_t)b->at % 64, 0);
        check(b, 0);
        memset(b->at, b->mark, b->size);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].at != NULL) {
            check(&blocks[i], blocks[i].mark);
            slab_give(&slab, blocks[i].at, blocks[i].size);
        }
    }
    slab_free(&slab);
    assert_null(slab.chunks);
}

/* What was given back is taken again: memory does not grow. */
static void blocks_are_used_again(void **state)
{
    struct slab slab = {0};
    (void)state;
    void *first = slab_take(&slab, 4096);
    assert_non_null(first);
    for (int i = 0; i < 1000; i++) {
        slab_give(&slab, first, 4096);
        assert_ptr_equal(slab_take(&slab, 3000 + (size_t)i), first);
    }
    slab_give(&slab, NULL, 4096);
    slab_free(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_and_apart),
        cmocka_unit_test(blocks_are_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
