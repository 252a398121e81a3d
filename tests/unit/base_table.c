/* SPDX-License-Identifier: BSD-3-Clause */
/* Handle tables: handles that go stale, limits, growth, equal sequences. */
#include "base/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct thing {
    struct table_slot slot;
    int value;
};

static void start(struct table *t, uint32_t limit)
{
    table_init(t, HANDLE_CT, 5, limit, sizeof(struct thing));
}

static void handle_says_what_it_is(void **state)
{
    struct table t;
    start(&t, 10);
    struct thing *a = table_add(&t);
    uint32_t h = a->slot.handle;
    assert_int_equal(handle_kind(h), HANDLE_CT);
    assert_int_equal(handle_ni(h), 5);
    assert_int_equal(handle_index(h), 0);
    assert_ptr_equal(table_get(&t, h), a);
    assert_null(table_get(&t, 0));
    assert_null(table_get(&t, h + 1));
    assert_null(table_get(&t, 0xffffffffu));
    table_free(&t);
}

static void dropped_handles_are_stale(void **state)
{
    struct table t;
    start(&t, 1);
    uint32_t seen[62];
    for (int i = 0; i < 62; i++) {
        struct thing *a = table_add(&t);
        assert_non_null(a);
        assert_int_equal(a->value, 0);
        a->value = 7;
        seen[i] = a->slot.handle;
        for (int k = 0; k < i; k++) {
            assert_int_not_equal(seen[k], seen[i]);
            assert_null(table_get(&t, seen[k]));
        }
        table_drop(&t, a);
        assert_null(table_get(&t, seen[i]));
    }
    table_free(&t);
}

/* Invariant set 7: memory and generations outlive the objects. */
static void cleared_handles_stay_stale(void **state)
{
    struct table t;
    start(&t, 600);
    uint32_t seen[600];
    struct thing *first = NULL;
    for (int i = 0; i < 600; i++) {
        struct thing *a = table_add(&t);
        assert_non_null(a);
        first = i == 0 ? a : first;
        seen[i] = a->slot.handle;
    }
    assert_null(table_add(&t));
    table_clear(&t, 300);
    for (int i = 0; i < 600; i++) {
        assert_null(table_get(&t, seen[i]));
    }
    for (int i = 0; i < 300; i++) {
        struct thing *a = table_add(&t);
        assert_non_null(a);
        assert_true(i != 0 || a == first);
        assert_int_equal(handle_index(a->slot.handle), i);
        for (int k = 0; k < 600; k++) {
            assert_int_not_equal(a->slot.handle, seen[k]);
        }
    }
    assert_null(table_add(&t));
    table_free(&t);
}

static void limit_holds_and_objects_stay(void **state)
{
    struct table t;
    start(&t, 1000);
    static struct thing *all[1000];
    for (int i = 0; i < 1000; i++) {
        all[i] = table_add(&t);
        assert_non_null(all[i]);
        all[i]->value = i;
    }
    assert_null(table_add(&t));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(all[i]->value, i);
        assert_ptr_equal(table_get(&t, all[i]->slot.handle), all[i]);
    }
    table_drop(&t, all[400]);
    assert_ptr_equal(table_add(&t), all[400]);
    table_free(&t);
}

static void equal_sequences_give_equal_handles(void **state)
{
    struct table t[2];
    uint32_t last[2];
    for (int k = 0; k < 2; k++) {
        start(&t[k], 600);
        struct thing *kept[300];
        for (int i = 0; i < 300; i++) {
            kept[i] = table_add(&t[k]);
        }
        for (int i = 0; i < 300; i += 3) {
            table_drop(&t[k], kept[i]);
        }
        last[k] = 0;
        for (int i = 0; i < 150; i++) {
            last[k] = last[k] * 31 + ((struct thing *)table_add(&t[k]))->slot.handle;
        }
        table_free(&t[k]);
    }
    assert_int_equal(last[0], last[1]);
}

/* A table with few objects in use goes round in few slots, and stale handles stay stale for long.
 */
static void few_objects_take_few_slots(void **state)
{
    enum { USES = TABLE_STEP * 60 };
    struct table t;
    start(&t, 1000);
    static uint32_t seen[USES];
    for (int i = 0; i < USES; i++) {
        struct thing *a = table_add(&t);
        seen[i] = a->slot.handle;
        assert_true(handle_index(seen[i]) < TABLE_STEP);
        table_drop(&t, a);
    }
    for (int i = 0; i < USES; i++) {
        assert_null(table_get(&t, seen[i]));
    }
    struct thing *a = table_add(&t);
    for (int i = 0; i < USES; i++) {
        assert_int_not_equal(seen[i], a->slot.handle);
    }
    table_free(&t);
}

/* table_take() is table_add() but for what it leaves in the object. */
static void taken_objects_keep_what_they_had(void **state)
{
    struct table t[2];
    start(&t[0], 40);
    start(&t[1], 40);
    int had[40] = {0}; /* by index */
    for (int i = 0; i < 300; i++) {
        assert_true(table_ready(&t[1]));
        struct thing *added = table_add(&t[0]), *taken = table_take(&t[1]);
        assert_int_equal(added->slot.handle, taken->slot.handle);
        assert_ptr_equal(table_get(&t[1], taken->slot.handle), taken);
        assert_int_equal(added->value, 0);
        int *value = &had[handle_index(taken->slot.handle)];
        assert_int_equal(taken->value, *value);
        added->value = taken->value = *value = i + 1;
        if (i % 8 != 0) {
            table_drop(&t[0], added);
            table_drop(&t[1], taken);
        }
    }
    table_free(&t[0]);
    table_free(&t[1]);
}

static void none_is_ready_at_the_limit(void **state)
{
    struct table t;
    start(&t, 33);
    struct thing *last = NULL;
    for (int i = 0; i < 33; i++) {
        assert_true(table_ready(&t));
        last = table_take(&t);
    }
    assert_false(table_ready(&t));
    assert_null(table_add(&t));
    uint32_t before = last->slot.handle;
    table_drop(&t, last);
    assert_true(table_ready(&t));
    assert_ptr_equal(table_take(&t), last);
    assert_int_not_equal(last->slot.handle, before);
    assert_null(table_get(&t, before));
    table_free(&t);
}

static void walking_finds_what_is_in_use(void **state)
{
    struct table t;
    start(&t, 300);
    for (int i = 0; i < 300; i++) {
        ((struct thing *)table_add(&t))->value = i;
    }
    uint32_t at = 0;
    int count = 0;
    for (struct thing *a; (a = table_next(&t, &at)) != NULL; count++) {
        assert_int_equal(a->value, count);
        table_drop(&t, a);
    }
    assert_int_equal(count, 300);
    at = 0;
    assert_null(table_next(&t, &at));
    table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handle_says_what_it_is),
        cmocka_unit_test(dropped_handles_are_stale),
        cmocka_unit_test(cleared_handles_stay_stale),
        cmocka_unit_test(limit_holds_and_objects_stay),
        cmocka_unit_test(equal_sequences_give_equal_handles),
        cmocka_unit_test(few_objects_take_few_slots),
        cmocka_unit_test(taken_objects_keep_what_they_had),
        cmocka_unit_test(none_is_ready_at_the_limit),
        cmocka_unit_test(walking_finds_what_is_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
