/* SPDX-License-Identifier: BSD-3-Clause */
/* PINWHEEL_HPU_TIMING names the cost tables, in their order: src/base does not know them. */
#include "base/options.h"
#include "hpu/rv32/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void names_are_those_of_the_tables(void **state)
{
    char error[256];
    int64_t number;
    for (int i = 0; i < rv32_timing_count; i++) {
        assert_int_equal(
            option_parse(OPT_HPU_TIMING, rv32_timings[i].name, &number, error, sizeof(error)), 0);
        assert_int_equal(number, i);
    }
    size_t names = 1;
    for (const char *c = option_table[OPT_HPU_TIMING].choices; *c != '\0'; c++) {
        names += *c == '|';
    }
    assert_int_equal(names, rv32_timing_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_those_of_the_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
