/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of the benchmark: medians, modes, which turns and rounds count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats.h"

#include <math.h>

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(1, fabs(b))) {
        fail_msg("%.12g is not %.12g", a, b);
    }
}

static void medians_and_quartiles_are_interpolated(void **state)
{
    double odd[] = {9, 1, 5, 3, 7}, even[] = {4, 1, 3, 2}, one[] = {42};
    struct stats_summary s = stats_summary(odd, 5);
    assert_int_equal(s.count, 5);
    assert_near(s.median, 5);
    assert_near(s.low, 3);
    assert_near(s.high, 7);
    assert_near(stats_spread(&s), 0.4);
    s = stats_summary(even, 4);
    assert_near(s.median, 2.5);
    assert_near(s.low, 1.75);
    assert_near(s.high, 3.25);
    s = stats_summary(one, 1);
    assert_near(s.median, 42);
    assert_near(stats_spread(&s), 0);
    s = stats_summary(one, 0);
    assert_int_equal(s.count, 0);
    assert_near(s.median, 0);
}

static void one_outlier_moves_no_median(void **state)
{
    double calm[] = {10, 11, 10, 12, 11}, wild[] = {10, 11, 10, 12, 1e9};
    assert_near(stats_summary(calm, 5).median, stats_summary(wild, 5).median);
}

static void spread_of_a_negative_median_is_positive(void **state)
{
    double v[] = {-3, -2, -1};
    struct stats_summary s = stats_summary(v, 3);
    assert_near(stats_spread(&s), 0.25);
}

static void brackets_agree_within_15_percent(void **state)
{
    assert_true(stats_agree(60, 60));
    assert_true(stats_agree(60, 68.9));
    assert_true(stats_agree(68.9, 60));
    assert_false(stats_agree(60, 69.1));
    assert_false(stats_agree(69.1, 60));
    assert_false(stats_agree(60, 290));
    assert_false(stats_agree(0, 0)); /* no bracket is none that agrees */
}

static void modes_are_bands_of_the_bracket(void **state)
{
    assert_int_equal(stats_mode(55), MODE_NEAR);
    assert_int_equal(stats_mode(119), MODE_NEAR);
    assert_int_equal(stats_mode(121), MODE_FAR);
    assert_int_equal(stats_mode(290), MODE_FAR);
    /* Without two cores there is no bracket. */
    assert_int_equal(stats_mode(0), MODE_NEAR);
    assert_true(stats_shared(25));
    assert_false(stats_shared(47));
}

static void only_good_samples_of_the_mode_count(void **state)
{
    const struct stats_sample s[] = {
        {true, 10, 55}, {false, 1000, 55}, {true, 40, 280}, {true, 12, 60}, {true, 44, 280},
    };
    struct stats_summary near = stats_of(s, 5, MODE_NEAR), far = stats_of(s, 5, MODE_FAR);
    assert_int_equal(near.count, 2);
    assert_near(near.median, 11);
    assert_int_equal(far.count, 2);
    assert_near(far.median, 42);
}

static void comparison_is_over_common_rounds(void **state)
{
    /* in round 1 ours was far, in round 3 theirs did not settle */
    const struct stats_sample ours[] = {
        {true, 10, 55}, {true, 90, 280}, {true, 20, 56}, {true, 1, 55}};
    const struct stats_sample theirs[] = {
        {true, 5, 55}, {true, 7, 55}, {true, 5, 58}, {false, 2, 55}};
    struct stats_pair p = stats_compare(ours, theirs, 4, MODE_NEAR);
    assert_int_equal(p.ours.count, 2);
    assert_int_equal(p.theirs.count, 2);
    assert_near(p.ours.median, 15);
    assert_near(p.theirs.median, 5);
    assert_near(p.ratio, 3);
    p = stats_compare(ours, theirs, 4, MODE_FAR);
    assert_int_equal(p.ours.count, 0);
    assert_near(p.ratio, 0);
}

static void iterations_fill_the_time_and_are_never_none(void **state)
{
    assert_int_equal(stats_iterations(5e-3, 1e-6), 5000);
    assert_int_equal(stats_iterations(5e-3, 1), 1);
    assert_int_equal(stats_iterations(5e-3, 0), 1);
    assert_int_equal(stats_iterations(1, 1e-18), 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quartiles_are_interpolated),
        cmocka_unit_test(one_outlier_moves_no_median),
        cmocka_unit_test(spread_of_a_negative_median_is_positive),
        cmocka_unit_test(brackets_agree_within_15_percent),
        cmocka_unit_test(modes_are_bands_of_the_bracket),
        cmocka_unit_test(only_good_samples_of_the_mode_count),
        cmocka_unit_test(comparison_is_over_common_rounds),
        cmocka_unit_test(iterations_fill_the_time_and_are_never_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
