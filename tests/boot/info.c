/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel info`, for people and as JSON. Usage: info PINWHEEL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_check.h"
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *pinwheel;
static struct outcome o;

static void info(const char *option)
{
    const char *const argv[] = {pinwheel, "info", option, NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
    assert_int_equal(o.status, 0);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

static void assert_json(void)
{
    const char *wrong = json_check(o.out);
    if (wrong != NULL) {
        fail_msg("no JSON from \"%.40s\" on", wrong);
    }
}

static void the_checker_tells_json_from_other_text(void **state)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " null ",
                                       "-1.5e+3",
                                       "[1, {\"a\": \"\\u00ff\"}]",
                                       "0",
                                       "\"\\\\\"",
                                       "{\"a\":[],\"b\":false}"};
    static const char *const bad[] = {"",    "{",     "[1,]",  "{\"a\"}", "{\"a\":1,}",
                                      "01",  "1 2",   "\"",    "\"\\x\"", "\"\n\"",
                                      "nul", "[1 2]", "{a:1}", "-",       "1."};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(json_check(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(json_check(bad[i]));
    }
}

static void both_forms_tell_what_there_is(void **state)
{
    info(NULL);
    assert_contains(o.out, "compiled by ");
    assert_contains(o.out, "fabric shm: ");
    assert_contains(o.out, "memory per peer");
    assert_contains(o.out, "PINWHEEL_PACKET_SIZE");
    info("--json");
    assert_json();
    assert_contains(o.out, "\"version\": \"");
    assert_contains(o.out, "\"profile_guided\": ");
    assert_contains(o.out, "\"interfaces\": [");
    assert_contains(o.out, "\"memory_per_peer_bytes\": ");
    assert_contains(o.out, "\"variable\": \"PINWHEEL_PACKET_SIZE\"");
}

static void memory_per_peer_follows_the_options(void **state)
{
    setenv("PINWHEEL_SHM_RING", "128", 1);
    setenv("PINWHEEL_SHM_CELLS", "16", 1);
    setenv("PINWHEEL_PACKET_SIZE", "1024", 1);
    info("--json");
    assert_json();
    /* either way two channels of 128 lines of 64 bytes and 16 cells of 1024, and the
     * rest of a page */
    assert_contains(o.out, "\"memory_per_peer_bytes\": 106496");
    assert_contains(o.out, "\"memory_per_peer_most_bytes\": 106496");
    setenv("PINWHEEL_SHM_CELLS_FIRST", "2", 1);
    info("--json");
    assert_contains(o.out, "\"memory_per_peer_bytes\": 49152");
    assert_contains(o.out, "\"memory_per_peer_most_bytes\": 106496");
    unsetenv("PINWHEEL_SHM_CELLS_FIRST");
    unsetenv("PINWHEEL_SHM_RING");
    unsetenv("PINWHEEL_SHM_CELLS");
    unsetenv("PINWHEEL_PACKET_SIZE");
}

static void a_bad_value_is_reported_and_the_rest_printed(void **state)
{
    setenv("PINWHEEL_SHM_RING", "100", 1);
    info(NULL);
    assert_contains(o.out, "PtlInit will fail: PINWHEEL_SHM_RING=100: must be a power of two");
    assert_contains(o.out, "100 (set; default 128)");
    info("--json");
    assert_json();
    assert_contains(o.out, "\"options_error\": \"PINWHEEL_SHM_RING=100: must be a power of two\"");
    unsetenv("PINWHEEL_SHM_RING");
}

static void a_folder_that_does_not_do_is_explained(void **state)
{
    setenv("PINWHEEL_SHM_DIR", "/proc", 1);
    info(NULL);
    assert_contains(o.out, "fabric shm: not usable: /proc: not a tmpfs; set PINWHEEL_SHM_DIR");
    setenv("PINWHEEL_SHM_DIR", "/no/such/folder", 1);
    info("--json");
    assert_json();
    assert_contains(o.out, "\"why_not\": \"/no/such/folder: No such file or directory\"");
    unsetenv("PINWHEEL_SHM_DIR");
}

static void interfaces_are_listed_or_refused(void **state)
{
    static const struct {
        const char *list, *expected;
    } cases[] = {
        {"lo", "{\n      \"name\": \"lo\",\n      \"address\": \"127.0.0.1\",\n"
               "      \"nid\": 2130706433\n    }"},
        {"127.0.0.2,lo,127.1.2.3", "\"address\": \"127.1.2.3\""},
        {"nosuch0", "interface nosuch0: this host has none of that name"},
        {"203.0.113.77", "address 203.0.113.77: not one of this host's"},
        {"lo,127.0.0.1", "interface 127.0.0.1: address 127.0.0.1 is listed twice"},
        {"lo,", "the list of interfaces has an empty entry"},
        {"127.0.0.0", "address 127.0.0.0: not one of this host's"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("PINWHEEL_IFACES", cases[i].list, 1);
        info("--json");
        assert_json();
        assert_contains(o.out, cases[i].expected);
    }
    unsetenv("PINWHEEL_IFACES");
    info("--json"); /* the default is always something */
    assert_contains(o.out, "\"nid\": ");
}

static void any_bytes_make_legal_json(void **state)
{
    setenv("PINWHEEL_SHM_DIR", "/a\"b\\c\x01\t\xff\xc3\xa9\xed\xa0\x80", 1);
    info("--json");
    assert_json();
    assert_contains(o.out, "/a\\\"b\\\\c\\u0001\\u0009\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd");
    unsetenv("PINWHEEL_SHM_DIR");
}

static void names_that_are_no_options_are_told(void **state)
{
    setenv("PINWHEEL_FABRC", "udp", 1);
    info(NULL);
    assert_contains(o.out, "PINWHEEL_FABRC is no option; did you mean PINWHEEL_FABRIC?");
    info("--json");
    assert_json();
    assert_contains(o.out, "\"PINWHEEL_FABRC is no option; did you mean PINWHEEL_FABRIC?\"");
    unsetenv("PINWHEEL_FABRC");
    info("--json");
    assert_contains(o.out, "\"options_unknown\": []");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_tells_json_from_other_text),
        cmocka_unit_test(both_forms_tell_what_there_is),
        cmocka_unit_test(memory_per_peer_follows_the_options),
        cmocka_unit_test(a_bad_value_is_reported_and_the_rest_printed),
        cmocka_unit_test(a_folder_that_does_not_do_is_explained),
        cmocka_unit_test(interfaces_are_listed_or_refused),
        cmocka_unit_test(any_bytes_make_legal_json),
        cmocka_unit_test(names_that_are_no_options_are_told),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: info PINWHEEL\n");
        return 2;
    }
    pinwheel = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
