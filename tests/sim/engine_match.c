/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching, short sides and long ones, against a list that is searched from its head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/models/match.h"

enum { ENTRIES = 4000, SIDES = 2 };

struct plain {
    uint32_t source, tag, ref;
};

struct list {
    struct plain entries[ENTRIES];
    uint32_t count;
};

static uint64_t random_state = 1;

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 20) % limit;
}

static int fits(uint32_t a, uint32_t b)
{
    return a == b || a == MATCH_ANY || b == MATCH_ANY;
}

/* The ref of the first entry that fits, which is removed; MATCH_NONE without. */
static uint32_t take(struct list *l, uint32_t source, uint32_t tag)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct plain p = l->entries[i];
        if (fits(p.source, source) && fits(p.tag, tag)) {
            memmove(&l->entries[i], &l->entries[i + 1], (--l->count - i) * sizeof(p));
            return p.ref;
        }
    }
    return MATCH_NONE;
}

static uint32_t pick(uint32_t limit, uint32_t wild_percent)
{
    return below(100) < wild_percent ? MATCH_ANY : below(limit);
}

/* Adds and takes at two sides that share a pool; `grow` of 100 steps add. */
static void walk(uint32_t sources, uint32_t tags, uint32_t wild, uint32_t grow)
{
    static struct list lists[SIDES];
    struct match_side sides[SIDES] = {{0}};
    struct match_pool pool;
    struct match_entry e;
    memset(lists, 0, sizeof(lists));
    assert_int_equal(match_pool_init(&pool, 2 * ENTRIES), 0);
    for (uint32_t step = 0; step < 6000; step++) {
        uint32_t k = below(SIDES), source = pick(sources, wild), tag = pick(tags, wild);
        struct list *l = &lists[k];
        if (below(100) < grow && l->count < ENTRIES) {
            assert_int_equal(match_add(&sides[k], &pool, source, tag, step), 0);
            l->entries[l->count++] = (struct plain){source, tag, step};
            continue;
        }
        uint32_t expected = take(l, source, tag);
        assert_int_equal(match_take(&sides[k], &pool, source, tag, &e), expected != MATCH_NONE);
        if (expected != MATCH_NONE) {
            assert_int_equal(e.ref, expected);
        }
        assert_int_equal(sides[k].count, l->count);
    }
    for (uint32_t k = 0; k < SIDES; k++) {
        match_release(&sides[k], &pool);
    }
    match_pool_free(&pool);
}

static void first_that_fits(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        walk(3, 3, 0, 55);
        walk(3, 3, 30, 60);
        walk(500, 2, 0, 70);
        walk(500, 500, 5, 70);
        walk(50, 1, 20, 50);
        walk(4000, 1, 1, 80);
    }
}

/* Keys that a careless hash would throw together cost no more than others. */
static void strides(void **state)
{
    (void)state;
    struct match_side side = {0};
    struct match_pool pool;
    struct match_entry e;
    assert_int_equal(match_pool_init(&pool, 1 << 17), 0);
    for (uint32_t stride = 1; stride <= 1 << 16; stride *= 16) {
        for (uint32_t i = 0; i < 1 << 16; i++) {
            assert_int_equal(match_add(&side, &pool, i * stride, 0, i), 0);
        }
        for (uint32_t i = 1 << 16; i-- > 0;) {
            assert_int_equal(match_take(&side, &pool, i * stride, 0, &e), 1);
            assert_int_equal(e.source, i * stride);
        }
        assert_int_equal(match_take(&side, &pool, 0, 0, &e), 0);
    }
    match_release(&side, &pool);
    match_pool_free(&pool);
}

/* A pool that is full says so; what is taken makes room. */
static void full_pool(void **state)
{
    (void)state;
    struct match_side side = {0};
    struct match_pool pool;
    struct match_entry e;
    assert_int_equal(match_pool_init(&pool, 2), 0);
    assert_int_equal(match_add(&side, &pool, 1, 1, 1), 0);
    assert_int_equal(match_add(&side, &pool, 1, 2, 2), 0);
    assert_int_equal(match_add(&side, &pool, 1, 3, 3), -1);
    assert_int_equal(match_take(&side, &pool, 1, 1, &e), 1);
    assert_int_equal(match_add(&side, &pool, 1, 3, 3), 0);
    match_release(&side, &pool);
    match_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_that_fits),
        cmocka_unit_test(strides),
        cmocka_unit_test(full_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
