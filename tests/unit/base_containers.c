/* SPDX-License-Identifier: BSD-3-Clause */
/* Heaps, arrays that grow or are searched, hash tables where memory is short, and numbers in texts:
 * base/heap.h, array.h, hash.h, number.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The next so many allocations of uthash succeed, those after them fail; -1: all succeed. */
static int allowed = -1;

static void *limited(size_t size)
{
    if (allowed == 0) {
        return NULL;
    }
    allowed -= allowed > 0;
    return malloc(size);
}

#define uthash_malloc(size) limited(size)
#define uthash_free(at, size) free(at)
#include "base/array.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/number.h"

#define EARLIER(a, b, of) (*(a) < *(b))
HEAP_OF(two, uint64_t, 2, EARLIER)
HEAP_OF(three, uint64_t, 3, EARLIER)
HEAP_OF(four, uint64_t, 4, EARLIER)

typedef void rise_function(uint64_t *heap, size_t count, const uint64_t *item, const void *of);

/* What comes out of a heap is never less than what came before, and all that went in comes out. */
static void comes_out_in_order(rise_function *rise, rise_function *sink)
{
    uint64_t heap[300], state = 7;
    for (size_t most = 1; most <= 300; most += most < 20 ? 1 : 31) {
        uint64_t in = 0, out = 0, last = 0;
        for (size_t i = 0; i < most; i++) {
            uint64_t value = (state = state * 6364136223846793005u + 1442695040888963407u) >> 56;
            rise(heap, i, &value, NULL);
            in += value;
        }
        for (size_t left = most; left > 0; left--) {
            uint64_t first = heap[0], item = heap[left - 1];
            assert_true(first >= last);
            sink(heap, left - 1, &item, NULL);
            last = first;
            out += first;
        }
        assert_int_equal(in, out);
    }
}

static void heaps_of_any_branches(void **unused)
{
    comes_out_in_order(two_rise, two_sink);
    comes_out_in_order(three_rise, three_sink);
    comes_out_in_order(four_rise, four_sink);
}

static void an_array_grows(void **unused)
{
    uint32_t *array = NULL, capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(ARRAY_ROOM(array, i, capacity, 3));
        array[i] = i;
    }
    assert_int_equal(capacity, 1536);
    assert_int_equal(array[999], 999);
    volatile uint64_t most = SIZE_MAX / 8; /* not known to the compiler */
    uint64_t huge = most, before = huge;
    assert_false(ARRAY_ROOM(array, huge, huge, 3));
    assert_int_equal(huge, before);
    assert_int_equal(array[999], 999);
    free(array);
}

/* Room for many at once, no less than double, and what was there stays. */
static void an_array_grows_to_what_is_needed(void **unused)
{
    uint32_t *array = NULL, capacity = 0;
    assert_true(ARRAY_HOLDS(array, 1, capacity, 4));
    assert_int_equal(capacity, 4);
    array[0] = 7;
    assert_true(ARRAY_HOLDS(array, 100, capacity, 4));
    assert_int_equal(capacity, 100);
    assert_true(ARRAY_HOLDS(array, 101, capacity, 4));
    assert_int_equal(capacity, 200);
    assert_true(ARRAY_HOLDS(array, 200, capacity, 4));
    assert_int_equal(capacity, 200);
    assert_int_equal(array[0], 7);
    free(array);
}

/* Against a walk from the beginning: none, some equal, all of them, none at all. */
static void the_first_of_a_sorted_array(void **unused)
{
    static const uint32_t sorted[] = {1, 3, 3, 3, 8, 9, 9, 20};
    for (size_t count = 0; count <= 8; count++) {
        for (uint32_t value = 0; value < 22; value++) {
            size_t walked = 0;
            while (walked < count && sorted[walked] <= value) {
                walked++;
            }
            assert_int_equal(ARRAY_FIRST(i, count, sorted[i] > value), walked);
        }
    }
}

static void a_number_is_all_of_a_text(void **unused)
{
    static const char *const none[] = {"",   " ", "x", "7x", "7 ", "1.5", "99999999999999999999",
                                       "-6", "11"};
    int64_t n = 42;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_false(number_read(none[i], -5, 10, &n));
        assert_int_equal(n, 42);
    }
    assert_true(number_read("-5", -5, 10, &n) && n == -5);
    assert_true(number_read("10", -5, 10, &n) && n == 10);
    assert_true(number_read("9223372036854775807", 0, INT64_MAX, &n) && n == INT64_MAX);
}

struct element {
    UT_hash_handle hh;
    int key;
};

/* Whichever allocation fails, the element is not there, those before it are, and the next one can
 * be added. */
static void a_table_without_memory_stays_as_it_was(void **unused)
{
    for (int fails = 0; fails < 3; fails++) {
        struct element e[2000], *table = NULL, *found;
        int added = 0, refused = 0;
        allowed = fails;
        for (int i = 0; i < 2000; i++) {
            e[i].key = i;
            HASH_ADD_INT(table, key, &e[i]);
            bool there = hash_added(&e[i]);
            added += there;
            refused += !there;
            HASH_FIND_INT(table, &i, found);
            assert_ptr_equal(found, there ? &e[i] : NULL);
            if (!there) {
                allowed = -1;
                HASH_ADD_INT(table, key, &e[i]);
                assert_true(hash_added(&e[i]));
            }
        }
        assert_int_equal(HASH_COUNT(table), 2000);
        assert_int_equal(added + refused, 2000);
        assert_true(fails > 1 || refused > 0);
        for (int i = 0; i < 2000; i++) {
            HASH_FIND_INT(table, &i, found);
            assert_ptr_equal(found, &e[i]);
        }
        HASH_CLEAR(hh, table);
        allowed = -1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heaps_of_any_branches),
        cmocka_unit_test(an_array_grows),
        cmocka_unit_test(an_array_grows_to_what_is_needed),
        cmocka_unit_test(the_first_of_a_sorted_array),
        cmocka_unit_test(a_number_is_all_of_a_text),
        cmocka_unit_test(a_table_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
