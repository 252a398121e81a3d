/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of a simulation: what is accepted, what is refused and how, the sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/util/parameters.h"

static void accepts(enum sim_parameter which, const char *text, uint64_t value)
{
    struct sim_parameters p = {{0}};
    char error[256] = "";
    if (sim_parameter_parse(&p, which, text, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }
    if (p.value[which] != value) {
        fail_msg("%s: %llu, not %llu", text, (unsigned long long)p.value[which],
                 (unsigned long long)value);
    }
}

static void refuses(enum sim_parameter which, const char *text, const char *because)
{
    struct sim_parameters p = {{0}};
    char error[256] = "";
    assert_int_equal(sim_parameter_parse(&p, which, text, error, sizeof(error)), -1);
    if (strstr(error, because) == NULL || strstr(error, text) == NULL) {
        fail_msg("'%s' does not say '%s' and '%s'", error, because, text);
    }
}

static void times(void **state)
{
    (void)state;
    const uint64_t ns = SIM_AS_PER_NS, ps = SIM_AS_PER_PS;
    accepts(SIM_L, "0", 0);
    accepts(SIM_L, "2500", 2500 * ns);
    accepts(SIM_L, "3.7us", 3700 * ns);
    accepts(SIM_L, "3700ns", 3700 * ns);
    accepts(SIM_o, "0.001", ps);
    accepts(SIM_g, "6.7", 6700 * ps);
    accepts(SIM_g, "6.700000000000000000000000", 6700 * ps);
    accepts(SIM_L, "1ms", 1000000 * ns);
    accepts(SIM_L, "18.446744073709s", UINT64_C(18446744073709) * ps);
    accepts(SIM_G, "20ps", 20 * ps);
    accepts(SIM_G, "20ps/B", 20 * ps);
    accepts(SIM_G, "0.02/B", 20 * ps);
    accepts(SIM_G, "20.000003ps", 20 * ps + 3);
    accepts(SIM_O, "0.000000001", 1);
    refuses(SIM_L, "", "must be a time");
    refuses(SIM_L, ".5", "must be a time");
    refuses(SIM_L, "5.", "must be a time");
    refuses(SIM_L, "1.2.3", "must be a time");
    refuses(SIM_L, "-1", "must be a time");
    refuses(SIM_L, "1 us", "must be a time");
    refuses(SIM_L, "1e3", "must be a time");
    refuses(SIM_L, "5ps/B", "must be a time");
    refuses(SIM_L, "0.0001", "1 ps");
    refuses(SIM_o, "0.5ps", "1 ps");
    refuses(SIM_G, "0.0000000001", "0.000001 ps");
    refuses(SIM_L, "19s", "too large");
    refuses(SIM_L, "99999999999999999999999999999999999999999999999", "too large");
}

static void bytes(void **state)
{
    (void)state;
    accepts(SIM_S, "0", 0);
    accepts(SIM_S, "65535", 65535);
    accepts(SIM_S, "18446744073709551615", UINT64_MAX);
    refuses(SIM_S, "18446744073709551616", "too large");
    refuses(SIM_S, "1.5", "whole number of bytes");
    refuses(SIM_S, "64k", "whole number of bytes");
    refuses(SIM_S, "", "whole number of bytes");
}

static void formats(enum sim_parameter which, const char *text, const char *expected)
{
    struct sim_parameters p = {{0}};
    char error[256], out[64];
    assert_int_equal(sim_parameter_parse(&p, which, text, error, sizeof(error)), 0);
    sim_parameter_format(&p, which, out, sizeof(out));
    assert_string_equal(out, expected);
}

static void printed(void **state)
{
    (void)state;
    formats(SIM_L, "3700", "3.7 us");
    formats(SIM_L, "0", "0 ns");
    formats(SIM_g, "6.7", "6.7 ns");
    formats(SIM_G, "20.000003ps", "20.000003 ps/B");
    formats(SIM_G, "0.000001ps", "0.000001 ps/B");
    formats(SIM_L, "2s", "2 s");
    formats(SIM_S, "65535", "65535 B");
}

/* Whatever a set says can be parsed, and a set that is not there is not found. */
static void sets(void **state)
{
    (void)state;
    struct sim_parameters p;
    for (int i = 0; i < sim_parameter_set_count; i++) {
        assert_int_equal(sim_parameters_named(&p, sim_parameter_sets[i].name), 0);
    }
    assert_int_equal(sim_parameters_named(&p, "spin"), 0);
    assert_int_equal(p.value[SIM_L], 283600 * SIM_AS_PER_PS);
    assert_int_equal(p.value[SIM_G], 20 * SIM_AS_PER_PS);
    assert_int_equal(sim_parameters_named(&p, "nothing"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(bytes),
        cmocka_unit_test(printed),
        cmocka_unit_test(sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
