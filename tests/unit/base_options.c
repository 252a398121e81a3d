/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table: every default is legal, every bad value is named. */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void defaults_are_legal(void **state)
{
    struct options o;
    char error[256] = "";
    for (int id = 0; id < OPT_COUNT; id++) {
        unsetenv(option_table[id].env);
    }
    assert_int_equal(options_load(&o, error, sizeof(error)), 0);
    assert_int_equal(o.number[OPT_PACKET_SIZE], 4096);
    assert_string_equal(o.text[OPT_SHM_DIR], "/dev/shm");
    for (int id = 0; id < OPT_COUNT; id++) {
        assert_memory_equal(option_table[id].env, "PINWHEEL_", 9);
        assert_true(strlen(option_table[id].meaning) > 10);
    }
}

static void refused(const char *env, const char *value, const char *remedy)
{
    struct options o;
    char error[256] = "";
    setenv(env, value, 1);
    assert_int_equal(options_load(&o, error, sizeof(error)), -1);
    assert_non_null(strstr(error, env));
    assert_non_null(strstr(error, value));
    assert_non_null(strstr(error, remedy));
    unsetenv(env);
}

static void bad_values_are_named(void **state)
{
    refused("PINWHEEL_SHM_RING", "1", "from 2 to");
    refused("PINWHEEL_SHM_RING", "12", "a power of two");
    refused("PINWHEEL_SHM_RING", "64x", "a whole number");
    refused("PINWHEEL_SHM_RING", "99999999999999999999", "a whole number");
    refused("PINWHEEL_PACKET_SIZE", "100", "a multiple of 64");
    refused("PINWHEEL_FABRIC", "ib", "auto|shm|udp");
    refused("PINWHEEL_LOG", "war", "none|error|warn|info|debug");
}

static void choices_give_their_index(void **state)
{
    int64_t n;
    char error[256];
    assert_int_equal(option_parse(OPT_SHM_LARGE, "vm", &n, error, sizeof(error)), 0);
    assert_int_equal(n, 2);
    assert_int_equal(option_parse(OPT_SHM_LARGE, "", &n, error, sizeof(error)), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_legal),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(choices_give_their_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
