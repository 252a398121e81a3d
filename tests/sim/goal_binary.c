/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary schedules that lie: each count, offset and field that is wrong is refused
 * by name, and nothing beyond the file is read (run under ASan to see that).
 */
#include "goal_try.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A schedule of two ranks: byte 8 is the base, the table is at 14, rank 0 at 46
 * with 3 nodes and 1 root, so its nodes are at 58 and its list of 3 at 175. */
static struct bytes sample(void)
{
    static const char text[] = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3 cpu 1 nic 2\n"
                               "b: calc 5\nc: recv 9b from -1\nb requires a\nc irequires a\n"
                               "c requires b\n}\nrank 1 {\nsend 9b to 0\nrecv 8b from 0\n}\n";
    struct bytes bin;
    struct goal_error error;
    assert_int_equal(try_compile(text, sizeof(text) - 1, 0, &bin, &error), 0);
    assert_int_equal(bin.length, 14 + 32 + (8 + 4 + 3 * 39 + 12) + (8 + 8 + 2 * 39));
    return bin;
}

enum { TABLE = 14, RANK0 = 46, ROOTS = 54, NODES = 58, LISTS = 175, RANK1 = 187 };

/* Opens a copy of exactly `length` bytes, so that ASan sees what lies beyond. */
static int open_copy(const uint8_t *bytes, size_t length, struct goal_error *error)
{
    struct goal g;
    uint8_t *copy = malloc(length > 0 ? length : 1);
    memcpy(copy, bytes, length);
    int rc = goal_open_image(&g, copy, length, "t.bin", error);
    if (rc == 0) {
        goal_close(&g);
    }
    free(copy);
    return rc;
}

struct lie {
    size_t at;
    unsigned width;
    uint64_t value;
    const char *says;
};

static void lies_are_named(void **state)
{
    static const struct lie lies[] = {
        {0, 8, 2342, "cookie 2342 where 4223 should be"},
        {8, 4, 0, "0 ranks"},
        {8, 4, 4294967295, "4294967295 ranks in a file of"},
        {8, 4, 3, "rank 0: start is 38, must be 54"},
        {8, 4, 1, "rank 0: start is 38, must be 22"},
        {12, 1, 7, "the header says highest cpu 7 and nic 2, the operations use 1 and 2"},
        {13, 1, 0, "the header says highest cpu 1 and nic 0, the operations use 1 and 2"},
        {TABLE, 8, 39, "rank 0: start is 39, must be 38"},
        {TABLE + 8, 8, 40, "rank 0: end is 40"},
        {TABLE + 8, 8, UINT64_MAX, "rank 0: end is 18446744073709551615"},
        {TABLE + 8, 8, 181,
         "size in bytes of 3 nodes and 1 roots is 129, which does not fit its span of 143"},
        {TABLE + 8, 8, 183, "rank 0: node 2: count of dependencies is 2"},
        {TABLE + 16, 8, 0, "rank 1: start is 0, must be 179"},
        {TABLE + 24, 8, 272, "rank 1: size in bytes of 2 nodes"},
        {RANK0, 4, 4294967295, "rank 0: size in bytes of 4294967295 nodes"},
        {RANK0, 4, 2, "rank 0: size in bytes of 2 nodes and 1 roots is 90"},
        {RANK0 + 4, 4, 4294967295, "rank 0: size in bytes of 3 nodes and 4294967295 roots"},
        {ROOTS, 4, 1, "rank 0: a node without dependencies that is not the next root is 0"},
        {ROOTS, 4, 4294967295, "that is not the next root is 0"},
        {RANK1 + 4, 4, 1, "rank 1: node 0: type is 0"},
        {NODES, 4, 1, "node 0: count of dependencies is 1, the number of lists that name it is 0"},
        {NODES + 39, 4, 0, "node 1: count of dependencies is 0"},
        {NODES + 4, 1, 0, "node 0: type is 0"},
        {NODES + 4, 1, GOAL_OPERATIONS, "node 0: type is 13, which is none"},
        {NODES + 4, 1, GOAL_USE_ONCE, "node 0: type is 41, which is no part"},
        {NODES + 4, 1, GOAL_TYPES, "node 0: type is 42"},
        {NODES + 4, 1, GOAL_TEST, "node 0: peer is 1, must be 0"},
        {NODES + 5, 4, 2, "node 0: peer is 2, ranks are 0 to 1"},
        {NODES + 5, 4, 4294967295, "node 0: peer is 4294967295"},
        {NODES + 2 * 39 + 5, 4, 2, "node 2: peer is 2, ranks are 0 to 1"},
        {NODES + 39 + 5, 4, 1, "node 1: peer, tag or nic of a calc is 1, must be 0"},
        {NODES + 39 + 17, 4, 9, "node 1: peer, tag or nic of a calc is 9, must be 0"},
        {NODES + 39 + 22, 1, 1, "node 1: peer, tag or nic of a calc is 1, must be 0"},
        {NODES + 21, 1, 200, "highest cpu 1 and nic 2, the operations use 200 and 2"},
        {NODES + 23, 4, 4294967295, "node 0: first index of its irequires list is 1"},
        {NODES + 27, 4, 1, "node 0: first index of its requires list is 1, must be 0"},
        {NODES + 31, 4, 4294967295, "node 1: first index of its requires list is 2"},
        {NODES + 35, 4, 2, "node 0: first index of its irequires list is 2, must be 1"},
        {NODES + 2 * 39 + 31, 4, 1, "rank 0: length of all its lists is 4, room for them is 3"},
        {LISTS, 4, 3, "rank 0: successor 0 is 3, nodes of the rank: 3"},
        {LISTS, 4, 4294967295, "rank 0: successor 0 is 4294967295"},
        {LISTS, 4, 2, "node 1: count of dependencies is 1, the number of lists that name it is 0"},
    };
    struct goal_error error;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct bytes bin = sample();
        assert_int_equal(open_copy(bin.at, bin.length, &error), 0);
        memcpy(bin.at + lies[i].at, &lies[i].value, lies[i].width);
        error.text[0] = '\0';
        if (open_copy(bin.at, bin.length, &error) == 0) {
            fail_msg("byte %zu = %llu was accepted", lies[i].at, (unsigned long long)lies[i].value);
        }
        if (strncmp(error.text, "t.bin: ", 7) != 0 || strstr(error.text, lies[i].says) == NULL) {
            fail_msg("byte %zu: \"%s\" does not say \"%s\"", lies[i].at, error.text, lies[i].says);
        }
        free(bin.at);
    }
}

static void every_truncation_is_refused(void **state)
{
    struct bytes bin = sample();
    struct goal_error error;
    for (size_t length = 0; length < bin.length; length++) {
        assert_int_equal(open_copy(bin.at, length, &error), -1);
    }
    uint8_t *longer = calloc(1, bin.length + 4);
    memcpy(longer, bin.at, bin.length);
    assert_int_equal(open_copy(longer, bin.length + 4, &error), -1);
    assert_non_null(strstr(error.text, "the last rank ends at byte"));
    free(longer);
    free(bin.at);
}

/* Every byte changed in every bit: accepted schedules must print and compile back
 * to exactly the changed bytes. Returns how many there are, and frees the schedule. */
static int accept_only_what_compiles(struct bytes bin)
{
    struct goal_error error;
    int accepted = 0;
    for (size_t bit = 0; bit < 8 * bin.length; bit++) {
        bin.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (open_copy(bin.at, bin.length, &error) == 0) {
            struct bytes again, text = try_print(&bin);
            assert_int_equal(try_compile((char *)text.at, text.length, 0, &again, &error), 0);
            assert_int_equal(again.length, bin.length);
            assert_memory_equal(again.at, bin.at, bin.length);
            accepted++;
            free(text.at);
            free(again.at);
        }
        bin.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bin.at);
    return accepted;
}

static void what_is_accepted_could_have_been_compiled(void **state)
{
    static const char text[] =
        "num_ranks 2\nrank 0 {\n"
        "a: append 9b hh 10ns ph 4c+1c/4b put to 1 as 7 write put 5b to 0 count 3 by 1 ch 250ps "
        "hostput 4b to 1 allowed -1 use_once tag 2 ct 1\n"
        "tput 7b to 1 tag 3 when ct 2 reaches 1 ct 4\nb: test 1 for 2\nb requires a\n"
        "tcount 3 by 4 when 2 reaches 9\nget 8b from 0\ncas 8b with 1\n}\nrank 1 {\n}\n";
    struct bytes portals;
    struct goal_error error;
    assert_int_equal(try_compile(text, sizeof(text) - 1, 0, &portals, &error), 0);
    assert_true(accept_only_what_compiles(sample()) > 5 * 64); /* the sizes at least */
    assert_true(accept_only_what_compiles(portals) > 10 * 32); /* sizes, counters, thresholds */
}

static void schedules_of_the_spin_extension_are_recognised(void **state)
{
    struct goal_error error;
    uint8_t image[14 + 16 + 8 + 4 + 2 * 104 + 4] = {0};
    uint64_t cookie = GOAL_COOKIE, start = 22, end = sizeof(image) - 8;
    uint32_t one = 1, two = 2;
    memcpy(image, &cookie, 8);
    memcpy(image + 8, &one, 4);
    memcpy(image + 14, &start, 8);
    memcpy(image + 22, &end, 8);
    memcpy(image + 30, &two, 4); /* nodes */
    memcpy(image + 34, &one, 4); /* roots */
    uint8_t *first = image + 42, *second = first + 104;
    first[4] = 4;  /* put */
    first[23] = 1; /* one successor */
    first[35] = 1;
    second[0] = 1;
    second[4] = 7; /* wait for a counter */
    second[27] = 1;
    second[35] = 1;
    memcpy(image + sizeof(image) - 4, &one, 4);
    assert_int_equal(open_copy(image, sizeof(image), &error), -1);
    assert_non_null(strstr(error.text, "104 bytes"));
    assert_non_null(strstr(error.text, "compile its text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_named),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_accepted_could_have_been_compiled),
        cmocka_unit_test(schedules_of_the_spin_extension_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
