/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table: every default is legal, every bad value is named, docs/options.md is its table.
 */
#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* ---- docs/options.md ---- */

/* A row's text up to `end` is appended; bars within a cell are escaped there. */
static char *add(char *to, const char *end, const char *from, const char *bar)
{
    for (; *from != '\0'; from++) {
        bool split = *from == '|';
        to += snprintf(to, (size_t)(end - to), "%s%.1s", split ? bar : "", split ? "" : from);
        assert_true(to < end);
    }
    return to;
}

/* The row that an option is to have, but for the version in the last cell. */
static void row_of(const struct option_desc *d, char *row, size_t size)
{
    char *at = row, *end = row + size;
    at += snprintf(at, size, "| `%s` | ", d->env);
    if (d->type == OPTION_NUMBER) {
        at += snprintf(at, (size_t)(end - at), "%lld to %lld%s%s", (long long)d->min,
                       (long long)d->max, *d->unit != '\0' ? " " : "", d->unit);
    } else if (d->type == OPTION_CHOICE) {
        at = add(at, end, "`", "");
        at = add(at, end, d->choices, "`, `");
        at = add(at, end, "`", "");
    } else {
        at = add(at, end, "text", "");
    }
    bool none = d->fallback[0] == '\0';
    at += snprintf(at, (size_t)(end - at), " | %s%s%s | ", none ? "" : "`",
                   none ? "empty" : d->fallback, none ? "" : "`");
    at = add(at, end, d->meaning, "\\|");
    add(at, end, " / ", "");
    end[-1] = '\0';
    *strrchr(row, '/') = '|'; /* the bar that closes the cell is no bar of a text */
}

static bool is_beside(const char *name, size_t length)
{
    for (size_t i = 0; options_beside[i] != NULL; i++) {
        if (strlen(options_beside[i]) == length && memcmp(options_beside[i], name, length) == 0) {
            return true;
        }
    }
    fail_msg("docs/options.md has a variable that is not known: %s", name);
    return false;
}

static void the_document_has_each_option(void **state)
{
    char line[1024], row[1024];
    int id = 0, rows = 0;
    FILE *f = fopen(OPTIONS_MD, "re");
    assert_non_null(f);
    while (id <= OPT_COUNT && fgets(line, sizeof(line), f) != NULL &&
           strncmp(line, "## ", 3) != 0) {
        if (strncmp(line, "| `", 3) != 0) {
            continue;
        }
        if (id == OPT_COUNT) {
            fail_msg("docs/options.md has a row that the table does not have: %s", line);
        }
        row_of(&option_table[id++], row, sizeof(row));
        if (strncmp(line, row, strlen(row)) != 0) {
            fail_msg("docs/options.md has\n%sand the table\n%s0.N |", line, row);
        }
        int major, minor, end = 0;
        sscanf(line + strlen(row), "%d.%d |%n", &major, &minor, &end);
        if (end == 0) {
            fail_msg("docs/options.md: no version at the end of\n%s", line);
        }
    }
    assert_int_equal(id, OPT_COUNT);
    while (fgets(line, sizeof(line), f) != NULL) {
        for (const char *at = line; *line == '|' && (at = strstr(at, "`PINWHEEL_")) != NULL;) {
            size_t length = strcspn(++at, "`");
            rows += length != strlen("PINWHEEL_") && is_beside(at, length);
        }
    }
    fclose(f);
    for (size_t i = 0; options_beside[i] != NULL; i++) {
        rows--;
    }
    assert_int_equal(rows, 0);
}

/* ---- Variables that are no options ---- */

static void names_that_are_near_an_option_are_told(void **state)
{
    static char *const known[] = {"PATH=/bin", "PINWHEEL_FABRIC=udp", "PINWHEEL_TRACE=x",
                                  "PINWHEEL_JOB_KEY=x", NULL};
    static const struct {
        char *variable;
        const char *told;
    } cases[] = {
        {"PINWHEEL_FABRC=udp", "PINWHEEL_FABRC is no option; did you mean PINWHEEL_FABRIC?"},
        {"PINWHEEL_HPUS_=2", "PINWHEEL_HPUS_ is no option; did you mean PINWHEEL_HPUS?"},
        {"PINWHEEL_JOBKEY=2", "PINWHEEL_JOBKEY is no option; did you mean PINWHEEL_JOB_KEY?"},
        {"PINWHEEL_FASTER_PLEASE=1",
         "PINWHEEL_FASTER_PLEASE is no option; `pinwheel info` lists them"},
        {"PINWHEEL_", "PINWHEEL_ is no option; `pinwheel info` lists them"},
    };
    char text[256];
    size_t at = 0;
    assert_false(options_unknown(known, &at, text, sizeof(text)));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *const list[] = {known[0], cases[i].variable, known[1], cases[i].variable, NULL};
        at = 0;
        for (int times = 0; times < 2; times++) {
            assert_true(options_unknown(list, &at, text, sizeof(text)));
            assert_string_equal(text, cases[i].told);
        }
        assert_false(options_unknown(list, &at, text, sizeof(text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_legal),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(choices_give_their_index),
        cmocka_unit_test(the_document_has_each_option),
        cmocka_unit_test(names_that_are_near_an_option_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
