/* SPDX-License-Identifier: BSD-3-Clause */
/* What the plan of the benchmark makes of a turn's result, and its table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conductor.h"
#include "values.h"

#include <math.h>
#include <string.h>

static const struct bench *find(const char *name)
{
    for (int i = 0; i < bench_table_size; i++) {
        if (strcmp(bench_table[i].name, name) == 0) {
            return &bench_table[i];
        }
    }
    fail_msg("there is no bench %s", name);
    return NULL;
}

/* The value of a turn of `count` iterations in `seconds`. */
static double value(const char *name, uint64_t size, uint64_t count, double seconds)
{
    const struct bench *b = find(name);
    struct turn_work work = {.bench = b->ours, .size = size, .count = count};
    struct turn_result result[2] = {{.seconds = seconds, .extra = 3}, {.seconds = 99, .extra = 5}};
    return plan_value(b, size, plan_stored(&work, result));
}

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fabs(b)) {
        fail_msg("%.12g is not %.12g", a, b);
    }
}

static void turns_become_values_in_their_units(void **state)
{
    assert_near(value("put_latency", 8, 1000, 200e-6), 100);         /* ns, half of 200 */
    assert_near(value("get_latency", 8, 1000, 200e-6), 200);         /* ns */
    assert_near(value("message_rate", 8, 10, 64e-6), 10);            /* M/s: 640 in 64 us */
    assert_near(value("bandwidth", 1 << 20, 1, 16 * 1048576e-9), 1); /* GB/s */
    assert_near(value("ct_get", 0, 100, 64e-6), 10);                 /* ns: 6400 calls */
    assert_near(value("match", 16, 100, 64e-6), 10);
    assert_near(value("spin/strided", 256, 1000, 4.194304), 1);   /* GB/s: 4 MiB in 4.2 ms */
    assert_near(value("spin/pingpong", 8192, 1000, 200e-6), 0.1); /* us, half of 0.2 */
    assert_near(value("spin/kv_get", 0, 10, 160e-6), 1);          /* M/s: 160 in 160 us */
    assert_near(value("spin/invoke", 20, 1, 1.28e-3), 100);       /* thousands a second */
}

static void some_benches_say_their_value_themselves(void **state)
{
    assert_near(value("wake", 8, 7, 1), 3e6);            /* us, of rank 0 */
    assert_near(value("memory", 0, 7, 1), 3.0 / 1024);   /* KiB, of rank 0 */
    assert_near(value("handler_message", 8, 7, 1), 5e9); /* ns, of rank 1 */
    assert_near(value("handler_packet", 64, 7, 1), 5e9);
    assert_near(value("spin/fair", 100, 7, 1), 3e6);   /* us, of rank 0 */
    assert_near(value("spin/raid5", 4096, 7, 1), 3e6); /* likewise */
    assert_near(value("spin/overlap", 4096, 7, 1), 5); /* of rank 1 */
    assert_near(value("idle", 0, 7, 1), 500);          /* percent, of rank 1 */
    assert_near(value("computing", 8, 7, 1), 5e6);     /* us, of rank 1 */
}

static void lists_are_of_whole_names(void **state)
{
    assert_true(plan_listed("a,bc,d", "a"));
    assert_true(plan_listed("a,bc,d", "bc"));
    assert_true(plan_listed("a,bc,d", "d"));
    assert_false(plan_listed("a,bc,d", "b"));
    assert_false(plan_listed("a,bc,d", "bcd"));
    assert_false(plan_listed("", "a"));
    assert_true(plan_listed("a,bc", "bc/d")); /* a folder is all in it */
    assert_true(plan_listed("bc/d", "bc/d"));
    assert_false(plan_listed("bc/d", "bc/de"));
    assert_false(plan_listed("b,/d,bc/", "bc/d"));
    assert_false(plan_listed(NULL, "a"));
}

static void names_are_unique_and_subjects_exist(void **state)
{
    for (int i = 0; i < bench_table_size; i++) {
        int found = 0;
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(bench_table[i].name, bench_table[k].name);
        }
        for (int s = 0; s < subject_table_size; s++) {
            found +=
                strcmp(subject_table[s].name, bench_table[i].subject) == 0 &&
                (subject_table[s].kind == SUBJECT_OURS || subject_table[s].kind == SUBJECT_CLIENT);
        }
        assert_int_equal(found, 1);
    }
    for (int s = 0; s < subject_table_size; s++) {
        for (int k = 0; k < s; k++) {
            assert_string_not_equal(subject_table[s].name, subject_table[k].name);
        }
        assert_true(subject_table[s].kind != SUBJECT_PEER || subject_table[s].packages != NULL);
        assert_true(subject_table_size + EXTRA_MAX <= SUBJECTS_MAX);
    }
}

static void sizes_are_written_as_people_do(void **state)
{
    char text[32];
    assert_string_equal(plan_size_text(SIZE_MESSAGE, 8, text), "8 B");
    assert_string_equal(plan_size_text(SIZE_MESSAGE, 65536, text), "64 KiB");
    assert_string_equal(plan_size_text(SIZE_MESSAGE, 4 << 20, text), "4 MiB");
    assert_string_equal(plan_size_text(SIZE_MESSAGE, 5000, text), "5000 B");
    assert_string_equal(plan_size_text(SIZE_ENTRIES, 1, text), "1 entry");
    assert_string_equal(plan_size_text(SIZE_ENTRIES, 4096, text), "4096 entries");
    assert_string_equal(plan_size_text(SIZE_WAITING, 16384, text), "16384 waiting");
    assert_string_equal(plan_size_text(SIZE_SLOW, 0, text), "0 us");
    assert_string_equal(plan_size_text(SIZE_HANDLER, 1024, text), "1024 us");
    assert_string_equal(plan_size_text(SIZE_NONE, 0, text), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_become_values_in_their_units),
        cmocka_unit_test(some_benches_say_their_value_themselves),
        cmocka_unit_test(lists_are_of_whole_names),
        cmocka_unit_test(names_are_unique_and_subjects_exist),
        cmocka_unit_test(sizes_are_written_as_people_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
