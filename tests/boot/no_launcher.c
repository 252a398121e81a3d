/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs without any launcher, as examples/hello_ids.c shows them: one
 * prints its physical id, the other is given it, and both get a put.
 * Usage: no_launcher HELLO_IDS
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *hello_ids;
static struct outcome first, second;

/* The id that the first one printed. */
static void start_first(char id[64])
{
    const char *const argv[] = {hello_ids, NULL};
    outcome_start(&first, argv);
    assert_true(outcome_await(&first, "\n", 1));
    assert_int_equal(sscanf(first.out, "waiting at %63s", id), 1);
}

static void run_second(const char *id)
{
    const char *const argv[] = {hello_ids, id, NULL};
    outcome_start(&second, argv);
    outcome_end(&second);
}

static void each_gets_the_greeting_of_the_other(void **state)
{
    char id[64], other[64], from[64], expected[256];
    start_first(id);
    run_second(id);
    outcome_end(&first);
    assert_int_equal(second.status, 0);
    assert_int_equal(first.status, 0);
    assert_int_equal(sscanf(second.out, "%63s received \"hello from %63[^\"]\"", other, from), 2);
    assert_string_equal(from, id);
    assert_string_not_equal(other, id);
    snprintf(expected, sizeof(expected), "waiting at %s\n%s received \"hello from %s\"\n", id, id,
             other);
    assert_string_equal(first.out, expected);
}

static void an_id_of_nobody_is_an_error(void **state)
{
    char id[64];
    start_first(id);
    run_second(id); /* and now both have gone */
    outcome_end(&first);
    run_second(id);
    assert_int_equal(second.status, 1);
    assert_string_equal(second.out, "");
    assert_string_equal(second.err, "hello_ids: nobody is at that id\n");
    run_second("127.0.0.1");
    assert_int_equal(second.status, 2);
}

int main(int argc, char **argv)
{
    static const char *const launchers[] = {"PMI_FD",         "PMI_RANK",  "PMI_SIZE",
                                            "PMIX_NAMESPACE", "PMIX_RANK", "PINWHEEL_JOB_KEY"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gets_the_greeting_of_the_other),
        cmocka_unit_test(an_id_of_nobody_is_an_error),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: no_launcher HELLO_IDS\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        unsetenv(launchers[i]);
    }
    hello_ids = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
