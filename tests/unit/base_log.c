/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that come again and again: ten, then one a second, which says how many were not written. */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TEN = 10, CAUSES = 1000 };
#define SECOND INT64_C(1000000000)

static uint64_t next_key; /* tests share the memory of what came */

static void ten_then_one_a_second(void **state)
{
    char note[LOG_NOTE];
    uint64_t key = ++next_key;
    int64_t now = 5 * SECOND;
    for (int i = 0; i < TEN; i++) {
        assert_true(log_again(key, now, note));
        assert_string_equal(note, i < TEN - 1 ? "" : "; from here on one line a second");
    }
    for (int i = 0; i < 4000; i++) {
        assert_false(log_again(key, now + SECOND - 1, note));
    }
    assert_true(log_again(key, now + SECOND, note));
    assert_string_equal(note, "; 4000 more since the line before");
    assert_false(log_again(key, now + 2 * SECOND - 1, note));
    assert_true(log_again(key, now + 2 * SECOND, note));
    assert_string_equal(note, "; 1 more since the line before");
    assert_true(log_again(key, now + 9 * SECOND, note));
    assert_string_equal(note, "; 0 more since the line before");
}

static void another_cause_is_told_beside_a_flood(void **state)
{
    char note[LOG_NOTE];
    uint64_t flood = ++next_key;
    for (int i = 0; i < 100; i++) {
        (void)log_again(flood, 20 * SECOND, note);
    }
    assert_true(log_again(++next_key, 20 * SECOND, note));
    assert_string_equal(note, "");
    assert_false(log_again(flood, 20 * SECOND, note));
}

/* Memory is bounded: of more causes than it holds each is told, and the youngest are known. */
static void any_number_of_causes(void **state)
{
    char note[LOG_NOTE];
    for (int i = 0; i < CAUSES; i++) {
        uint64_t key = ++next_key;
        for (int n = 0; n < TEN; n++) {
            assert_true(log_again(key, (30 + i) * SECOND, note));
        }
        assert_false(log_again(key, (30 + i) * SECOND, note));
    }
    assert_true(log_again(0, 2000 * SECOND, note));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_then_one_a_second),
        cmocka_unit_test(another_cause_is_told_beside_a_flood),
        cmocka_unit_test(any_number_of_causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
