/* SPDX-License-Identifier: BSD-3-Clause */
/* Noise: what detours do to work, on average and moment by moment; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/models/noise.h"
#include "sim/util/random.h"

static struct sim_noise open_noise(const char *text, uint64_t seed)
{
    struct sim_noise n;
    char error[512];
    if (sim_noise_open(&n, text, seed, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }
    return n;
}

static void write_trace(const char *text)
{
    FILE *f = fopen("trace.txt", "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *const noises[] = {
    "uniform:period=10us,low=1us,high=3us",        "uniform:period=1us,low=0,high=1.9us",
    "normal:period=10us,mean=2us,deviation=500ns", "exponential:period=10us,mean=2us",
    "exponential:period=100ns,mean=20ns",          "trace.txt",
};
/* The part of the time that they take. */
static const double parts[] = {0.2, 0.95, 0.2, 0.2, 0.2, 0.3};
enum { NOISES = sizeof(parts) / sizeof(parts[0]) };
static const char *const trace = "# begin length\n100 200\n\n400 50.5 # late\n950.5 49.5\n";

/* Work may be cut anywhere: what is left of it ends when all of it would have. */
static void work_can_be_cut(void **state)
{
    (void)state;
    write_trace(trace);
    for (int i = 0; i < NOISES; i++) {
        struct sim_noise n = open_noise(noises[i], 5);
        for (uint64_t k = 0; k < 20000; k++) {
            uint64_t begin = goal_random(1, k) % 1000000000, a = 1 + goal_random(2, k) % 30000000,
                     b = 1 + goal_random(3, k) % 30000000;
            uint64_t middle = sim_noise_end(&n, 3, begin, a);
            assert_true(middle >= begin + a);
            assert_int_equal(sim_noise_end(&n, 3, begin, a + b), sim_noise_end(&n, 3, middle, b));
            assert_true(sim_noise_end(&n, 3, begin + 1, a) >= middle);
        }
        sim_noise_close(&n);
    }
}

static void long_work_takes_its_part(void **state)
{
    (void)state;
    const uint64_t work = UINT64_C(200000000000); /* 0.2 s */
    write_trace(trace);
    for (int i = 0; i < NOISES; i++) {
        struct sim_noise n = open_noise(noises[i], 9);
        uint64_t end = sim_noise_end(&n, 1, 12345, work) - 12345;
        double found = 1 - (double)work / (double)end;
        if (found < parts[i] - 0.01 || found > parts[i] + 0.01) {
            fail_msg("%s takes %g of the time, not %g", noises[i], found, parts[i]);
        }
        sim_noise_close(&n);
    }
}

/* From a moment at which there is work, a trace's period holds the work that it leaves. */
static void a_trace_comes_again(void **state)
{
    (void)state;
    write_trace(trace);
    struct sim_noise n = open_noise("trace.txt", 2);
    uint64_t begin = 0, phases = 0, last = UINT64_MAX;
    while (sim_noise_end(&n, 0, begin, 1) != begin + 1) {
        begin++;
    }
    assert_int_equal(sim_noise_end(&n, 0, begin, 700000), begin + 1000000);
    assert_int_equal(sim_noise_end(&n, 0, begin, 7000000), begin + 10000000);
    for (uint32_t rank = 0; rank < 16; rank++) {
        uint64_t end = sim_noise_end(&n, rank, 0, 150000);
        assert_int_equal(end, sim_noise_end(&n, rank, 1000000, 150000) - 1000000);
        phases += end != last;
        last = end;
    }
    assert_in_range(phases, 4, 16);
    sim_noise_close(&n);
}

static void the_seed_decides(void **state)
{
    (void)state;
    struct sim_noise a = open_noise(noises[3], 1), b = open_noise(noises[3], 1),
                     c = open_noise(noises[3], 2);
    uint64_t work = 1000000000;
    assert_int_equal(sim_noise_end(&a, 7, 0, work), sim_noise_end(&b, 7, 0, work));
    assert_int_not_equal(sim_noise_end(&a, 7, 0, work), sim_noise_end(&c, 7, 0, work));
    assert_int_not_equal(sim_noise_end(&a, 7, 0, work), sim_noise_end(&a, 8, 0, work));
    /* Times that would be too late. */
    assert_true(sim_noise_end(&a, 7, INT64_MAX - 5, 10) > INT64_MAX);
    assert_true(sim_noise_end(&a, 7, 0, INT64_MAX) > INT64_MAX);
}

static void refused(const char *text, const char *because)
{
    struct sim_noise n;
    char error[512];
    assert_int_equal(sim_noise_open(&n, text, 1, error, sizeof(error)), -1);
    if (strstr(error, because) == NULL || strstr(error, "--noise") == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error, because);
    }
}

static void bad_noise(void **state)
{
    (void)state;
    refused("gamma", "No such file");
    refused("uniform:", "must be uniform:period=TIME,low=TIME,high=TIME");
    refused("uniform:period=1us,low=1ns", "must be uniform:");
    refused("normal:period=1us,mean=1ns,width=3ns", "must be normal:");
    refused("exponential:mean=1ns", "must be exponential:period=TIME,mean=TIME");
    refused("exponential:period=1us,mean=fast", "must be a time");
    refused("exponential:period=1us,mean=1us", "no time for work");
    refused("exponential:period=0,mean=0", "no time for work");
    refused("uniform:period=1us,low=5ns,high=4ns", "high is below low");
    write_trace("");
    refused("trace.txt", "has no detour");
    write_trace("0 100\n");
    refused("trace.txt", "no time between them");
    write_trace("5\n");
    refused("trace.txt", "line 1: must be the begin");
    write_trace("5 6 7\n");
    refused("trace.txt", "line 1: must be the begin");
    write_trace("#\n5 x\n");
    refused("trace.txt", "line 2: length x: must be a time");
    write_trace("5 6\n10 3\n");
    refused("trace.txt", "line 2: begins before the detour above it ends");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_can_be_cut),     cmocka_unit_test(long_work_takes_its_part),
        cmocka_unit_test(a_trace_comes_again), cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(bad_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
