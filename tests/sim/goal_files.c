/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening schedules from files: binary, text, side files that fit and that do not. */
#include "goal_try.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] = "num_ranks 2\n"
                           "rank 0 {\n"
                           "first: calc 1\n"
                           "send 8b to 1\n"
                           "a_longer_label: calc 2\n"
                           "a_longer_label requires first\n"
                           "}\n"
                           "rank 1 {\n"
                           "// nothing here\n"
                           "x: recv 8b from 0\n"
                           "}\n";

static char folder[] = "/tmp/goal_files.XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t length)
{
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

/* Compiles `source` to NAME and NAME.labels. */
static void compile_file(const char *name, const char *source)
{
    struct goal_error error;
    struct goal_made made;
    struct goal_text t = {.name = "x.goal", .at = source, .length = strlen(source), .fd = -1};
    char *side = goal_side_path(path_of(name));
    int bin_fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    int side_fd = open(side, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(goal_compile(&t, 0, bin_fd, side_fd, &made, &error), 0);
    assert_int_equal(made.ranks, 2);
    close(bin_fd);
    close(side_fd);
    free(side);
}

static void check_place(struct goal *g, uint32_t rank, uint32_t node, const char *file,
                        uint64_t line, const char *label)
{
    struct goal_place p;
    assert_true(goal_locate(g, rank, node, &p));
    assert_string_equal(p.file, file);
    assert_int_equal(p.line, line);
    assert_int_equal(p.label_length, strlen(label));
    assert_memory_equal(p.label, label, p.label_length);
}

static void check_places(struct goal *g, const char *file)
{
    struct goal_place p;
    check_place(g, 0, 0, file, 3, "first");
    check_place(g, 0, 1, file, 4, "");
    check_place(g, 0, 2, file, 5, "a_longer_label");
    check_place(g, 1, 0, file, 10, "x");
    assert_false(goal_locate(g, 0, 3, &p));
    assert_false(goal_locate(g, 1, 1, &p));
    assert_false(goal_locate(g, 2, 0, &p));
}

static void a_binary_finds_its_side_file(void **state)
{
    struct goal g;
    struct goal_error error;
    compile_file("a.bin", text);
    assert_int_equal(goal_open(&g, path_of("a.bin"), 0, &error), 0);
    assert_int_equal(g.nodes, 4);
    assert_int_equal(g.sends + g.recvs + g.calcs, 4);
    check_places(&g, "x.goal");
    goal_close(&g);
}

static void text_is_compiled_and_located(void **state)
{
    struct goal g;
    struct goal_error error;
    write_file("a.goal", text, sizeof(text) - 1);
    assert_int_equal(goal_open(&g, path_of("a.goal"), 0, &error), 0);
    assert_int_equal(g.nodes, 4);
    check_places(&g, path_of("a.goal"));
    goal_close(&g);
}

static void places_of_changed_text_are_unknown(void **state)
{
    struct goal g;
    struct goal_error error;
    struct goal_place p;
    write_file("b.goal", text, sizeof(text) - 1);
    assert_int_equal(goal_open(&g, path_of("b.goal"), 0, &error), 0);
    write_file("b.goal", "num_ranks 1\nrank 0 {\n}\n", 23);
    assert_false(goal_locate(&g, 0, 0, &p));
    assert_false(goal_locate(&g, 0, 0, &p));
    goal_close(&g);
}

static void a_side_file_of_another_binary_is_not_used(void **state)
{
    struct goal g;
    struct goal_error error;
    struct goal_place p;
    char *changed = strdup(text);
    strstr(changed, "calc 1")[5] = '9'; /* the same length, another binary */
    compile_file("c.bin", text);
    compile_file("d.bin", changed);
    assert_int_equal(rename(path_of("c.bin.labels"), path_of("d.bin.labels")), 0);
    assert_int_equal(goal_open(&g, path_of("d.bin"), 0, &error), 0);
    assert_false(goal_locate(&g, 0, 0, &p));
    goal_close(&g);
    free(changed);
}

/* Each byte of a side file set to each of a few values: a place is found or not,
 * and what is found lies in the file (ASan watches). */
static void a_damaged_side_file_harms_nobody(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct goal_error error;
    compile_file("e.bin", text);
    struct bytes side = try_file(path_of("e.bin.labels"));
    for (size_t at = 0; at < side.length; at++) {
        for (size_t v = 0; v < sizeof(values); v++) {
            struct goal g;
            struct goal_place p;
            uint8_t before = side.at[at];
            uint64_t sum = 0;
            side.at[at] = values[v];
            write_file("e.bin.labels", side.at, side.length);
            side.at[at] = before;
            assert_int_equal(goal_open(&g, path_of("e.bin"), 0, &error), 0);
            for (uint32_t rank = 0; rank < 2; rank++) {
                for (uint32_t node = 0; node < 4; node++) {
                    if (goal_locate(&g, rank, node, &p)) {
                        for (uint32_t i = 0; i < p.label_length; i++) {
                            sum += (uint8_t)p.label[i];
                        }
                        assert_true(p.label_length <= side.length && sum < 255 * side.length);
                        assert_non_null(p.file);
                    }
                }
            }
            goal_close(&g);
        }
    }
    free(side.at);
}

static void refuse(const char *path, const char *says)
{
    struct goal g;
    struct goal_error error = {""};
    assert_int_equal(goal_open(&g, path, 0, &error), -1);
    if (strstr(error.text, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
    }
}

static void other_files_are_refused(void **state)
{
    const uint64_t spent = GOAL_COOKIE_SPENT, foreign = 77;
    write_file("spent", &spent, 8);
    write_file("foreign", &foreign, 8);
    write_file("empty", "", 0);
    write_file("short", "\x7f\x10\0\0\0\0\0\0\1", 9);
    refuse(path_of("spent"), "destroys a schedule");
    refuse(path_of("foreign"), "begins with 77, not with the cookie 4223");
    refuse(path_of("empty"), "expected \"num_ranks\", found the end of the file");
    refuse(path_of("short"), "9 bytes");
    refuse(path_of("missing"), "No such file");
    refuse(folder, "is a folder");
}

static void temporary_files_go_where_tmpdir_says(void **state)
{
    setenv("TMPDIR", "/nowhere/at/all", 1);
    write_file("f.goal", text, sizeof(text) - 1);
    refuse(path_of("f.goal"), "/nowhere/at/all");
    unsetenv("TMPDIR");
}

static void an_output_appears_only_when_complete(void **state)
{
    struct goal_output o;
    struct goal_error error;
    assert_int_equal(goal_output_open(&o, path_of("out"), &error), 0);
    assert_int_equal(access(path_of("out"), F_OK), -1);
    goal_output_discard(&o);
    assert_int_equal(access(path_of("out"), F_OK), -1);
    assert_int_equal(goal_output_open(&o, path_of("out"), &error), 0);
    assert_int_equal(goal_output_commit(&o, &error), 0);
    assert_int_equal(access(path_of("out"), F_OK), 0);
    assert_int_equal(goal_output_open(&o, "/nowhere/out", &error), -1);
    assert_non_null(strstr(error.text, "/nowhere/out"));
}

static int make_folder(void **state)
{
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_binary_finds_its_side_file),
        cmocka_unit_test(text_is_compiled_and_located),
        cmocka_unit_test(places_of_changed_text_are_unknown),
        cmocka_unit_test(a_side_file_of_another_binary_is_not_used),
        cmocka_unit_test(a_damaged_side_file_harms_nobody),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(temporary_files_go_where_tmpdir_says),
        cmocka_unit_test(an_output_appears_only_when_complete),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
