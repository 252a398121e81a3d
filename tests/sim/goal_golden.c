/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules with known bytes: every text compiles to what LogGOPSim's compiler
 * made of it, every binary prints as text that compiles back to itself, and the
 * generators make what LogGOPSim's made.
 */
#include "goal_try.h"

#include "sim/gen/goal_gen.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef GOLDEN
#error "GOLDEN comes from the build: the folder of golden/loggops"
#endif

static void assert_same(const struct bytes *a, const struct bytes *b, const char *what)
{
    if (a->length != b->length || memcmp(a->at, b->at, a->length) != 0) {
        fail_msg("%s: %zu bytes differ from %zu", what, a->length, b->length);
    }
}

static struct bytes binary_of(const char *text_path)
{
    char path[512];
    const char *name = strrchr(text_path, '/') + 1;
    snprintf(path, sizeof(path), GOLDEN "/bin/%.*s.bin", (int)strcspn(name, "."), name);
    return try_file(path);
}

static int for_each(const char *pattern, void (*check)(const char *path))
{
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    int count = (int)found.gl_pathc;
    for (int i = 0; i < count; i++) {
        check(found.gl_pathv[i]);
    }
    globfree(&found);
    return count;
}

static void check_text(const char *path)
{
    struct goal_error error;
    struct bytes text = try_file(path), golden = binary_of(path), bin;
    if (try_compile((char *)text.at, text.length, 0, &bin, &error) != 0) {
        fail_msg("%s: %s", path, error.text);
    }
    assert_same(&bin, &golden, path);
    free(text.at);
    free(golden.at);
    free(bin.at);
}

static void check_binary(const char *path)
{
    struct goal_error error;
    struct bytes golden = try_file(path), bin, text = try_print(&golden);
    assert_int_equal(try_compile((char *)text.at, text.length, 0, &bin, &error), 0);
    assert_same(&bin, &golden, path);
    free(golden.at);
    free(text.at);
    free(bin.at);
}

static void texts_compile_to_the_known_bytes(void **state)
{
    assert_int_equal(for_each(GOLDEN "/micro/*.goal", check_text), 18);
    assert_int_equal(for_each(GOLDEN "/goal/*.goal", check_text), 8);
}

static void binaries_print_as_text_of_the_same_bytes(void **state)
{
    assert_int_equal(for_each(GOLDEN "/bin/*.bin", check_binary), 26);
}

/* ---- Generators ---- */

static struct bytes generated(const char *name, struct goal_config c, bool as_text)
{
    const struct goal_pattern *p = goal_pattern_find(name);
    struct goal_error error;
    struct goal_stream out;
    int fd = try_memfd();
    assert_non_null(p);
    assert_int_equal(goal_config_check(p, &c, &error), 0);
    if (as_text) {
        assert_int_equal(goal_stream_append(&out, fd), 0);
        assert_int_equal(goal_generate_text(p, &c, &out, &error), 0);
        assert_int_equal(goal_stream_close(&out), 0);
    } else {
        assert_int_equal(goal_generate(p, &c, fd, &error), 0);
    }
    struct bytes b = try_contents(fd);
    close(fd);
    return b;
}

static void generators_make_the_known_bytes(void **state)
{
    static const struct {
        const char *pattern, *file;
        uint32_t ranks;
        uint64_t size;
    } known[] = {
        {"allreduce_ring", "allreduce_ring_16_1048576", 16, 1048576},
        {"binomialtreebcast", "binary_tree_32", 32, 1},
        {"binomialtreebcast", "binomialtreebcast_16_8", 16, 8},
        {"binomialtreebcast", "binomialtreebcast_64_65536", 64, 65536},
        {"dissemination", "dissemination_16_1", 16, 1},
        {"linear_alltoall", "linear_alltoall_16_1024", 16, 1024},
        {"pipelinedring", "pipelinedring_16_65536", 16, 65536},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char path[512];
        struct goal_config c = goal_config_default;
        c.ranks = known[i].ranks;
        c.size = known[i].size;
        struct bytes bin = generated(known[i].pattern, c, false);
        struct bytes text = generated(known[i].pattern, c, true);
        snprintf(path, sizeof(path), GOLDEN "/bin/%s.bin", known[i].file);
        struct bytes golden = try_file(path);
        assert_same(&bin, &golden, path);
        free(golden.at);
        snprintf(path, sizeof(path), GOLDEN "/goal/%s.goal", known[i].file);
        golden = try_file(path);
        assert_same(&text, &golden, path);
        free(golden.at);
        free(bin.at);
        free(text.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_compile_to_the_known_bytes),
        cmocka_unit_test(binaries_print_as_text_of_the_same_bytes),
        cmocka_unit_test(generators_make_the_known_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
